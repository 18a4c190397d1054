"""What notebook 05 asks to predict: pieces, prices, rows that nobody reads, and who ends up beside whom."""

from __future__ import annotations

from .model import Choice, Number

NOTEBOOK_05 = (
    Number("05.p1", "Into how many pieces does our tokenizer cut strawberry?", 1, 11, close=1),
    Number("05.p2", "How many tokens does a German sentence take on average?", 5, 70, close=6, decimals=1),
    Number("05.p3", "How many of the 442 tokens occur in none of the sentences?", 0, 442, close=25),
    Choice(
        "05.p4",
        "Which rows does the second step of Adam change?",
        ("Rows 1 and 3.", "All five.", "Row 1 alone.", "Rows 0, 1 and 3."),
        right="D",
    ),
    Choice(
        "05.p5",
        "In the second language, the articles end up next to …",
        ("the verbs.", "the adjectives, as before.", "the nouns.", "none of them: all cosines are near 0."),
        right="A",
    ),
    Choice(
        "05.p6",
        "Which row will be nearer to that of saw?",
        (
            "That of drew, after both jobs: it has the same neighbours.",
            "That of see, after both jobs: it is the same verb.",
            "That of drew after the next word, that of see after the German words.",
            "That of see after the next word, that of drew after the German words.",
        ),
        right="C",
    ),
)
