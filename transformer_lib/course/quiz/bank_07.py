"""The questions of notebook 07: masking and teacher forcing."""

from __future__ import annotations

from .model import Choice, Number, Option

NOTEBOOK_07 = (
    Number(
        "07.q1",
        "Row 'not' has the dot products 3.2 with <start>, 21.5 with itself, and 6.1, 8.4, 8.1, 5.2 with later tokens; "
        "d_k = 64. What weight does <start> get under the look-ahead mask, to two decimals?",
        0.09,
        "exp(0.4) / (exp(0.4) + exp(2.6875)) = 1.49 / 16.19 = 0.09.",
        (
            (0.06, "That leaves the later tokens in the sum; under the mask their exponentials are 0."),
            (0.13, "That is 3.2 / 24.7, plain shares; the softmax takes exponentials of the scaled scores."),
            (0.91, "That is what 'not' gives to itself."),
            (0.0, "That is without the division by √64 = 8: the scores are 0.4 and 2.6875."),
            (0.5, "That would take equal scores."),
        ),
        "Divide by √64 = 8, keep the first two scores only, take exponentials and divide by their sum.",
        tolerance=0.005,
    ),
    Choice(
        "07.q2",
        "A sentence is filled up with padding. What must the mask hide so that its real tokens do not notice?",
        (
            Option(
                "The rows of the padding, so that padding reads nothing.",
                "Then the real tokens still read the padding. What padding reads goes into rows that nobody uses.",
            ),
            Option(
                "The columns of the padding, so that nobody reads it.",
                "A key at padding must get weight 0 from every real query; the rows of the padding can be ignored.",
                right=True,
            ),
            Option(
                "The embeddings of the padding, by setting them to zero.",
                "A zero key scores 0, and exp(0) = 1: it takes weight from the real tokens.",
            ),
            Option(
                "Nothing: the model learns to ignore padding.",
                "It may learn to, roughly. But outputs would depend on how much padding there happens to be.",
            ),
        ),
    ),
    Choice(
        "07.q3",
        "You forget the look-ahead mask in training. What will you see?",
        (
            Option(
                "The training loss stays high: the model is confused by too many tokens.",
                "More tokens to read can only make the training task easier, and one of them is the answer.",
            ),
            Option(
                "The training loss gets far too good, and the model then generates badly.",
                "It reads the answer off its own input. When it has to generate, the answer is not there yet.",
                right=True,
            ),
            Option(
                "Nothing, since the tokens are the right ones anyway.",
                "They are right, and that is the trouble: the next one is the answer.",
            ),
            Option(
                "Training stops with an error about shapes.",
                "Scores have the same shape with and without a mask. Nothing warns you.",
            ),
        ),
    ),
    Choice(
        "07.q4",
        "The target is <start> not on your life <end>. What are the decoder's inputs and labels in training?",
        (
            Option("Both are all six tokens.", "Then each label is its own input, and copying solves the task."),
            Option(
                "Inputs <start> not on your life; labels not on your life <end>.",
                "Each input stands above the token that comes after it: five of each.",
                right=True,
            ),
            Option(
                "Inputs not on your life <end>; labels <start> not on your life.",
                "That predicts the token before. The target moves right by one, so inputs begin with <start>.",
            ),
            Option(
                "Input <start> alone; then whatever the model says.",
                "That is how it generates later. In training it gets the true tokens: teacher forcing.",
            ),
        ),
    ),
)
