"""The questions of notebook 07: masking and teacher forcing."""

from __future__ import annotations

from .model import Choice, Number, Option

NOTEBOOK_07 = (
    Number(
        "07.q1",
        "In row 'not' the exponentials of the scores are 1 for <bos>, 3 for 'not' itself, 2 for 'on' and 6 for 'your'. "
        "Later tokens are hidden. What weight does <bos> get?",
        0.25,
        "Only <bos> and 'not' count: 1 / (1 + 3) = 0.25.",
        (
            (0.083, "That is 1 / 12, with the later tokens still in the sum. What is hidden adds nothing to it."),
            (0.33, "That compares <bos> with 'not', 1 to 3; a weight is a share of the sum, itself included."),
            (0.167, "That is 1 / 6, with 'on' still in the sum; but 'on' is the word to be predicted."),
            (0.75, "That is what 'not' gives to itself."),
            (0.27, "These are exponentials already: no further e to the power of them is needed."),
            (0.12, "That takes exponentials of exponentials; the numbers given are e to the power of the scores."),
            (1.0, "That would be the weight of <bos> if it stood alone, as it does in its own row."),
        ),
        "Keep the tokens that may be seen, and divide by their sum.",
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
        "Somebody rewrites the attention of a language model, and its loss on new text drops from 2.1 to 0.6. You have "
        "the model, and five minutes. How do you find out whether it leaks?",
        (
            Option(
                "Read some of what it writes: good text means that nothing leaks.",
                "Carla's model writes nearly as well as Ada's, and leaks at every position.",
            ),
            Option(
                "Compare its losses on training text and on new text: a leak shows as a gap.",
                "That finds overfitting. Ben's loss was as good on sentences that his model had never seen.",
            ),
            Option(
                "Change a late token, and see whether earlier rows of the logits move.",
                "No earlier row of an honest model can move at all, whatever the model is like inside.",
                right=True,
            ),
            Option(
                "Print its attention weights: if none is on a later token, nothing leaks.",
                "A leak need not go through attention. A norm over all positions, say, would carry it as well.",
            ),
        ),
    ),
)
