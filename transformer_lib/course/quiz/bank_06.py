"""The questions of notebook 06: positional encoding."""

from __future__ import annotations

from .model import Choice, Number, Option

NOTEBOOK_06 = (
    Choice(
        "06.q1",
        "A sentence has 16 tokens, at positions 0 to 15. By the positions alone, the score of the key at position n is "
        "a + b n. A query stands at position 7. At which key can its score be the largest of all?",
        (
            Option(
                "At any key, with the right W_Q and W_K.",
                "They choose a and b, so they choose how steep the line is. It remains a line, with no peak inside.",
            ),
            Option(
                "Only at position 0 or at position 15.",
                "A straight line rises or falls all the way. (If b = 0, all keys are equal.)",
                right=True,
            ),
            Option(
                "At position 6 or 8, its neighbours.",
                "Nothing in a + b n is special at 7, so nothing is special beside it.",
            ),
            Option(
                "Only at position 7, its own.",
                "The closest number does not give the largest product: 7 · 15 is more than 7 · 7.",
            ),
        ),
    ),
    Number(
        "06.q2",
        "d_model = 4. After how many positions does the slow pair, j = 1, come round to where it was? (To the nearest "
        "whole number.)",
        628.0,
        "ω_1 = 10000^(−2/4) = 0.01, and 2π / 0.01 = 628.3.",
        (
            (6.0, "That is the fast pair, j = 0, with ω_0 = 1."),
            (6283.0, "That takes ω = 0.001; here the exponent is −2/4, so ω_1 = 0.01."),
            (62832.0, "That is 2π · 10000, which no pair reaches: the last exponent is −(d_model − 2)/d_model."),
            (62.83, "That takes 10000^(−1/4) = 0.1; the exponent is −2j/d_model = −2/4."),
            (360.0, "That counts degrees; the angles are radians and a full turn is 2π."),
            (100.0, "That is 1/ω_1, the positions for one radian; a full turn is 2π radians."),
        ),
        "The pair has turned once when p · ω_1 = 2π, with ω_1 = 10000^(−2/4).",
        tolerance=1.0,
        high=100000.0,
    ),
    Choice(
        "06.q3",
        "You add sinusoids to the tokens, and move the whole sentence ten positions to the right. What stays the same?",
        (
            Option(
                "The attention weights, since only offsets matter.",
                "Tokens and encodings are multiplied with each other in the scores, and those products change.",
            ),
            Option(
                "The dot products PE(p) · PE(q) of the encodings alone.",
                "They depend on q − p only. In the scores of the sums they are one part of four.",
                right=True,
            ),
            Option("The tokens' vectors after the addition.", "Each gets the encoding of another position added."),
            Option("Nothing at all.", "Something does: look at the part of the score in which no token occurs."),
        ),
    ),
    Choice(
        "06.q4",
        "A model without positions lets each token see only itself and the earlier ones. Can it learn where a token "
        "stands?",
        (
            Option(
                "No: attention is orderless.",
                "That holds while every query sees the same keys. The mask lets each see a different number.",
            ),
            Option(
                "Yes: with the mask, each position sees a different number of tokens.",
                "A head that blends all it sees gives the first token a share of 1/n, which tells n.",
                right=True,
            ),
            Option(
                "Yes: the softmax counts the keys, with or without a mask.",
                "Without a mask it counts the same number for every token, so it tells none apart.",
            ),
            Option(
                "Only with the values of later positions.",
                "Those are what the mask hides; what a position does not see is how it is told apart.",
            ),
        ),
    ),
)
