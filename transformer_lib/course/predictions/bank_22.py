"""What notebook 22 asks to predict: a step for eight, two drafts, a batch that is joined, a full server."""

from __future__ import annotations

from .model import Choice, Number

NOTEBOOK_22 = (
    Number("22.p1", "How many times as long does a step for 8 sentences take?", 0.5, 20, close=0.5, decimals=1),
    Number("22.p2", "What share of the tokens that the target judges stands?", 0, 1, close=0.1, decimals=2),
    Number("22.p3", "How many tokens does a call bring with the counted five-grams?", 1, 5, close=0.15, decimals=2),
    Number("22.p4", "How many times as fast is decoding with the small network, γ = 4?", 0, 5, close=0.2, decimals=1),
    Number("22.p5", "How many steps does it take if requests join?", 1, 27),
    Choice(
        "22.p6",
        "With room for 16 instead of one, when do two of the clients have their whole answers?",
        (
            "The first sooner, and the last sooner.",
            "The first sooner, and the last later.",
            "The first later, and the last later.",
            "The first later, and the last sooner.",
        ),
        right="D",
    ),
)
