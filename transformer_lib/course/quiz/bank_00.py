"""The questions of notebook 00."""

from __future__ import annotations

from .model import Choice, Option

NOTEBOOK_00 = (
    Choice(
        "00.q1",
        "A sentence of 4 tokens, each a row of 3 numbers, is multiplied by a matrix of shape [3, 2]. "
        "What shape has the result?",
        (
            Option(
                "[4, 2]",
                "Each of the 4 rows of 3 numbers becomes a row of 2 numbers: the shared axis, 3, is summed away.",
                right=True,
            ),
            Option("[2, 4]", "That is the same result with tokens as columns; here tokens are rows."),
            Option("[3, 3]", "The axis of length 3 is the one that is summed over, so it does not remain."),
            Option("[4, 3, 2]", "The axis of length 3 is summed over in each product, so it does not remain."),
        ),
    ),
    Choice(
        "00.q2",
        "Weights have the shape [q_len, k_len]: row i belongs to query i. Over which axis does the softmax run?",
        (
            Option(
                "Over axis 0, the queries.",
                "Then each key would share itself out among the queries, and a query "
                "could get weights that sum to anything.",
            ),
            Option(
                "Over axis 1, the keys.",
                "Each query spreads a total weight of one over the keys: every row sums to one.",
                right=True,
            ),
            Option(
                "Over both at once.",
                "Then the queries would compete for weight, and only the sum of all entries would be one.",
            ),
        ),
    ),
    Choice(
        "00.q3",
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
