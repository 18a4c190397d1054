"""What notebook 19 asks to predict: a perplexity, a temperature, a mask that shows too much, gaps, a wrong port."""

from __future__ import annotations

from .model import Choice, Number

NOTEBOOK_19 = (
    Number("19.p1", "What is the stack's perplexity after its 400 steps?", 1, 105, close=0.5, decimals=1),
    Number("19.p2", "What share of the stack's sentences is grammatical at T = 0.3?", 0, 1, close=0.1, decimals=2),
    Number("19.p3", "What is the writer's perplexity under the full mask?", 1, 100, close=4, decimals=1),
    Number("19.p4", "What share is grammatical if the gaps are filled one at a time?", 0, 1, close=0.1, decimals=2),
    Choice(
        "19.p5",
        "What happens when GPT-2's weights are loaded with ReLU in place of GELU?",
        (
            "An error: the shapes of the weights do not fit.",
            "Word salad: its perplexity is above 20.",
            "Fluent German: its perplexity is below 4.",
            "The same words as before, every one of them.",
        ),
        right="C",
    ),
    Choice(
        "19.p6",
        "Which one takes more multiply-adds for a pair of sentences, at equal parameters?",
        (
            "The encoder-decoder, by about a fifth.",
            "Both take equally many.",
            "The single stack, by about a fifth.",
            "The single stack, nearly twice as many.",
        ),
        right="D",
    ),
)
