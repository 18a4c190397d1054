"""The questions of notebook 05: tokens and embeddings."""

from __future__ import annotations

from .model import Choice, Number, Option

NOTEBOOK_05 = (
    Choice(
        "05.q1",
        "The words 'low' (5 times), 'lower' (2 times) and 'owl' (once) are split into letters. "
        "Which pair does byte-pair encoding merge first, if ties go to the alphabetically first pair?",
        (
            Option("(l, o)", "It occurs in 'low' and 'lower': 5 + 2 = 7 times. Another pair occurs more often."),
            Option("(o, w)", "It occurs in all three words: 5 + 2 + 1 = 8 times.", right=True),
            Option("(w, e)", "It occurs in 'lower' only: twice."),
            Option("(l, o, w), the whole word", "A merge joins two neighbouring tokens; 'low' takes two merges."),
        ),
    ),
    Number(
        "05.q2",
        "The ids of a sentence are 3, 1, 3. The loss has gradient 7 with respect to each entry of each of the three "
        "vectors that were looked up. What is the gradient of an entry of row 3 of the table?",
        14,
        "Row 3 was used twice, and the gradients of its uses add up: 7 + 7.",
        (
            (7, "That would be one use; row 3 was used twice."),
            (21, "That adds all three tokens; the middle one is row 1."),
            (0, "Row 3 was used, so it takes part in the loss; rows 0 and 2 have gradient 0."),
        ),
        "Write the loss as a function of row 3: it enters at two places.",
        tolerance=0.01,
        high=50.0,
    ),
    Choice(
        "05.q3",
        "'bank' stands once beside 'river' and once beside 'money'. Where can a model first tell the two apart?",
        (
            Option(
                "In the embedding table: the two senses have two rows.",
                "The table is indexed by the id, and the id is that of the spelling: one row.",
            ),
            Option("In the tokenizer.", "It sees the same letters twice and gives the same id twice."),
            Option(
                "After a layer that mixes tokens, such as attention.",
                "Only there the vector of 'bank' takes in something of its neighbours.",
                right=True,
            ),
            Option(
                "Nowhere: one word, one vector.",
                "One row, yes; but the vector of the token changes from layer to layer.",
            ),
        ),
    ),
)
