"""The questions of notebook 12: the whole Transformer."""

from __future__ import annotations

from .model import Choice, Number, Option

NOTEBOOK_12 = (
    Number(
        "12.q1",
        "The model has two layers on each side. To score the next word it runs once. How many multi-head attentions "
        "does it compute in that run?",
        6,
        "One in each of the two encoder layers, and two in each of the two decoder layers: 2 + 4.",
        (
            (4, "That is one for each layer. A decoder layer has a second one, which reads the memory."),
            (8, "That is two for each layer. An encoder layer has only one: there is no other sentence to read."),
            (2, "That is one side of the model."),
            (3, "That is one layer on each side; there are two."),
            (24, "That counts every head. Four heads of one layer are computed together, as one attention."),
            (5, "The first decoder layer has its two attentions as well."),
        ),
        "Count the attention boxes of the map, and take each twice.",
        tolerance=0.01,
        high=100.0,
    ),
    Choice(
        "12.q2",
        "One of four masks can be left out without moving the logits of a single real word. Which one?",
        (
            Option(
                "The padding of the source, in the encoder.",
                "Then the words of the short sentence read <pad> while the encoder works, and their rows change.",
            ),
            Option(
                "The padding of the source, in the memory.",
                "The encoder's mask hides <pad> from the words, and its rows are in the memory all the same.",
            ),
            Option(
                "The padding of the target.",
                "It stands at the end, where the causal mask hides it from every real word already.",
                right=True,
            ),
            Option(
                "The causal mask.",
                "Without it the words of the target read those that come after them, and the padding's mask does not "
                "hide these.",
            ),
        ),
        alone=False,
    ),
    Choice(
        "12.q3",
        "Which kind of part has the most parameters in the base model?",
        (
            Option(
                "The 18 attentions.",
                "They have 4 · 512² each, 18.9 million in all, no more than the table.",
            ),
            Option(
                "The 12 feed-forward networks.",
                "About 2 · 512 · 2048 each, twice as many as an attention: 25.2 million in all.",
                right=True,
            ),
            Option("The table.", "37,000 rows of 512 are 18.9 million, as many as all attentions have."),
            Option("The 30 norms.", "They have 2 · 512 each, 31 thousand in all."),
        ),
    ),
    Choice(
        "12.q4",
        "The positions keep their length. Which of the factor's two effects does training need more: that the vectors "
        "start longer, or that they move farther at each step?",
        (
            Option(
                "The longer start.",
                "It helps when the steps are short. With long steps a short start does hardly any harm.",
            ),
            Option(
                "The longer steps.",
                "With them the short start does about as well as the long one: after four passes .98 to 1.00, against "
                "1.00.",
                right=True,
            ),
            Option(
                "Both: neither helps without the other.",
                "Each of them alone is far better than none, and the long steps alone do about as well as both.",
            ),
            Option("Neither.", "Without both, not one sentence is right after one pass."),
        ),
        alone=False,
    ),
)
