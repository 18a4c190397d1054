"""What notebook 23 asks to predict: a share, bytes, an order of rows, a limit, and sums asked in two ways."""

from __future__ import annotations

from .model import Choice, Number

NOTEBOOK_23 = (
    Number("23.p1", "What percentage of all the numbers belongs to attention?", 0, 100, close=5),
    Number("23.p2", "How many of the 256 bytes have no token?", 0, 256, close=8),
    Choice(
        "23.p3",
        "With the rows of its queries and keys as they are in the file, the model …",
        (
            "stops with an error: something no longer fits.",
            "writes signs and syllables without any sense.",
            "says the same as before, since a dot product has no order.",
            "writes English that you might not suspect.",
        ),
        right="D",
    ),
    Number(
        "23.p4",
        "How many times as many tokens a second would memory allow, compared with the cache?",
        1,
        100,
        close=1.5,
        decimals=1,
    ),
    Number("23.p5", "How many of 20 sums are right in a chat, in words?", 0, 20, close=2),
    Number("23.p6", "How many of 20 are right in signs, behind three others, on average?", 0, 20, close=2, decimals=1),
)
