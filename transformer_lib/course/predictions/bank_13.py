"""What notebook 13 asks to predict: a rate that explodes, a rival without a warm-up, certainty, and a hard test set."""

from __future__ import annotations

from .model import Number

NOTEBOOK_13 = (
    Number("13.p1", "Up to which learning rate does SGD not explode in this valley?", 0, 1, close=0.005, decimals=3),
    Number(
        "13.p2",
        "Pre-norm, rate .003, no warm-up: what share of the sentences is exactly right (mean of three seeds)?",
        0,
        1,
        close=0.1,
        decimals=2,
    ),
    Number(
        "13.p3",
        "Where its word is wrong, which probability does the model give that word after 712 steps, on average?",
        0,
        1,
        close=0.1,
        decimals=2,
    ),
    Number(
        "13.p4",
        "What share of the hard sentences does your model translate exactly?",
        0,
        1,
        close=0.1,
        decimals=2,
    ),
)
