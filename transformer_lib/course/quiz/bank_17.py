"""The questions of notebook 17: what a falling loss shows, and in which order one looks."""

from __future__ import annotations

from .model import Choice, Number, Option

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
        "You exchange the last token of the target, and the logits of the first place change. Before you blame the "
        "causal mask, what else do you measure?",
        (
            Option("The loss of another batch.", "It will be some number; it does not say why this place changed."),
            Option(
                "Whether the logits change when nothing is exchanged.",
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
            Option("A softmax over the wrong axis.", "The sums of weights are wrong in a batch without padding too."),
            Option(
                "A padding mask that is missing.",
                "Without padding there is nothing to hide: with the mask and without it, all numbers are the same.",
                right=True,
            ),
            Option("Positions that were lost.", "Turning a source round shows it at any length above one."),
        ),
    ),
    Number(
        "17.q4",
        "Nine faults, five seeds. How many of the nine end, on every seed, with a higher reported loss than the "
        "healthy model of that seed?",
        2,
        "Two of nine. Some of the others even report a lower loss than the healthy model.",
        (
            (9, "Then the loss would be all one needs; the table that follows shows otherwise."),
            (5, "Fewer: in most of these faults the loss looks as it should, or better."),
            (0, "Two do show: where the answer cannot be found at all, and where weights cannot be learned well."),
            (1, "One more."),
        ),
        "Count those in which something the task needs is lost; a leak makes the loss lower.",
        tolerance=0.2,
        high=9.0,
    ),
)
