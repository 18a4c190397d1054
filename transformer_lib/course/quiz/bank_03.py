"""The questions of notebook 03: queries, keys, values."""

from __future__ import annotations

from .model import Choice, Number, Option

NOTEBOOK_03 = (
    Number(
        "03.q1",
        "Four tokens, d_k = 1. The query of 'the' is 3; the keys are 0, 0, 0 and 1. What weight does the fourth token "
        "get, to two decimals?",
        0.87,
        "exp(3) / (exp(3) + 3 · exp(0)) = 20.1 / 23.1 = 0.87.",
        (
            (1.0, "The softmax leaves something for the three keys that score 0: exp(0) = 1 each."),
            (0.9, "Nearly: give two decimals."),
            (0.95, "That is 20.1 / 21.1, against one other key; there are three."),
            (0.25, "That is an equal share; it takes four equal scores."),
            (0.75, "That would be shares in proportion to 3 and 1; the softmax takes exponentials."),
        ),
        "The scores are 0, 0, 0 and 3. Take exponentials and divide the last by their sum.",
        tolerance=0.006,
        high=2.0,
    ),
    Choice(
        "03.q2",
        "You give the head a sentence twice as long. What grows?",
        (
            Option(
                "W_Q, W_K and W_V, since there are more tokens.",
                "No parameter has a token axis: the same matrices serve every row, however many there are.",
            ),
            Option(
                "Q, K, V twofold, scores and weights fourfold.",
                "Q, K and V have one row per token; the scores have one entry per pair of tokens.",
                right=True,
            ),
            Option(
                "Everything that is computed grows twofold.",
                "True of Q, K, V and the output. The scores are a grid of tokens by tokens.",
            ),
            Option(
                "Nothing: the weights are shared.",
                "The projections are shared and stay as they are; what they produce grows.",
            ),
        ),
    ),
    Choice(
        "03.q3",
        "You change the key of one token, and nothing else. Which weights change, in general?",
        (
            Option(
                "Only the token's own row: what it reads.",
                "That is what its query does. The key is what others, and it itself, compare their queries with.",
            ),
            Option(
                "Only the token's own column: how much it is read.",
                "Its column changes, as the scores do. But the weights of each row sum to one: when one of them grows, "
                "others shrink.",
            ),
            Option(
                "All of them.",
                "The scores change in one column, one in each row. Each row sums to one, so all other weights of the "
                "row move too. (A row whose query is orthogonal to the change does not notice.)",
                right=True,
            ),
            Option(
                "None; only the outputs change.",
                "That is what a new value does. The key enters the scores, and the scores make the weights.",
            ),
        ),
    ),
)
