"""What notebook 18 asks to predict: two plans for a walk, an order, slips that train, a step, and a clock."""

from __future__ import annotations

from .model import Choice, Number

NOTEBOOK_18 = (
    Choice(
        "18.p1",
        "How often does plan A call a rule, for twenty doublings?",
        ("40 times.", "About 400 times.", "About 20,000 times.", "About two million times."),
        right="D",
    ),
    Choice("18.p2", "Which gradient does plan B find for t?", ("2.", "10.", "12.", "22."), right="A"),
    Choice(
        "18.p3",
        "The first list, read from its end, and the second …",
        (
            "are equal.",
            "are equal but for a few calls.",
            "have encoder and decoder the other way round.",
            "differ nearly everywhere.",
        ),
        right="B",
    ),
    Number("18.p4", "How many of the nine write at least 99 of 100 letters after 150 steps?", 0, 9),
    Choice(
        "18.p5",
        "Which of these steps comes closest to the slope in double precision?",
        ("0.00000000001", "0.00000001", "0.00001", "0.1"),
        right="C",
    ),
    Number(
        "18.p6", "How many times as long as PyTorch's does a step on your tape take?", 0.1, 1000, close=1.5, decimals=1
    ),
)
