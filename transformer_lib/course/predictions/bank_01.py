"""What notebook 01 asks to predict: weights, steps, and who remembers a symbol."""

from __future__ import annotations

from .model import Choice, Number

NOTEBOOK_01 = (
    Number("01.p1", "What is honey's weight, roughly?", 0, 1, close=0.04, decimals=2),
    Number("01.p2", "How many of the four entries find themselves?", 0, 4),
    Number("01.p3", "Where does c land, from 1, with a slope of 3.227 and a rate of 0.02?", 0, 2, 0.005, 3),
    Choice(
        "01.p4",
        "The loss begins at 1.27. Where is it after 20 steps?",
        (
            "Near 0 at both rates.",
            "Hardly lower at 0.001, and near 0 at 1.1.",
            "Hardly lower at 0.001, and a thousand times as large at 1.1.",
            "Lower at 0.001, and where it began at 1.1.",
        ),
        right="C",
    ),
    Number("01.p5", "Which share of 20 symbols does the LSTM name?", 0, 1, close=0.08, decimals=2),
    Choice(
        "01.p6",
        "Who names the first of 20 symbols nearly always?",
        (
            "All but the plain RNN.",
            "Attention, and the RNN with attention.",
            "These two, and the LSTM with the open gate.",
            "Everybody.",
        ),
        right="C",
    ),
)
