"""The questions of notebook 08: several heads."""

from __future__ import annotations

from .model import Choice, Number, Option

NOTEBOOK_08 = (
    Choice(
        "08.q1",
        "One head lets 'Show' read 'me' and 'money', half of the weight each. Now these two words trade positions. "
        "What happens to the output of 'Show'?",
        (
            Option(
                "It changes: the words now stand elsewhere.",
                "The weights belong to the positions, and both are ½: ½ a + ½ b is ½ b + ½ a.",
            ),
            Option(
                "Nothing: the sum of the two halves is the same.",
                "The head hands over a blend. Who stood where is not in it.",
                right=True,
            ),
            Option("It doubles.", "The weights still sum to one."),
            Option(
                "It depends on W_V.",
                "Whatever W_V makes of the two words, equal weights add the two results in either order.",
            ),
        ),
        alone=False,
    ),
    Number(
        "08.q2",
        "X is [2, 5, 12], and 3 heads share d_model = 12. How many numbers are in all attention weights together?",
        150,
        "Weights are [batch, n_heads, q_len, k_len]: 2 · 3 · 5 · 5 = 150.",
        (
            (50, "That is one head; each of the 3 has a grid of its own."),
            (75, "That is one sentence; there are 2 in the batch."),
            (120, "That is the size of Q, K or V, [2, 3, 5, 4]. Weights have a row and a column per token."),
            (25, "That is one grid; there is one per sentence and head."),
        ),
        "One grid of seq_len × seq_len for each sentence and each head.",
        tolerance=0.5,
        high=1000.0,
    ),
    Choice(
        "08.q3",
        "W_O is replaced by the identity, with n_heads · d_v = d_model. What can the layer no longer do?",
        (
            Option("Attend to more than one token.", "The weights are made by Q and K, long before W_O."),
            Option("Restore the width d_model.", "The heads side by side have that width already; W_O is square here."),
            Option(
                "Let one column of the output depend on several heads.",
                "Each head then fills its own columns and no others; adding up what heads have found is W_O's work.",
                right=True,
            ),
            Option("Learn anything.", "W_Q, W_K and W_V are still trained."),
        ),
    ),
    Choice(
        "08.q4",
        "Two heads start with exactly the same numbers in all matrices, their rows of W_O included. Suppose that no "
        "rounding disturbs them. After training …",
        (
            Option(
                "… they have specialised, since the loss rewards it.",
                "Both get the same gradient at every step, so the loss has no way to pull them apart.",
            ),
            Option(
                "… they are still the same head.",
                "Equal numbers give equal outputs and equal gradients, step after step.",
                right=True,
            ),
            Option("… the second has died out.", "It moves exactly as the first one does."),
            Option(
                "… nothing can be said; it depends on the data.",
                "For every batch the two gradients are equal, whatever the data.",
            ),
        ),
    ),
)
