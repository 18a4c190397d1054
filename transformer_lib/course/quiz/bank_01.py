"""The questions of notebook 01: attention is a lookup."""

from __future__ import annotations

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
            (0.7, "Nearly: give two decimals."),
            (0.368, "That is exp(−1), the ratio of the two weights; divide 1 by 1 + exp(−1)."),
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
                "All scores shrink to 0, so all weights become equal.",
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
                "The plain mean of all values.",
                "Every score is 0, and equal scores give equal weights.",
                right=True,
            ),
            Option("The value of the first key.", "Nothing favours the first: all scores are equal."),
            Option("An error, since 0 / 0 is undefined.", "The softmax divides by a sum of exponentials exp(0) = 1."),
        ),
    ),
    Choice(
        "01.q5",
        "A step of gradient descent has made the loss larger, although the gradient was computed correctly. Why?",
        (
            Option(
                "The learning rate is too large: the step went past the low ground and up the other side.",
                "The slope holds near the place where it was measured. A shorter step from there, along the same "
                "gradient, would have lowered the loss.",
                right=True,
            ),
            Option(
                "The gradient points uphill, so the step should have been added and not subtracted.",
                "It does point uphill, and that is why it is subtracted. Added, even the shortest step would climb.",
            ),
            Option(
                "The parameters were at a minimum already, and every step leads away from one.",
                "At a minimum the gradient is zero, so the step has length zero and the loss stays as it is.",
            ),
            Option(
                "The land is flat there, as at a sharpness of 3.",
                "Where the slope is nearly zero, so is the step: the loss hardly changes, up or down.",
            ),
        ),
    ),
)
