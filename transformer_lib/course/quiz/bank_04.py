"""The questions of notebook 04: scaled dot-product attention."""

from __future__ import annotations

from .model import Choice, Number, Option

NOTEBOOK_04 = (
    Choice(
        "04.q1",
        "Components of queries and keys are independent with mean 0 and variance 1. d_k grows from 64 to 256. "
        "How does the typical size (standard deviation) of q · k change?",
        (
            Option("It stays the same.", "More terms are added up; independent terms add their variances."),
            Option(
                "It doubles.",
                "The variance grows fourfold, from 64 to 256; its root grows from 8 to 16. That root "
                "is the √d_k in the formula.",
                right=True,
            ),
            Option("It grows fourfold.", "The variance does. The standard deviation is its root."),
            Option("It grows sixteenfold.", "d_k grows fourfold, and so does the variance: nothing is squared."),
        ),
    ),
    Number(
        "04.q2",
        "With d_k = 16, a query has the dot products 6 and 4 with two keys. What weight does scaled dot-product "
        "attention give the first key, to two decimals?",
        0.622,
        "6/4 = 1.5 and 4/4 = 1; softmax(1.5, 1) = (0.62, 0.38).",
        (
            (0.881, "That is softmax(6, 4): the division by √16 = 4 is missing."),
            (0.531, "You divided by d_k = 16; the formula divides by √d_k = 4."),
            (0.6, "That is 6 / (6 + 4), without the exponential. Or did you round? Give two decimals."),
            (0.378, "That is the weight of the second key."),
        ),
        "Divide both by √16, take exponentials, and divide the first by their sum.",
        tolerance=0.006,
    ),
    Choice(
        "04.q3",
        "You add 100 to every score of one query, then take the softmax, in exact arithmetic. What happens to its "
        "weights?",
        (
            Option("They all grow.", "They sum to one, before and after: they cannot all grow."),
            Option(
                "The largest gets almost everything.",
                "That happens when scores are multiplied by a large number; adding keeps their differences.",
            ),
            Option(
                "Nothing.",
                "exp(s + 100) = exp(100) exp(s), and the factor exp(100) is in the sum below the line, too, so that it "
                "cancels.",
                right=True,
            ),
            Option("They no longer sum to one.", "The softmax divides by the sum, whatever the scores are."),
        ),
    ),
)
