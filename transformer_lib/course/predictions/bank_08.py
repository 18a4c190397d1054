"""What notebook 08 asks to predict: one average and two letters, who reads what, and what cutting a head costs."""

from __future__ import annotations

from .model import Choice, Number

NOTEBOOK_08 = (
    Number("08.p1", "Positions are added: in how many of the four cases can the second letter be right?", 0, 4),
    Number(
        "08.p2",
        "One head of width 32: which share of the letters three back does it get right?",
        0,
        1,
        close=0.08,
        decimals=2,
    ),
    Number("08.p3", "In how many of the ten models have the two heads divided the letters between them?", 0, 10),
    Choice(
        "08.p4",
        "'seal' may not read 'beach' in one head of layer 1. Which cuts turn the animal into a thing?",
        (
            "The one in head 2, and the one in head 3.",
            "Only the one in head 3.",
            "Neither: each covers for the other.",
            "Only the one in head 2.",
        ),
        right="D",
    ),
    Number("08.p5", "How many of the 40 cuts leave at least nine in ten nouns right?", 0, 40, close=4),
    Number("08.p6", "The mask is not inverted: how many of the first four tokens notice?", 0, 4),
)
