"""What notebook 24 asks to predict: where a fact becomes readable and moves, who brings it, and what is brought."""

from __future__ import annotations

from .model import Choice, Number

NOTEBOOK_24 = (
    Number(
        "24.p1", "In front of which layer is Paris among the first hundred words for the first time?", 0, 30, close=2
    ),
    Choice(
        "24.p2",
        "In front of layer 15, what tells France from Germany is …",
        (
            "still all at the country's own word.",
            "half at the country's word, half at the last one.",
            "mostly at the last word, though no lens reads it.",
            "spread over all five words.",
        ),
        right="A",
    ),
    Number(
        "24.p3",
        "What share of the difference reaches the last word in layer 23 when the model is asked for opposites?",
        0,
        1,
        close=0.1,
        decimals=2,
    ),
    Number("24.p4", "How many of the 270 heads recover more than a third of the difference?", 0, 270, close=1),
    Choice(
        "24.p5",
        "With the head's output from “The currency of Japan is the”, the capital of Germany is …",
        ("Berlin.", "the yen.", "Tokyo.", "no city and no currency at all."),
        right="C",
    ),
    Number("24.p6", "For how many of 24 countries is the own capital first in what head 23.4 writes?", 0, 24, close=2),
    Choice(
        "24.p7",
        "With the last word's vector of a question for Japan's currency, the run on “The capital of India is” names …",
        ("the capital of India.", "the currency of India.", "the capital of Japan.", "the currency of Japan."),
        right="B",
    ),
)
