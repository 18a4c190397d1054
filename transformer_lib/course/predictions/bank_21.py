"""What notebook 21 asks to predict: a loss, a gap, mistakes made on purpose, a layer that is told, matrices, phases."""

from __future__ import annotations

from .model import Choice, Number

NOTEBOOK_21 = (
    Number("21.p1", "What loss does one layer reach on new strings?", 0, 3.6, close=0.3, decimals=2),
    Choice(
        "21.p2",
        "In strings of period 12, the gap in the weights of one layer is …",
        ("10 places back.", "11 places back.", "12 places back.", "13 places back."),
        right="B",
    ),
    Number("21.p3", "For how many of the 105 pairs are both mistakes made in most strings?", 0, 105, close=12),
    Choice(
        "21.p4",
        "The layer whose keys are told …",
        (
            "copies, at periods that it has never met, too.",
            "copies at the periods of its training, and at no others.",
            "gets about halfway from one plain layer to two.",
            "bets on distances, as the plain layer does.",
        ),
        right="A",
    ),
    Choice(
        "21.p5",
        "The largest numbers of the rows are on the diagonal in …",
        ("table 2 alone.", "tables 2 and 3.", "tables 2, 3 and 4.", "tables 1, 2 and 3.", "all four."),
        right="C",
    ),
    Choice(
        "21.p6",
        "Over 1,500 steps, the model's distance from unigram …",
        (
            "stays about what it is at the start.",
            "grows from the first steps on.",
            "falls, and stays small to the end.",
            "falls, and then grows again.",
        ),
        right="D",
    ),
)
