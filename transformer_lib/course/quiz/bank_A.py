"""The questions of notebook A: claims and corrections."""

from __future__ import annotations

from .model import Choice, Option

NOTEBOOK_A = (
    Choice(
        "A.q1",
        "“A token under a causal mask attends to the tokens before it.” Someone built a model from this sentence, hid "
        "everything else, and got NaN. Which verdict fits the sentence?",
        (
            Option("true", "As written it leaves the first token nothing to attend to: that is where the NaN is from."),
            Option("imprecise", "True with two more words: before it, and itself.", right=True),
            Option("false", "What it says of the tokens before is right; something is left out."),
            Option("cannot be checked", "It was checked: the first row became NaN."),
        ),
    ),
    Choice(
        "A.q2",
        "“The move from plain similarity to queries, keys and values was revolutionary.” Which verdict fits?",
        (
            Option("true", "What measurement would have shown it wrong? Without one, nothing was confirmed either."),
            Option("imprecise", "No condition makes it testable: the word itself has no measure."),
            Option("false", "To call it false one would need a measurement that contradicts it."),
            Option(
                "cannot be checked",
                "It is an opinion. What can be checked is a statement behind it: on a task that needs a direction, "
                "projections reach 1.0 where plain similarity stays at 0.4 (notebook 03).",
                right=True,
            ),
        ),
    ),
    Choice(
        "A.q3",
        "Two scores of a row are 4.0 and 3.9; the weights printed for them are .02 and .04, said to be the softmax of "
        "the scores divided by √d_k. Which d_k could give that?",
        (
            Option("a smaller one than 64", "A smaller d_k drives weights apart; the larger score keeps the larger."),
            Option("a larger one than 64", "A larger d_k brings the weights together; it never exchanges them."),
            Option(
                "none",
                "Dividing by a positive number and the softmax both keep the order, so 4.0 cannot get less "
                "weight than 3.9. Rounding may make scores equal, but does not reverse them either.",
                right=True,
            ),
            Option("it depends on the other scores", "They change the sum below both weights, and not their ratio."),
        ),
    ),
)
