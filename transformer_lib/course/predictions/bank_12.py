"""What notebook 12 asks to predict: a logit, a first loss, slips, a mask, and how often a part runs."""

from __future__ import annotations

from .model import Choice, Number

NOTEBOOK_12 = (
    Choice("12.p1", "Which word gets the highest logit for *Show*?", ("Show.", "me.", "the.", "money."), right="C"),
    Number("12.p2", "What is the first loss of the tied model with the slip?", 0, 60, close=3, decimals=1),
    Number("12.p3", "With how many of the five slips does the right translation still come out?", 0, 5),
    Choice(
        "12.p4",
        "The padding is at the front, and its mask is left out. The logits of the pen's words …",
        (
            "stay where they are.",
            "move by less than 1.",
            "move by more than 5.",
            "become NaN.",
        ),
        right="C",
    ),
    Number("12.p5", "How often does ids_to_logits run while this sentence is written?", 1, 100),
)
