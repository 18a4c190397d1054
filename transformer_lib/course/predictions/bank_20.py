"""What notebook 20 asks to predict: a cache, a window, a large rate, two cures, a wrong port, and slow pairs."""

from __future__ import annotations

from .model import Choice, Number

NOTEBOOK_20 = (
    Number("20.p1", "How many times smaller is today's cache after 1,000 tokens?", 1, 1000, close=10),
    Number(
        "20.p2",
        "How many nats a word does today's model come to at eight times the rate?",
        1,
        3,
        close=0.05,
        decimals=2,
    ),
    Choice(
        "20.p3",
        "A window of 4 costs .03 nats after 400 steps. After 2,000 steps it costs …",
        (
            "next to nothing: the model has learned to get by.",
            "about the same: what is hidden stays hidden.",
            "several times as much.",
        ),
        right="C",
    ),
    Choice(
        "20.p4",
        "At eight times the rate, a tenth of it for W_V and W_O alone, which make no scores, …",
        (
            "changes nothing: the scores explode as before.",
            "repairs about half of the damage.",
            "repairs it as well as QK-norm does.",
            "makes it worse: one half of the head runs away from the other.",
        ),
        right="B",
    ),
    Number(
        "20.p5",
        "Of 100 sentences by the model with neighbouring pairs, how many are grammatical?",
        0,
        100,
        close=12,
    ),
    Number("20.p6", "How many of the 64 pairs make less than one turn within 8,192 tokens?", 0, 64, close=5),
)
