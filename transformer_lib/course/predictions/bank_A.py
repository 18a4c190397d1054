"""What notebook A asks to predict: heads that look at themselves, a printed table, a miscount, a page of code."""

from __future__ import annotations

from .model import Choice, Number

NOTEBOOK_A = (
    Number("A.p1", "In what share of the rows is a word's largest weight its own?", 0, 1, close=0.06, decimals=2),
    Number("A.p2", "How many of the 12 entries does the paper's formula explain, sines first?", 0, 12),
    Choice(
        "A.p3",
        "The smallest model is 7.4 million off. The largest is off by …",
        (
            "about 7 million: one part was forgotten, and it is the same in all.",
            "about 16 million: the error grows as the width does.",
            "about 100 million: the error grows as the whole model does.",
        ),
        right="B",
    ),
    Choice(
        "A.p4",
        "Which pages, if you run them, keep row 1 from reading words 2 and 3?",
        ("The first and the third.", "The second and the third.", "The third alone.", "All of them."),
        right="C",
    ),
)
