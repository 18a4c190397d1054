"""The questions of notebook 02: similarity without weights."""

from __future__ import annotations

from .model import Choice, Number, Option

NOTEBOOK_02 = (
    Number(
        "02.q1",
        "river = (2, 0), bank = (1, 1), and the sentence is 'river bank'. What is the first component of the context "
        "vector of 'bank'?",
        1.5,
        "Scores of bank: 2 with river, 2 with itself. Equal scores give equal weights: (2 + 1) / 2.",
        (
            (1.0, "That is bank's own vector; it reads river as well."),
            (2.0, "That is river's vector; bank also reads itself."),
            (3.0, "That is the sum; the weights are ½ each."),
            (0.5, "That is the second component, or a weight; the first components are 2 and 1."),
        ),
        "First the two scores: bank · river and bank · bank. Then the weights, then ½ · 2 + …",
        tolerance=0.006,
        high=4.0,
    ),
    Choice(
        "02.q2",
        "In a sentence of four tokens you double the vector of one. Which weights change?",
        (
            Option(
                "Only its own row: what it reads.",
                "Its scores stand in its row and in its column: the others score it differently too.",
            ),
            Option(
                "Only its own column: how much it is read.",
                "Its own scores doubled as well, so its row changes; and every row is normalised anew.",
            ),
            Option(
                "All sixteen, in general.",
                "Seven scores change, one in every row at least. When one score of a row does, all its weights do.",
                right=True,
            ),
            Option("None: the direction is the same.", "True of cosines. A dot product grows with the length."),
        ),
    ),
    Choice(
        "02.q3",
        "Ten tokens of length 4 still have a spread of about .9 after twelve rounds. What happens if we never "
        "stop, in exact arithmetic?",
        (
            Option(
                "Most stay apart: each reads practically only itself.",
                "However small the other weights are, they are positive, and there is no end to the rounds.",
            ),
            Option(
                "Similar ones join into groups, and the groups stay apart.",
                "The first half is right, and takes long. But groups still read each other a little, as tokens do.",
            ),
            Option(
                "They all end in one point.",
                "Every weight stays above one and the same positive number, so the hull shrinks by at least a fixed "
                "factor in each round. It may take a million of them.",
                right=True,
            ),
            Option(
                "They shrink to the zero vector.",
                "Each stays a mean of the tokens, so the end is a point in their hull. In general that is not zero.",
            ),
        ),
        alone=False,
    ),
    Choice(
        "02.q4",
        "Three symbols a, b, c stand in a ring: a must read b, b must read c, c must read a. Why can no vectors make "
        "X Xᵀ do it, with a, b, c each scoring its target above the third symbol?",
        (
            Option(
                "The vectors would have to be very long.", "Length does not help: the argument holds for any vectors."
            ),
            Option(
                "The scores are symmetric: a·b > c·a, b·c > a·b and c·a > b·c cannot all hold.",
                "Follow the three inequalities round: a·b > c·a > b·c > a·b.",
                right=True,
            ),
            Option(
                "Each token scores itself highest.",
                "Not always, and that is another problem: even with itself left out, the ring is impossible.",
            ),
            Option(
                "The softmax makes all weights positive.",
                "It does, but a weight may be as close to 1 as you like; the order of the scores is what fails.",
            ),
        ),
    ),
)
