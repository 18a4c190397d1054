"""What notebook 06 asks to predict: drowned words, what is learned within the trained length and beyond, an echo."""

from __future__ import annotations

from .model import Choice, Number

NOTEBOOK_06 = (
    Number("06.p1", "What is the cosine of the two words at position 50?", -1, 1, close=0.05, decimals=2),
    Choice(
        "06.p2",
        "After 2,500 steps, which kinds are right nearly everywhere, with every seed?",
        (
            "The sinusoids alone.",
            "The sinusoids and the learned positions.",
            "These two, and one number with two heads.",
            "All but the layer without positions.",
        ),
        right="B",
    ),
    Number(
        "06.p3",
        "Which share of the letters at positions 16 to 63 do the sinusoidal layers get right?",
        0,
        1,
        close=0.1,
        decimals=2,
    ),
    Choice(
        "06.p4",
        "Which bias is right more than nine times in ten, at positions 16 to 63?",
        ("Both of them.", "The one clipped at 16.", "Neither of them.", "The one clipped at 8."),
        right="D",
    ),
    Choice(
        "06.p5",
        "At positions 4 to 15, with one head, who is right nearly always?",
        (
            "Sinusoids, learned positions and rotary.",
            "Sinusoids and rotary, but not the learned positions.",
            "Rotary alone, since the others add.",
            "None of them: one head is not enough.",
        ),
        right="A",
    ),
    Number("06.p6", "How many positions back is that letter?", 16, 63, close=1),
)
