"""The questions of notebook 11: the decoder and cross-attention."""

from __future__ import annotations

from .model import Choice, Number, Option

NOTEBOOK_11 = (
    Choice(
        "11.q1",
        "Three target tokens ask, and four source tokens are read. What is the shape of the weights of one head of "
        "cross-attention?",
        (
            Option("[3, 3]", "That is the target reading itself, the decoder's masked self-attention."),
            Option("[4, 3]", "Rows are those who ask, and they sum to one. Here the three target tokens ask."),
            Option("[3, 4]", "A row per query, from the target; a column per key, from the source.", right=True),
            Option(
                "[7, 7]",
                "That would be one attention over both sequences joined. Here they stay apart: one only "
                "asks, the other is only read.",
            ),
        ),
    ),
    Number(
        "11.q2",
        "The source has 11 tokens, and the decoder writes 10 tokens, one after the other. It keeps what it can use "
        "again. How many rows of the memory does one decoder layer multiply by its W_K, in all?",
        11,
        "Each row of the memory once: neither the memory nor W_K changes while the decoder writes.",
        (
            (110, "That is what it costs to project all 11 rows again for every token written. Nothing has changed."),
            (10, "That is the number of queries, one for each token written. Keys are made from the source."),
            (21, "The target's rows need no W_K here: its keys belong to the self-attention."),
            (1, "The memory is one tensor, but it has a row for each of the 11 source tokens."),
            (22, "For W_K and W_V together, yes. The question is about W_K."),
        ),
        "Which of the two, queries or keys, depends on what has been written so far?",
        tolerance=0.01,
        high=200.0,
    ),
    Choice(
        "11.q3",
        "The decoder has just begun: it has read <bos> and nothing else. The memory has four rows. Which of them may "
        "this first target row read?",
        (
            Option("None of them.", "Then the first word could not depend on the source."),
            Option(
                "Row 0 alone.",
                "That would be the causal mask. It hides words that do not exist yet when the decoder writes, and the "
                "source exists from the start.",
            ),
            Option(
                "All four.",
                "The source is there in full before the first word is written: there is no future in it to hide.",
                right=True,
            ),
            Option(
                "All but the last, which ends the sentence.",
                "Only padding is hidden. The full stop is a token like the others.",
            ),
        ),
    ),
    Choice(
        "11.q4",
        "In training, row t of the decoder reads target word t and must say word t + 1. Which row of the "
        "cross-attention do we inspect to see what was read for writing 'life'?",
        (
            Option("The row that reads 'life'.", "That row is busy with the word after it."),
            Option(
                "The row that reads the word before 'life'.",
                "Its output becomes the prediction of 'life'. In this grid, label each row with the word that it "
                "writes.",
                right=True,
            ),
            Option("All rows together.", "Each row makes one prediction; the weights of the others serve other words."),
            Option("The column of 'life'.", "Columns are source words here; the target stands in the rows."),
        ),
    ),
)
