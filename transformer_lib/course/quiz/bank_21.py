"""The questions of notebook 21: two heads that copy."""

from __future__ import annotations

from .model import Choice, Option

NOTEBOOK_21 = (
    Choice(
        "21.q1",
        "The letter k comes for the second time. Which key holds what follows now, and can a single layer of attention "
        "find it?",
        (
            Option(
                "The earlier k. The query of k finds it, since both have the same letter.",
                "The two do match. But the value of k is made of the letter k, and by the causal mask it could not see "
                "the letter after it anyway.",
            ),
            Option(
                "The one after the earlier k. The query of k has no way to find it.",
                "Its value is the right letter. But in a single layer a key knows only its own letter and position. To "
                "be found by k, it would have to say what stood before it. Another layer can write that there first.",
                right=True,
            ),
            Option(
                "The one a period back. The query of k finds it by counting positions.",
                "That is where the earlier k stands, so the answer is one further on. And the period differs from "
                "string to string; a key does not know it.",
            ),
            Option(
                "None. What follows k is stored in the weights, not in any key.",
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
        "The first head adds next to nothing to the logit of the right letter, but without it nothing is copied. Where "
        "in the sum is its work?",
        (
            Option(
                "In the letter's own share, which grows when the head is there.",
                "The letter's share is its vector times the output head. No head can change it.",
            ),
            Option(
                "In the second head's share.",
                "The second head finds its key by what the first one has written there. Its share is computed from "
                "weights that depend on the first, and the sum has it under the second head's name.",
                right=True,
            ),
            Option(
                "Nowhere: what is not in the sum under its name cannot matter.",
                "Ablation has shown that it matters. The sum names who says the letter, not who made that possible.",
            ),
            Option(
                "In the position's share, since the head looks by positions.",
                "The position's share is its row times the output head. No head can change it.",
            ),
        ),
        alone=False,
    ),
    Choice(
        "21.q4",
        "In six trainings of 400 steps, how far apart are the moments at which the two scores have made half of their "
        "rise?",
        (
            Option(
                "More than 100 steps: the second begins when the first is done.",
                "So it is often told, and it sounds necessary. But a head that does its work only a little is already "
                "of some use to the other.",
            ),
            Option(
                "From 40 to 100 steps, the previous-token head being first.",
                "They are much closer, and which one is first depends on how the score is counted.",
            ),
            Option(
                "From 40 to 100 steps, the induction head being first.",
                "They are much closer, and which one is first depends on how the score is counted.",
            ),
            Option(
                "Fewer than 20 steps in all six.",
                "Both rise together. The cell below shows which is a little ahead, and that it depends on how the "
                "score is counted.",
                right=True,
            ),
        ),
        alone=False,
    ),
)
