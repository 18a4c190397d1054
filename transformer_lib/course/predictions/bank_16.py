"""What notebook 16 asks to predict: shares of work, lengths, a largest tensor, a race, and what autograd keeps."""

from __future__ import annotations

from .model import Number

NOTEBOOK_16 = (
    Number("16.p1", "What share of our translator's multiply-adds goes to the pairs, in percent?", 0, 100, close=2),
    Number("16.p2", "With twice the memory, how many times as long may the text be?", 1, 4, close=0.1, decimals=2),
    Number("16.p3", "How large is the largest tensor of the whole computation, in MiB?", 0, 2000, close=0.5),
    Number(
        "16.p4",
        "At 4,096 tokens, how many times the time of the grid do the blocks take? (2: twice as long; 0.5: half.)",
        0,
        20,
        close=0.2,
        decimals=2,
    ),
    Number(
        "16.p5",
        "What percentage of the grid's time does it take once its memory is ready (4,096 tokens)?",
        0,
        200,
        close=12,
    ),
    Number("16.p6", "How many MiB does autograd keep of the blocks?", 0, 100, close=2, decimals=1),
)
