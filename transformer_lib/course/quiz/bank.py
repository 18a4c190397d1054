"""The questions of the course, by notebook."""

from __future__ import annotations

from .bank_00 import NOTEBOOK_00
from .bank_02 import NOTEBOOK_02
from .bank_03 import NOTEBOOK_03
from .bank_05 import NOTEBOOK_05
from .bank_06 import NOTEBOOK_06
from .bank_07 import NOTEBOOK_07
from .bank_08 import NOTEBOOK_08
from .bank_09 import NOTEBOOK_09
from .bank_10 import NOTEBOOK_10
from .bank_11 import NOTEBOOK_11
from .bank_12 import NOTEBOOK_12
from .bank_13 import NOTEBOOK_13
from .bank_14 import NOTEBOOK_14
from .bank_15 import NOTEBOOK_15
from .bank_16 import NOTEBOOK_16
from .bank_17 import NOTEBOOK_17
from .bank_A import NOTEBOOK_A
from .model import Choice, Number, Option

NOTEBOOK_01 = (
    Choice(
        "01.q1",
        "You store one of the pairs a second time: the same key and the same value. What do the softmax weights do?",
        (
            Option(
                "Nothing: a copy adds no information.",
                "The softmax sums over entries, and there is one more of them: every weight changes.",
            ),
            Option(
                "The two copies get equal weights, and all other weights shrink.",
                "Weights are shares of a whole. The copy claims as large a share as the original, so together they "
                "take more than one did, and the others less.",
                right=True,
            ),
            Option(
                "The two copies share the weight that the one had; the others keep theirs.",
                "That would hold if only distinct keys counted. The softmax counts entries: the sum it divides by "
                "grows, so the others shrink too.",
            ),
            Option(
                "The lookup fails, since keys must differ.",
                "A dictionary would refuse. A soft lookup has no such rule: equal keys just get equal weights.",
            ),
        ),
    ),
    Number(
        "01.q2",
        "A query scores 1 with the first key and 0 with the second. What is the softmax weight of the first, to two "
        "decimals?",
        0.731,
        "exp(1) / (exp(1) + exp(0)) = 2.718 / 3.718 = 0.73.",
        (
            (1.0, "That is the hard lookup, winner takes all. A softmax always leaves something for the others."),
            (0.5, "Equal weights need equal scores; here they differ by 1."),
            (0.269, "That is the weight of the second key."),
            (2.718, "That is exp(1); divide it by the sum over both keys."),
        ),
        "Take the exponential of both scores and divide the first by their sum.",
        tolerance=0.006,
        high=5.0,
    ),
    Choice(
        "01.q3",
        "The temperature grows without bound. What does the soft lookup return?",
        (
            Option("The value of the best key.", "That is the other end: the temperature falls to 0."),
            Option("Zero.", "Each weight falls to 1 / number of keys, and the weights still sum to one."),
            Option(
                "The plain mean of all values.",
                "All scores shrink to 0, so all weights become equal: mean pooling.",
                right=True,
            ),
            Option(
                "The value of the worst key.",
                "That would take a negative temperature; a high one just makes the scores alike.",
            ),
        ),
    ),
    Choice(
        "01.q4",
        "All components of one query are zero. What does it get?",
        (
            Option("Nothing: the zero vector.", "The weights still sum to one, so some values must come through."),
            Option(
                "The plain mean of the values it may see.",
                "Every score is 0, equal scores give equal weights: no focus, yet no abstention.",
                right=True,
            ),
            Option("The value of the first key.", "Nothing favours the first: all scores are equal."),
            Option("An error, since 0 / 0 is undefined.", "The softmax divides by a sum of exponentials exp(0) = 1."),
        ),
    ),
)

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
            Option("It grows sixteenfold.", "That would be the square of what the variance does."),
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
            (0.6, "That is 6 / (6 + 4): the exponential is missing."),
            (0.378, "That is the weight of the second key."),
        ),
        "Divide both by √16, take exponentials, and divide the first by their sum.",
        tolerance=0.006,
    ),
    Choice(
        "04.q3",
        "You add 100 to every score of one query, then take the softmax. What happens to its weights?",
        (
            Option("They all grow.", "They sum to one, before and after: they cannot all grow."),
            Option(
                "The largest gets almost everything.",
                "That happens when scores are multiplied by a large number; adding keeps their differences.",
            ),
            Option(
                "Nothing.",
                "exp(s + 100) = exp(100) exp(s), and the factor cancels. This is why one may subtract "
                "the largest score to keep exp from overflowing.",
                right=True,
            ),
            Option("They no longer sum to one.", "The softmax divides by the sum, whatever the scores are."),
        ),
    ),
)

QUESTIONS = (
    *NOTEBOOK_00,
    *NOTEBOOK_01,
    *NOTEBOOK_02,
    *NOTEBOOK_03,
    *NOTEBOOK_04,
    *NOTEBOOK_05,
    *NOTEBOOK_06,
    *NOTEBOOK_07,
    *NOTEBOOK_08,
    *NOTEBOOK_09,
    *NOTEBOOK_10,
    *NOTEBOOK_11,
    *NOTEBOOK_12,
    *NOTEBOOK_13,
    *NOTEBOOK_14,
    *NOTEBOOK_15,
    *NOTEBOOK_16,
    *NOTEBOOK_17,
    *NOTEBOOK_A,
)
