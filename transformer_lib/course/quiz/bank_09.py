"""The questions of notebook 09: feed-forward networks, residual connections, norms."""

from __future__ import annotations

from .model import Choice, Number, Option

NOTEBOOK_09 = (
    Choice(
        "09.q1",
        "A head reads two bits with equal weights, and its output is read out by u_a + w_b. Which numbers u_0, u_1, "
        "w_0, w_1 give 0 for the pairs (0, 0) and (1, 1), and 1 for (0, 1) and (1, 0)?",
        (
            Option("u_1 = w_1 = 1, u_0 = w_0 = 0", "That gives 2 for the pair (1, 1), where 0 is wanted."),
            Option(
                "There are none.",
                "Add up the two answers that should be 0: u_0 + w_0 + u_1 + w_1 = 0. The two that should be 1 have the "
                "same sum, and would make it 2.",
                right=True,
            ),
            Option("u_1 = 1, w_1 = −1, u_0 = w_0 = 0", "That gives −1 for the pair (0, 1), where 1 is wanted."),
            Option(
                "Some, but training has to find them.",
                "Try: the sum of all four numbers would have to be 0 by the first two pairs, and 2 by the others.",
            ),
        ),
    ),
    Number(
        "09.q2",
        "Six residual sub-layers, y = x + f(x), one after another. Multiply out (I + J₆) … (I + J₁). How many of the "
        "terms are products of exactly three Jacobians?",
        20,
        "A term takes I or J from each factor: 2⁶ = 64 terms, and 6 · 5 · 4 / 6 = 20 choices of three. One term is I "
        "alone, and one the product of all six, which is still there.",
        (
            (64, "That is the number of all terms."),
            (8, "That is 2³, all terms for three sub-layers."),
            (120, "A term has its Jacobians in one order only: divide by the 6 orders of three."),
            (15, "That is how many have two Jacobians, or four."),
            (1, "Neighbours are not alone: J₆ J₃ J₁ is a term, too."),
            (4, "That is how many have three neighbours. A path may also pass by those in between."),
        ),
        "Take either I or the Jacobian from each of the six factors. In how many ways can three be Jacobians?",
        tolerance=0.1,
        high=720.0,
    ),
    Choice(
        "09.q3",
        "In a pre-norm stack, somebody makes the residual stream x ten times as large between two blocks. What does "
        "the next sub-layer f notice? (Leave ε out.)",
        (
            Option(
                "Everything in it is ten times as large.",
                "It reads LN(x), and the norm has just divided the factor out again.",
            ),
            Option(
                "Nothing: x + f(LN(x)) is the same as before.",
                "f adds the same as before, but it is added to an x that is ten times as large.",
            ),
            Option(
                "It reads the same, but what it adds now weighs a tenth, beside the stream.",
                "LN(x) has forgotten the factor, so f(LN(x)) is what it was. The x it is added to has grown.",
                right=True,
            ),
            Option(
                "It cannot work: the norm makes x and f(x) equally large.",
                "That would be post-norm, which normalises the sum. Pre-norm leaves x alone on its way past f.",
            ),
        ),
    ),
    Number(
        "09.q4",
        "LayerNorm (gain 1, bias 0, ε left out) of the token (0, 2, 2, 8): what becomes of the 8? (To two decimals.)",
        5 / 3,
        "The mean is 3, the squared distances are 9, 1, 1, 25, their mean 9, its root 3: (8 − 3)/3 = 1.67.",
        (
            (5 / 12**0.5, "That divides the squares by d − 1 = 3; LayerNorm divides by d = 4."),
            (5.0, "The mean is taken off; now divide by the standard deviation."),
            (8 / 3, "Divided rightly; but first take off the mean, 3."),
            (5 / 9, "That divides by the variance, 9; divide by its root."),
            (1.7, "Nearly: give two decimals."),
        ),
        "Mean first. Then the mean of the squared distances from it, and its root.",
        tolerance=0.01,
        high=10.0,
    ),
)
