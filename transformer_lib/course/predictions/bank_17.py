"""What notebook 17 asks to predict: a loss, rows with more padding, a leak without weights, and what rings."""

from __future__ import annotations

from .model import Choice, Number

NOTEBOOK_17 = (
    Number("17.p1", "What is the loss when the label is the next word?", 0, 50, close=0.5, decimals=1),
    Number(
        "17.p2", "What share of its rows does the example write with nine more tokens?", 0, 1, close=0.12, decimals=2
    ),
    Choice(
        "17.p3",
        "Later tokens of B's target are replaced. The logits before them …",
        (
            "do not move, since no weight leads there.",
            "move by a rounding error, below 0.001.",
            "move a little, by about 0.1.",
            "move by several units.",
        ),
        right="D",
    ),
    Number("17.p4", "How many of the seven ring at least one of the fourteen instruments?", 0, 7),
    Number("17.p5", "For how many of the nine broken parts does one of the four instruments ring?", 0, 9),
)
