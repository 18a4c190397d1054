"""The questions of notebook 00."""

from __future__ import annotations

from .model import Choice, Option

NOTEBOOK_00 = (
    Choice(
        "00.q1",
        "A sentence has 5 words with 7 features each. What are the shapes of A and of Z = AX?",
        (
            Option(
                "A is [5, 5], Z is [5, 7].",
                "A has a row and a column for each word, and each of the 5 new vectors has 7 features again.",
                right=True,
            ),
            Option(
                "A is [5, 7], Z is [5, 7].",
                "A tells how much each word takes from each word, so it has as many columns as there are words.",
            ),
            Option(
                "A is [5, 5], Z is [5, 5].",
                "A is right. Z consists of blended rows of X, and these have 7 features.",
            ),
            Option(
                "A is [7, 7], Z is [5, 7].",
                "Then A would mix the features of a word. It mixes words, of which there are 5.",
            ),
        ),
    ),
    Choice(
        "00.q2",
        "In this course mask[i, j] is True. What does it say?",
        (
            Option(
                "Query i may attend to key j.",
                "True lets through, everywhere in this course and in PyTorch's scaled_dot_product_attention.",
                right=True,
            ),
            Option(
                "Key j is hidden from query i.",
                "That is the opposite convention, which nn.MultiheadAttention "
                "uses. Check it whenever you read other code.",
            ),
            Option(
                "Query i does attend to key j.",
                "The mask only permits. How much weight the key gets is decided by the scores.",
            ),
            Option(
                "Token j comes before token i.",
                "A causal mask permits just these and the token itself; a mask in general says nothing about order.",
            ),
        ),
    ),
)
