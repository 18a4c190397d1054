"""The questions of notebook 20: the parts of today's block, and what a measurement of them shows."""

from __future__ import annotations

from .model import Choice, Option

NOTEBOOK_20 = (
    Choice(
        "20.q1",
        "With RMSNorm the five runs end at −.001 ± .011 nats a word beside the base, and the base drawn again at "
        "+.007 ± .011. What do these runs show?",
        (
            Option(
                "RMSNorm helps, since its mean is the lower one.",
                "By .001, where the yardstick alone moves by .007. The interval reaches from −.012 to +.010, so the "
                "sign is open.",
            ),
            Option(
                "Nothing: five runs are too few to say anything.",
                "They say a good deal. With five, an effect of .03 would have shown: the interval ends at .012.",
            ),
            Option(
                "At this size, rate and budget it is worth a hundredth at most, in either direction.",
                "The interval reaches from −.012 to +.010. That is an answer, and a useful one: what remains in its "
                "favour is that it computes less.",
                right=True,
            ),
            Option(
                "RMSNorm makes no difference to a language model.",
                "This model, one rate, 400 steps: five runs bound the effect *here*, and bound it by .012, not by 0.",
            ),
        ),
    ),
    Choice(
        "20.q2",
        "At eight times the rate the base trains badly, and QK-norm repairs it. “So scores that grew without a bound "
        "were what went wrong.” Which result shows that this does not follow?",
        (
            Option(
                "At the base's own rate QK-norm changes much less.",
                "It would have to: at that rate nothing goes wrong, so there is nothing to repair.",
            ),
            Option(
                "The base at twice the rate is still well.",
                "The scores may just not have grown enough there; this is about eight times the rate.",
            ),
            Option(
                "A smaller rate for W_Q and W_K alone repairs it, too.",
                "This fits the sentence: matrices that move more slowly let the scores grow more slowly.",
            ),
            Option(
                "A smaller rate for W_V and W_O alone repairs about half of it.",
                "These make no scores, and yet about half of the harm is gone. What repairs a failure need not be "
                "its cause: one has to look at the scores.",
                right=True,
            ),
        ),
        alone=False,
    ),
    Choice(
        "20.q3",
        "Four layers, each with a window of 3: a row sees itself and the two before it. How many positions can the "
        "last row of the output depend on?",
        (
            Option("3", "That is one layer. Its rows carry on what they have read, and the next layer reads them."),
            Option(
                "12",
                "Each layer adds only its two earlier positions: the row itself is counted once.",
            ),
            Option("9", "Itself, and two further back for each of the four layers: 1 + 4 · 2.", right=True),
            Option(
                "81",
                "The windows of neighbours overlap, so the reach grows by the same two positions in each layer, and is "
                "not multiplied.",
            ),
        ),
    ),
    Choice(
        "20.q4",
        "You port a model with a window of 4,096, and yours is one position too long. All weights are drawn anew and "
        "large, and 512 random tokens are compared. What does the test show?",
        (
            Option(
                "Logits that differ by several units.",
                "For that a query would need a key 4,096 positions back, and in 512 tokens none has one. (Even in a "
                "longer text, one key among 4,096 may move the logits by much less.)",
            ),
            Option(
                "Nothing: the logits agree up to rounding.",
                "The text is shorter than the window, so both models see everything. A test must reach what it tests.",
                right=True,
            ),
            Option(
                "Differences of about 0.0001, since one key in 4,096 is little.",
                "In a text longer than 4,096 the difference may well be small. But in 512 tokens there is no such key.",
            ),
            Option(
                "An error, since the shapes do not fit.",
                "No weight has a shape that depends on the window.",
            ),
        ),
    ),
)
