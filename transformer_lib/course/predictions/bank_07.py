"""What notebook 07 asks to predict: what a hidden word still does, two writers, and what the worse one knows."""

from __future__ import annotations

from .model import Choice, Number

NOTEBOOK_07 = (
    Choice(
        "07.p1",
        "In which versions do the visible weights notice that the hidden score has risen?",
        ("In none of them.", "In the first only.", "In the first and the second.", "In all three."),
        right="B",
    ),
    Number("07.p2", "At how many of the five positions do the two losses agree?", 0, 5),
    Choice(
        "07.p3",
        "Whose sentences will follow the language more closely?",
        ("Ada's.", "Ben's.", "Both will do about equally well."),
        right="A",
    ),
    Number("07.p4", "Position 3 gets another word. How many of Ben's eight rows move?", 0, 8),
    Choice(
        "07.p5",
        "Ben's last word is at position 7, and he sees 1, 2, … or all 8 of the last words. His loss is …",
        (
            "near 1.5 throughout, since one word is all that counts.",
            "about 2.1 for one word, and falls slowly to 1.5.",
            "far above 2.1 for one word, and falls with every further one.",
            "far above 2.1 up to seven words, and then drops to 1.5.",
        ),
        right="C",
    ),
    Number(
        "07.p6",
        "All rows read the same. What is Ben's mean loss?",
        0,
        7,
        close=0.3,
        decimals=2,
    ),
)
