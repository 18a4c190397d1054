"""What notebook 14 asks to predict: rows of a decoder, beams, stories, and how often a drawn translation is right."""

from __future__ import annotations

from .model import Choice, Number

NOTEBOOK_14 = (
    Number("14.p1", "How many rows does the decoder compute for 40 tokens, all steps together?", 40, 2000, close=20),
    Number("14.p2", "Of the 920 sentences, how many are right with eight beams, on the average?", 0, 920, close=8),
    Choice(
        "14.p3",
        "The storyteller continues “Today the” greedily, for a hundred words. What will it be?",
        (
            "One good sentence after another, each of them a new one.",
            "Good sentences at first, and broken ones after a while.",
            "One good sentence, and then the same one again and again.",
            "Shorter and shorter sentences, since each word has its cost.",
        ),
        right="C",
    ),
    Number("14.p4", "Of a hundred sentences, how many are different if eight beams search?", 0, 100, close=8),
    Number(
        "14.p5", "One in ten to the power of how many is the probability of that sentence?", 0, 12, close=1, decimals=1
    ),
    Number("14.p6", "What share of the drawn translations is exactly right?", 0, 1, close=0.05, decimals=2),
)
