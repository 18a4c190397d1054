"""What notebook 03 asks to predict: heads that share a matrix, what is swapped, and which words ask."""

from __future__ import annotations

from .model import Choice, Number

NOTEBOOK_03 = (
    Number("03.p1", "Which share of the colours does a head with Q = K get right?", 0, 1, close=0.06, decimals=2),
    Number("03.p2", "How many of the eight heads called “shifted” get more than 95 % right?", 0, 8),
    Choice(
        "03.p3",
        "The first two tokens swap both their keys and their values. What do the answers say?",
        (
            "The two tokens have swapped their questions.",
            "Whoever looks for one of the two names the other's colour.",
            "Whoever looks for one of the two can only guess.",
            "The same as before.",
        ),
        right="D",
    ),
    Number("03.p4", "What weight does the cue give to the noun, in head 2?", 0, 1, close=0.05, decimals=2),
    Choice(
        "03.p5",
        "Which of the two alone turns the bank over?",
        ("The other cue's value.", "The other cue's key.", "Either of them.", "Neither: it takes both."),
        right="A",
    ),
    Choice(
        "03.p6",
        "Can a head with one matrix for keys and values learn our task?",
        (
            "Yes, and width 2 is enough, as with three matrices.",
            "Yes, but it has to be wider.",
            "Half of it, as with Q = K, at any width.",
            "No: without values of its own it does no better than guessing.",
        ),
        right="B",
    ),
)
