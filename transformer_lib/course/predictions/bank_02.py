"""What notebook 02 asks to predict: whom a word reads, what repetition does, and who can point at whom."""

from __future__ import annotations

from .model import Choice, Number

NOTEBOOK_02 = (
    Number("02.p1", "How many of the four words attend most to themselves?", 0, 4),
    Choice(
        "02.p2",
        "'Show' gives 'the' a weight of .28. What does 'the' give to 'Show'?",
        ("More than .28.", "The same .28.", "Less than .28."),
        right="C",
    ),
    Choice(
        "02.p3",
        "After twelve rounds, where is the spread below .01?",
        (
            "For length 4, the loud ones.",
            "For length 1 alone.",
            "For lengths 1 and 2.",
            "For all three.",
            "For none of them: they come closer, but not as close as that.",
        ),
        right="C",
    ),
    Number(
        "02.p4", "Doubled in each round, without the own vector: how many of 20 sentences stay apart?", 0, 20, close=2
    ),
    Number("02.p5", "How many of the eight symbols can give most of their weight to the next?", 0, 8),
    Number(
        "02.p6",
        "After 3,000 steps, in which share of the cases is 'similarity' right?",
        0,
        1,
        close=0.02,
        decimals=2,
    ),
)
