"""The questions of notebook 21: two heads that copy."""

from __future__ import annotations

from .model import Choice, Option

NOTEBOOK_21 = (
    Choice(
        "21.q1",
        "The letter k comes for the second time. In a single layer, each key knows only its own letter and position. "
        "Which key holds what follows now?",
        (
            Option(
                "The earlier k: it matches, and its value tells what came next.",
                "It does match. But the value of k is made of the letter k, and by the causal mask it could not see "
                "the letter after it anyway.",
            ),
            Option(
                "The one after the earlier k, but nothing in it says that a k stood before it.",
                "Its value is the right letter. To be found by k, its key would have to say what stood before it. "
                "Another layer can write that there first.",
                right=True,
            ),
            Option(
                "The one that stands one period back, whatever its letter is.",
                "That is where the earlier k stands, so the answer is one further on. And the period differs from "
                "string to string; a key does not know it.",
            ),
            Option(
                "None: what follows k must be stored in the weights.",
                "The weights were fixed before the string was drawn. All that is known of it stands in the string.",
            ),
        ),
        alone=False,
    ),
    Choice(
        "21.q2",
        "The second head makes queries, keys and values, all three from the sum of letter, position and first head. If "
        "the story is right, in which of them is the first head's share needed?",
        (
            Option(
                "In the queries.",
                "The query asks for its own letter, k. What stood before k does not help to find the earlier place.",
            ),
            Option(
                "In the keys.",
                "The key must say which letter stood before, and that is what the first head has written.",
                right=True,
            ),
            Option(
                "In the values.",
                "The value must tell which letter stands at the key itself. What stood before it is k again, and that "
                "is known already.",
            ),
            Option(
                "In all three.",
                "So it is offered. But the story needs it in one place only, and that makes the story refutable.",
            ),
        ),
        alone=False,
    ),
    Choice(
        "21.q3",
        "A head adds almost nothing to the logit of any letter. May we remove it?",
        (
            Option(
                "Yes: what is not in the sum cannot matter.",
                "The sum shows what goes straight to the logits. What later heads read does not appear in it under "
                "this head's name.",
            ),
            Option(
                "Yes, if that holds for every string.",
                "On our strings the first head adds next to nothing to the right letter, and without it the model "
                "does not copy.",
            ),
            Option(
                "No, since the contributions would no longer sum to the logit.",
                "They always do, with any heads, trained or not: the sum is only bookkeeping.",
            ),
            Option(
                "Not on this evidence: a later layer may read it.",
                "Its output may steer where another head looks. Removing it and measuring is the way to find out.",
                right=True,
            ),
        ),
    ),
    Choice(
        "21.q4",
        "The second head needs what the first one writes. How do their two scores rise in training?",
        (
            Option(
                "First that of the previous-token head; the other begins when it is done.",
                "So it is often told, and it sounds necessary. But a head that does its work only a little is already "
                "of some use to the other.",
            ),
            Option(
                "Both together; which is a little ahead depends on how we count.",
                "The cell below shows it, for this task, these sizes and these learning rates.",
                right=True,
            ),
            Option(
                "One long before the other, but which one depends on the seed.",
                "That would be a fair guess without any measurement. But the leads are short, and the seeds agree.",
            ),
            Option(
                "Both evenly, from the first step to the last.",
                "For some time almost nothing happens, and then both rise within a few dozen steps.",
            ),
        ),
        alone=False,
    ),
)
