"""The questions of notebook 23: a block with one large weight, and what a chat remembers."""

from __future__ import annotations

from .model import Choice, Option, Question

NOTEBOOK_23: tuple[Question, ...] = (
    Choice(
        "23.q1",
        "In one block of 32, a single weight is a hundred times larger than all the others. What becomes of the "
        "weights when they are rounded?",
        (
            Option(
                "Only the large one suffers: it is far from all sixteen steps.",
                "The steps reach from the smallest weight to the largest, so the large one lies on the last of them.",
            ),
            Option(
                "The others suffer: most of them get the same number.",
                "Fifteen steps have to reach the large one, so a step is wider than all the others together.",
                right=True,
            ),
            Option(
                "All weights of the matrix suffer in the same way.",
                "They would if they shared a scale. Here the harm ends with the block, which is why there are blocks.",
            ),
            Option(
                "Nothing: a scale can be as large as it has to be.",
                "It can. But a large scale makes wide steps, and small weights fall between them.",
            ),
        ),
    ),
    Choice(
        "23.q2",
        "In the evening you tell the model all about your day, and close the program. In the morning you open it "
        "again. What does the model know of your day?",
        (
            Option(
                "What was important in it: that is what it has learned.",
                "Nothing was learned: no weight has moved. What it knew of you was keys and values in a cache.",
            ),
            Option(
                "All of it, as long as the file is the same.",
                "The file has the weights alone, and these are the same for everybody.",
            ),
            Option(
                "Nothing, unless the program puts the old text in front of the new one.",
                "The conversation is a text. If it is to be remembered, it has to be kept, and read once more.",
                right=True,
            ),
            Option(
                "What you said first, which is where its attention goes.",
                "Nothing is kept when the cache is gone, neither first nor last.",
            ),
        ),
    ),
)
