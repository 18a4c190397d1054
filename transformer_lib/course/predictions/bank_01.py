"""What notebook 01 asks to predict: weights, steps, and who remembers a symbol."""

from __future__ import annotations

from .model import Choice, Number

NOTEBOOK_01 = (
    Number("01.p1", "What is honey's weight, roughly?", 0, 1, close=0.04, decimals=2),
    Number("01.p2", "How many of the four entries find themselves?", 0, 4),
    Choice(
        "01.p3",
        "The loss begins at 1.27. Where is it after 20 steps?",
        (
            "Near 0 at both rates.",
            "Hardly lower at 0.001, and near 0 at 1.1.",
            "Hardly lower at 0.001, and far above where it began at 1.1.",
            "Lower at 0.001, and where it began at 1.1.",
        ),
        right="C",
    ),
    Number(
        "01.p4",
        "With 20 symbols, in which share of the sequences does the LSTM name the right one?",
        0,
        1,
        close=0.08,
        decimals=2,
    ),
    Choice(
        "01.p5",
        "Who names the first of 20 symbols nearly always?",
        (
            "All but the plain RNN.",
            "Attention, and the RNN with attention.",
            "These two, and the LSTM with the open gate.",
            "Everybody.",
        ),
        right="C",
    ),
    Number("01.p6", "Of ten RNNs whose gradient is halved at each step back, how many learn it?", 0, 10),
)
