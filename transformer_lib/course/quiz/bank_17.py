"""The questions of notebook 17: what a falling loss shows, and in which order one looks."""

from __future__ import annotations

from .model import Choice, Option

NOTEBOOK_17 = (
    Choice(
        "17.q1",
        "A model that learns to translate reports, after 60 steps on fresh sentences, a loss of 0.00 and 100 % right "
        "tokens. What do you conclude?",
        (
            Option(
                "It has learned the task quickly.",
                "Perhaps, but nothing shown so far rules out that what it reads contains the answer.",
            ),
            Option(
                "It has memorised its sentences.",
                "The sentences are fresh at each step, so there is nothing to know by heart.",
            ),
            Option(
                "Nothing yet: let it write without the answer in sight.",
                "The loss compares the labels with what comes out; it does not know what went in. A model that "
                "reads its own words cannot be helped by an answer that leaks.",
                right=True,
            ),
            Option(
                "The learning rate was well chosen.",
                "A low loss has many causes. A leak makes almost any rate look well chosen.",
            ),
        ),
    ),
    Choice(
        "17.q2",
        "You replace the last token of the target, and the logits of the first position change. Before you blame the "
        "causal mask, what else do you measure?",
        (
            Option("The loss of another batch.", "It will be some number; it does not say why this position changed."),
            Option(
                "Whether the logits change when nothing is replaced.",
                "If the same batch gives other logits the second time, every comparison of two passes shows a "
                "change, whatever the mask is.",
                right=True,
            ),
            Option("The largest weight of the encoder.", "The encoder never reads the target."),
            Option(
                "Whether the change is larger than the learning rate.",
                "The two have nothing to do with each other: no step is taken here.",
            ),
        ),
    ),
    Choice(
        "17.q3",
        "All sentences of your test batch have the same length, and no check adds padding. Which fault can it never "
        "show?",
        (
            Option("A mask of the wrong triangle.", "Later tokens are there in every row, whatever the lengths are."),
            Option("A rate that is too high.", "It shows in the loss, whatever the lengths are."),
            Option(
                "A padding mask that is missing.",
                "Without padding there is nothing to hide: with the mask and without it, all numbers are the same.",
                right=True,
            ),
            Option("Positions that were lost.", "Reversing a source shows it at any length above one."),
        ),
    ),
    Choice(
        "17.q4",
        "A sound model with the same weights reads the same batch, and the outputs of all modules are compared. Which "
        "of these faults does that not find?",
        (
            Option("The encoder is skipped.", "Its output is another one: the embedded source."),
            Option("The ReLU is left out.", "Then hidden units below 0 are no longer 0, and the outputs differ."),
            Option(
                "The optimizer was given the decoder only.",
                "The sound model has the same weights. How they came about is not asked.",
                right=True,
            ),
            Option("The positions are added twice.", "The vectors that enter the first layer differ already."),
        ),
    ),
)
