"""The questions of notebook 13: training."""

from __future__ import annotations

from .model import Choice, Number, Option

NOTEBOOK_13 = (
    Number(
        "13.q1",
        "A batch has two sentences. The long one has 5 labels, each with a loss of 1; the short one has 2 labels, each "
        "with a loss of 4, and 3 positions of padding. Every real label counts alike. What is the loss of the batch, "
        "to two decimals?",
        1.86,
        "(5 · 1 + 2 · 4) / 7 = 13 / 7 = 1.86: the sum over the real labels, divided by their number.",
        (
            (2.5, "That is the mean of the two sentences' means; a label of the short sentence would count more."),
            (1.3, "You divided by all 10 positions; the 3 of padding do not count."),
            (13.0, "That is the sum; the loss is the mean over the real labels."),
            (6.5, "You divided by the number of sentences; divide by the number of real labels."),
        ),
        "Add up the losses of the real labels, and divide by how many there are.",
        tolerance=0.006,
        high=100.0,
    ),
    Choice(
        "13.q2",
        "A fresh translator reads the same 32 sentences 100 times, until its loss on them is nearly zero. How many of "
        "133 other sentences, of the same kind, does it then translate exactly?",
        (
            Option(
                "Nearly all: it has learned what the words mean.",
                "It was asked for 32 sentences only, and knowing them by heart was enough for that.",
            ),
            Option(
                "About half, those whose words occur in the 32.",
                "Few sentences have all their words there, and a word met once, in one sentence, is not yet known.",
            ),
            Option(
                "None, or hardly any.",
                "Nothing in the loss asked for more than these 32 sentences, and that is what it learned.",
                right=True,
            ),
            Option(
                "Fewer than the untrained model: the others have been forgotten.",
                "The untrained model gets none right, so nothing can be forgotten.",
            ),
        ),
    ),
    Choice(
        "13.q3",
        "One parameter has the gradient 0.1, another 0.000001. How far does Adam's first step move the second, beside "
        "the first?",
        (
            Option(
                "100,000 times less far.",
                "So it would be with SGD. Adam divides each gradient by the root of its own mean square.",
            ),
            Option("Not at all.", "Its gradient is small, but it is not zero, and it is divided by its own size."),
            Option(
                "Equally far.",
                "The means hold g and g² (corrected for having begun at zero), so the step is η g / |g|, which is ± η.",
                right=True,
            ),
            Option(
                "100,000 times farther.",
                "That would be a division by the square of the gradient; Adam takes the root of that mean.",
            ),
        ),
    ),
    Choice(
        "13.q4",
        "A part is switched off in a trained model, its other weights unchanged, and every translation is wrong. What "
        "has been shown?",
        (
            Option(
                "No model can translate without this part.",
                "For that, train one without it from the start: other weights may do the job then.",
            ),
            Option(
                "This model's weights have come to rely on the part.",
                "They were trained with it, so everything behind it expects what it gives. That is all the test can "
                "say.",
                right=True,
            ),
            Option(
                "What the model knows about words is stored in this part.",
                "Cutting a wire stops a lamp; the light is not stored in the wire.",
            ),
            Option(
                "The part had too much influence on the training.",
                "The training is over; the test says nothing about what it would have been without the part.",
            ),
        ),
    ),
)
