"""What notebook 22 asks to predict: a step for eight, two drafts, a batch that is joined, a full server."""

from __future__ import annotations

from .model import Choice, Number

NOTEBOOK_22 = (
    Number("22.p1", "How many times as long does a step for 8 sentences take?", 0.5, 20, close=0.5, decimals=1),
    Number("22.p2", "How many tokens does a call bring, on average?", 1, 5, close=0.4, decimals=1),
    Choice(
        "22.p3",
        "Which draft brings more tokens a call?",
        (
            "The counted one, which has no network at all.",
            "The blind network, which has learned to generalise.",
            "Neither: both know the same German.",
            "Neither: without the English no draft is of use.",
        ),
        right="A",
    ),
    Choice(
        "22.p4",
        "By the clock, which draft saves more time on this machine?",
        (
            "The small network, with twice the tokens a call.",
            "Both save about the same.",
            "The counted one.",
            "Neither saves any.",
        ),
        right="C",
    ),
    Number("22.p5", "How many steps does it take if requests join?", 1, 27),
    Choice(
        "22.p6",
        "From room for one to room for 16: who loses by it?",
        (
            "Nobody: a batch is better for all.",
            "Who is served first: the words come more slowly.",
            "Who is served last: more people are ahead.",
            "All of them: 16 sentences are 16 times the work.",
        ),
        right="B",
    ),
)
