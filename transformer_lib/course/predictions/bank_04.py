"""What notebook 04 asks to predict: a match, a gradient, a control, equal steps, and what NaN spoils."""

from __future__ import annotations

from .model import Choice, Number

NOTEBOOK_04 = (
    Number("04.p1", "At d_k = 256, what is the mean dot product with a matching key?", 0, 512, close=13),
    Choice(
        "04.p2",
        "Without the division, as d_k grows from 1 to 1,024, the mean size of J …",
        ("falls all the way.", "first falls, then rises.", "first rises, then falls.", "rises all the way."),
        right="C",
    ),
    Number(
        "04.p3",
        "What is the accuracy of the undivided model after 250 steps?",
        0,
        1,
        close=0.1,
        decimals=2,
    ),
    Choice(
        "04.p4",
        "At which learning rates does the small start need about as many steps as the divided model?",
        ("At all seven.", "At the small ones.", "At the large ones.", "At none: it starts the same and then differs."),
        right="B",
    ),
    Number("04.p5", "And how many does it need at d_k = 256, at the same rate?", 1, 1250, close=3),
    Choice(
        "04.p6",
        "Which rows of the three gradients contain NaN?",
        (
            "None: the NaN has been replaced.",
            "That of the query of “the”, and no other.",
            "Those of the query and of the key of “the”.",
            "That of the query of “the”, and those of all four keys.",
        ),
        right="D",
    ),
)
