"""What notebook 09 asks to predict: facts, spreads, growing gradients, and runs that do not arrive."""

from __future__ import annotations

from .model import Choice, Number

NOTEBOOK_09 = (
    Number("09.p1", "How many of the 1,024 facts does attention alone know after 5,000 steps?", 0, 1024, close=100),
    Number("09.p2", "And with 64 hidden units behind it?", 0, 1024, close=60),
    Number("09.p3", "How many facts do the same 3,152 weights hold without the ReLU?", 0, 1024, close=120),
    Number("09.p4", "What is the spread after four layers of attention alone?", 0, 1, close=0.05, decimals=2),
    Choice(
        "09.p5",
        "After 24 layers, with every token added back, the spread is above 0.5 …",
        ("for both sizes of weights.", "only for the small weights.", "only for the larger weights.", "for neither."),
        right="B",
    ),
    Choice(
        "09.p6",
        "With residual connections, and with small weights or larger ones, the gradient at the first block is …",
        (
            "much smaller than the one that left the last block: 48 sub-layers are a long way.",
            "about the same: the path through I brings it down unchanged.",
            "larger.",
            "zero for half of the weights, because of the ReLU.",
        ),
        right="C",
    ),
    Choice(
        "09.p7",
        "What do (100, 102, 102, 108) and (0, 20, 20, 80) become?",
        (
            "Both become what (0, 2, 2, 8) became.",
            "Only the first does: the second is ten times as large.",
            "Only the second does: the first has another mean.",
            "Neither does.",
        ),
        right="A",
    ),
    Choice(
        "09.p8",
        "Which of these reach the goal in all of their twelve runs?",
        ("Post-norm with a warm-up.", "Pre-norm.", "Both of them.", "Neither."),
        right="B",
    ),
)
