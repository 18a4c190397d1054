"""The questions of notebook 16: cost, speed and scale."""

from __future__ import annotations

from .model import Choice, Number, Option

NOTEBOOK_16 = (
    Number(
        "16.q1",
        "A sentence of four words becomes one of eight. By what factor does the number of attention scores of a head "
        "grow?",
        4,
        "Every token has a score with every token: 16 becomes 64.",
        (
            (2, "The rows of X double; the scores are pairs of rows."),
            (8, "That would be triples of tokens. Scores belong to pairs."),
            (16, "Twice as many queries times twice as many keys: two factors of 2."),
            (1, "A score belongs to a pair of tokens, and there are more pairs now."),
        ),
        "Count the pairs before and after.",
        tolerance=0.01,
        high=100.0,
    ),
    Choice(
        "16.q2",
        "A layer has d_model = 512, 8 heads and d_ff = 2048. Where do most of its multiply-adds go for a sentence of "
        "128 tokens?",
        (
            Option(
                "Into the scores and the blends: they are quadratic.",
                "Quadratic says how they grow. At 128 tokens they take 2 · 128² · 512 multiply-adds, a sixteenth of "
                "the feed-forward network's.",
            ),
            Option("Into the four projections.", "4 · 128 · 512²: half of what the feed-forward network takes."),
            Option(
                "Into the feed-forward network.",
                "2 · 128 · 512 · 2048: twice the projections, and sixteen times the scores and blends.",
                right=True,
            ),
            Option(
                "Into the softmax.",
                "A few operations for each score; the score itself and its part of the blend take 2 · 64.",
            ),
        ),
    ),
    Choice(
        "16.q3",
        "Both sums so far are measured from the largest score so far, 3. Now a key with the score 5 arrives, and from "
        "here on the sums are measured from 5. What happens to the old sums?",
        (
            Option(
                "Nothing: a softmax does not change when all scores are shifted.",
                "When all are shifted by one amount. Here the old terms are measured from 3 and the new one from 5.",
            ),
            Option(
                "They are multiplied by exp(−2).",
                "exp(s − 5) = exp(s − 3) · exp(3 − 5), for every term of the sums.",
                right=True,
            ),
            Option("They are multiplied by exp(2).", "That would measure them from 1."),
            Option("They are computed again from their scores.", "One factor is enough; the scores may be forgotten."),
        ),
        alone=False,
    ),
    Choice(
        "16.q4",
        "Two machines share a batch. Machine A has 10 real tokens, machine B has 30, and each computes the gradient of "
        "the mean loss over its own tokens. How do you get the gradient of the mean over all 40?",
        (
            Option("Average the two.", "Then a token on A would weigh three times as much as one on B."),
            Option("Add the two.", "That is twice their average, with the same fault."),
            Option(
                "One quarter of A's plus three quarters of B's.",
                "Multiplied by its own count each becomes a sum over tokens again; then divide by 40.",
                right=True,
            ),
            Option(
                "Three quarters of A's plus one quarter of B's.",
                "The other way round: B has three times as many tokens.",
            ),
        ),
    ),
)
