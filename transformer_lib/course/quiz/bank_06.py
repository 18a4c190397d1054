"""The questions of notebook 06: positional encoding."""

from __future__ import annotations

from .model import Choice, Number, Option

NOTEBOOK_06 = (
    Choice(
        "06.q1",
        "A head without positions reads 'Show me the money', then 'money me the Show'. What happens to the four output "
        "vectors?",
        (
            Option(
                "All four change, since the sentence means something else.",
                "Nothing in the formula knows where a row stands; each query meets the same four keys as before.",
            ),
            Option(
                "They are the same four vectors, in the new order.",
                "Each token meets the same keys and values, so it gets the same blend; only its row moves.",
                right=True,
            ),
            Option(
                "They stay in the same rows: the output ignores the order altogether.",
                "The rows move with their tokens. A plain sum over the tokens would ignore the order.",
            ),
            Option(
                "Those of 'me' and 'the' stay, the two that moved change.",
                "The ones that moved meet the same keys and values too; their rows move unchanged.",
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
            (360.0, "That counts degrees; the angles are radians and a full turn is 2π."),
            (100.0, "That is 1/ω_1, the positions for one radian; a full turn is 2π radians."),
        ),
        "The pair has turned once when pos · ω_1 = 2π, with ω_1 = 10000^(−2/4).",
        tolerance=1.0,
        high=100000.0,
    ),
    Choice(
        "06.q3",
        "You add sinusoids to the tokens and move the whole sentence ten places to the right. What stays the same?",
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
            Option("The tokens' vectors after the addition.", "Each gets the encoding of another place added."),
            Option("Nothing at all.", "Products of two encodings stay: they depend on the offset alone."),
        ),
    ),
    Choice(
        "06.q4",
        "A decoder stack with a causal mask gets no positions. Can it learn where a token stands?",
        (
            Option(
                "No: attention is orderless.",
                "That holds while every query sees the same keys. The mask lets each see a different number.",
            ),
            Option(
                "Yes: with the mask, each position sees another number of tokens.",
                "A head that blends all it sees gives the first token a share of 1/n, which tells n.",
                right=True,
            ),
            Option(
                "Yes: the softmax counts the keys in any stack.",
                "Without a mask it counts the same number for every token, so it tells none apart.",
            ),
            Option(
                "Only with the values of later positions.",
                "Those are what the mask hides; what a position does not see is how it is told apart.",
            ),
        ),
    ),
)
