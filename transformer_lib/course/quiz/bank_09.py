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
        "A stack with residual connections and no norm, its weights just drawn. Somebody says: the path through I brings "
        "the gradient down unchanged, so it is as large at the bottom as at the top. What is wrong?",
        (
            Option(
                "The ReLU sets half of the gradient to zero.",
                "A ReLU shuts some units for some tokens. The path through I meets no ReLU at all.",
            ),
            Option(
                "Nothing: that is what residual connections are for.",
                "They keep the gradient alive. But the path through I is one among 2ⁿ, and all of them add up.",
            ),
            Option(
                "The other paths bring something down as well, and all of it is added.",
                "With small weights that is little; with larger ones the gradient grows by powers of ten.",
                right=True,
            ),
            Option(
                "The product of all Jacobians makes it vanish.",
                "Without residual connections that product is all there is. Here it is one path of 2ⁿ, and adds next to "
                "nothing.",
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
