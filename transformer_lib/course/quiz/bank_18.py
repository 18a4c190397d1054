"""The questions of notebook 18: the whole Transformer by hand."""

from __future__ import annotations

from .model import Choice, Number, Option

NOTEBOOK_18 = (
    Choice(
        "18.q1",
        "x has shape [2, 7, 5] and W [11, 5], so g_y has shape [2, 7, 11]. Over which axes do you add up g_y to get "
        "the gradient of b?",
        (
            Option(
                "The first: sentences.",
                "That leaves [7, 11], a bias for each place. But the same b was added at every place.",
            ),
            Option(
                "The first two: sentences and tokens.",
                "The same b was added to each of the 14 tokens, and each asks for its own change. What is left, [11], "
                "has the shape of b.",
                right=True,
            ),
            Option("The last: features.", "That leaves one number per token; b has one number per feature."),
            Option(
                "None: b gets g_y as it is.",
                "g_y has 2 · 7 · 11 numbers and b only 11. One bias that serves 14 tokens hears all of them.",
            ),
        ),
    ),
    Number(
        "18.q2",
        "A decoder has six layers. How many gradients are added up to that of the memory? (Count all heads of a layer "
        "together.)",
        12,
        "Each of the six layers makes keys from the memory, and values: two uses per layer, each with its own matrix.",
        (
            (6, "That counts the layers. Each uses the memory twice."),
            (18, "The queries come from the decoder's own tokens, so only keys and values use the memory."),
            (2, "That is one layer. Every decoder layer reads the same memory."),
            (1, "Only if one layer read it once. Every layer makes keys and values of its own from the memory."),
            (24, "In a layer, which projections does the memory enter? Not W_Q, and W_O only by way of the values."),
        ),
        "Which projections of a cross-attention does the memory enter, and in how many layers?",
        tolerance=0.01,
        high=60.0,
    ),
    Number(
        "18.q3",
        "β₁ = 0.9, β₂ = 0.98, both means start at zero, and the correction is forgotten. How large is the first step, "
        "as a multiple of the learning rate? (Two decimals; ε is negligible.)",
        0.71,
        "The mean holds 0.1 g and the mean of squares 0.02 g², so the step is 0.1 / √0.02 = 0.71 of the rate.",
        (
            (1.0, "That is with the correction. Without it, the means hold only 0.1 g and 0.02 g²."),
            (
                0.1,
                "That is the mean alone, or divided by √0.98. The mean of squares holds 0.02 g²: divide by its root.",
            ),
            (5.0, "You divided 0.1 by 0.02; the step divides by the root of the mean of squares."),
            (0.14, "That is √0.02, the divisor. The mean of the gradients above it is 0.1 g."),
            (7.07, "That is 1 / √0.02. The mean of the gradients above it is 0.1 g, not g."),
            (1.41, "You divided √0.02 by 0.1: the mean of the gradients stands above."),
            (0.91, "That is 0.9 / √0.98. The new gradient enters each mean with 1 − β; β is the share of the old."),
        ),
        "What do the two means hold after one step? The new gradient enters each with 1 − β.",
        tolerance=0.012,
        high=10.0,
    ),
)
