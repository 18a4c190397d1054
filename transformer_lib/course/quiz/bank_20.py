"""The questions of notebook 20: the parts of today's block, and what a measurement of them shows."""

from __future__ import annotations

from .model import Choice, Option

NOTEBOOK_20 = (
    Choice(
        "20.q1",
        "You train the model once as it is, and once with RMSNorm. On held-out sentences the second is better by .01 "
        "nats a word. What do you know?",
        (
            Option(
                "RMSNorm helps a little.",
                "It may. But the same model with other initial weights comes to another number, too, and one does not "
                "know yet how far apart two such runs lie.",
            ),
            Option(
                "Nothing yet: how far do two runs of one and the same model differ?",
                "That is the yardstick. Without it a difference of .01 can be the change, or the draw.",
                right=True,
            ),
            Option(
                "RMSNorm makes no difference, since .01 is small.",
                "Small beside what? A difference of .01 over many seeds can be certain, and large models are compared "
                "by such numbers.",
            ),
            Option(
                "RMSNorm helps, if the held-out sentences are many.",
                "More sentences measure *these two* models more exactly. They say nothing about two others with other "
                "seeds.",
            ),
        ),
    ),
    Choice(
        "20.q2",
        "At eight times the rate the base trains badly, and QK-norm repairs it. “So scores that grew without a bound "
        "were what went wrong.” Which result of the table shows that this does not follow?",
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
