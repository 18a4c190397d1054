"""The questions of notebook 19: one stack under three masks."""

from __future__ import annotations

from .model import Choice, Option

NOTEBOOK_19 = (
    Choice(
        "19.q1",
        "Two such layers stand on top of each other, and a single cell is added to the causal mask of both: Show may "
        "see me. Which of the four outputs change after the first layer, and which after the second?",
        (
            Option(
                "Show after the first, and Show after the second.",
                "After the second layer more than that: which rows read Show there?",
            ),
            Option(
                "Show after the first, all four after the second.",
                "In the second layer me, the and money read the row of Show, and that has changed.",
                right=True,
            ),
            Option(
                "Show and me after both.",
                "me has been allowed to see Show and itself all along, so after the first layer it is as before.",
            ),
            Option(
                "All four after both.",
                "In the first layer the, for example, takes the mean of 1, 2 and 3, with the new cell or without.",
            ),
        ),
        alone=False,
    ),
    Choice(
        "19.q2",
        "Someone wants to know how probable a whole sentence is. Which of the two can say it in one pass?",
        (
            Option(
                "The writer.",
                "Its rows give each word's probability after the words before it, and their product is that of the "
                "sentence. So it could even fill gaps from both sides, by trying each word: one pass for each.",
                right=True,
            ),
            Option(
                "The filler.",
                "It gives a hidden word's probability where all the others are known. Hiding one word after the other "
                "and multiplying what comes out counts what the words tell about each other twice.",
            ),
            Option(
                "Both.",
                "The filler was never asked for two words at once that depend on each other: it gives each hidden "
                "word a distribution of its own.",
            ),
            Option(
                "Neither, since a sentence needs a source.",
                "That would be the probability of a translation. The writer has no source, and does not need one.",
            ),
        ),
        alone=False,
    ),
    Choice(
        "19.q3",
        "You have ported a GPT-2, and drawn all its weights anew, so that logits spread by about 2. In float32 the two "
        "programs differ by up to 0.0014, and in float64 by up to 0.0014, too. What does that tell you?",
        (
            Option(
                "It is rounding: a thousandth is little beside 2.",
                "Rounding shrinks a hundred million times from float32 to float64. What stays is computed differently.",
            ),
            Option(
                "A part computes something slightly different.",
                "Rounding would have all but vanished in float64. Such a size fits the exact GELU in place of its "
                "approximation, for example.",
                right=True,
            ),
            Option(
                "One cannot know without the trained weights.",
                "With weights drawn anew every part matters, so these show more than trained ones would.",
            ),
            Option(
                "A matrix is transposed that should not be, or one is not that should.",
                "Such a slip moves logits by about as much as they spread, and not by a thousandth of it.",
            ),
        ),
    ),
)
