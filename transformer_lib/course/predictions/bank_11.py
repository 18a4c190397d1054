"""What notebook 11 asks to predict: shuffled rows, a wrong mask, a hidden verb, and what flips a pronoun."""

from __future__ import annotations

from .model import Choice, Number

NOTEBOOK_11 = (
    Choice(
        "11.p1",
        "Which of the two shuffles moves the output?",
        (
            "Both: the words of a sentence have an order.",
            "Only that of keys and values together.",
            "Only that of the keys alone.",
            "Neither: a softmax does not look at the order.",
        ),
        right="C",
    ),
    Number("11.p2", "With an encoder layer, at how many of the six positions is the letter right?", 0, 6),
    Choice(
        "11.p3",
        "What do the 18 translations say in place of “überquerte”?",
        (
            "“überquerte” all the same: the street gives it away.",
            "One other verb, the same one in all 18.",
            "No verb at all: subject, object, “nicht”.",
            "Some verb, a different one for each animal.",
        ),
        right="B",
    ),
    Number("11.p4", "In how many of the four other trainings do all 18 say “fraß”, too?", 0, 4),
    Number("11.p5", "The twin's row for the first noun: in how many of the 72 does the pronoun flip?", 0, 72, close=3),
    Number("11.p6", "In how many of the four others does the twin's adjective flip the pronoun in all 144?", 0, 4),
)
