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
        "The writer was trained under the causal mask. Now it is tested under the full mask, on the same task. What "
        "becomes of its perplexity, about 5?",
        (
            Option(
                "It falls to about 1, because the answer can be read off.",
                "A model that is trained so does that. This one has never had reason to look to its right.",
            ),
            Option(
                "It falls a little.",
                "It would have to know what to do with the words on the right, and it has never seen any.",
            ),
            Option(
                "It stays as it is.",
                "The softmax gives the new keys weight, whether the heads know what to do with them or not, so the "
                "rows change.",
            ),
            Option(
                "It rises, by far.",
                "New keys take weight in every row, and what they bring is nothing the layers were trained on.",
                right=True,
            ),
        ),
        alone=False,
    ),
    Choice(
        "19.q4",
        "A pair has 12 English and 14 German tokens. Both models have equally many parameters: 2 + 2 layers in one, 5 "
        "layers in the other, which reads all 26 tokens as one sequence. Which one needs more multiply-adds for it?",
        (
            Option(
                "The encoder-decoder.",
                "Its layers are larger on average, but an English token never meets the decoder's, and a German token "
                "never the encoder's.",
            ),
            Option(
                "The single stack, nearly twice as many.",
                "Every token passes all its parameters. In the encoder-decoder most of a token's work is done in one "
                "of the two halves.",
                right=True,
            ),
            Option(
                "Equally many: each parameter costs one multiply-add for each token.",
                "For each token that passes it. In the encoder-decoder not every token passes every parameter.",
            ),
            Option(
                "The single stack, four times as many, because its sequence is twice as long.",
                "Only the scores grow with the square of the length, and at 26 tokens they cost little beside the "
                "matrices.",
            ),
        ),
    ),
    Choice(
        "19.q5",
        "You have ported GPT-2 and compare logits, with weights as they come fresh from transformers. The largest "
        "difference is 0.000002. Is the port right?",
        (
            Option(
                "Yes, such a small difference can only be rounding.",
                "It can also be a part that hardly matters yet: with fresh weights biases are 0, gains 1, and the "
                "matrices small.",
            ),
            Option(
                "One cannot know: with these weights a wrong part may make no difference.",
                "A test has to be able to fail. So draw all weights anew, larger, biases and gains included, and "
                "compare again.",
                right=True,
            ),
            Option(
                "No, the difference would have to be exactly 0.",
                "Two programs add in different orders, and rounding differs in the last digits of float32.",
            ),
            Option(
                "Yes, if it is as small for a hundred different sentences.",
                "Other sentences go through the same small weights; what does not matter for one does not for all.",
            ),
        ),
    ),
)
