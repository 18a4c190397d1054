"""What notebook 25 asks to predict: a bare question, a pirate and its price, rewards and their rival, a loss."""

from __future__ import annotations

from .model import Choice, Number

NOTEBOOK_25 = (
    Choice(
        "25.p1",
        "What does the model say after the bare words “What is the capital of France?”",
        (
            "The capital of France is Paris.",
            "Another question of the same kind.",
            "The same question once more.",
            "No word at all: it ends the turn.",
        ),
        right="D",
    ),
    Number(
        "25.p2", "How many of its 20 facts does it have right after 40 steps of pirate? (15 before)", 0, 20, close=2
    ),
    Choice(
        "25.p3",
        "Stop after 12 of the 40 steps, when every new question of this kind is answered word for word. What then?",
        (
            "Most facts are still right: it has seen 48 examples only.",
            "About half of them are right, 6 to 9 of 20.",
            "At most 5 of 20 are right: stopping early hardly helps.",
            "All 15 are right, and nobody else is answered by a pirate.",
        ),
        right="C",
    ),
    Choice(
        "25.p4",
        "After the reinforcement, the perplexity of held-out sentences, which was 4.7, is …",
        (
            "lower: whoever writes better German is less surprised by it.",
            "the same, to one decimal: no reward asked about it.",
            "higher: what earns a reward need not be what the corpus says.",
        ),
        right="C",
    ),
    Number(
        "25.p5",
        "How many different sentences are among 400 after 150 steps, on the average of the seeds?",
        1,
        400,
        close=60,
    ),
    Number(
        "25.p6",
        "What share of its texts is grammatical at temperature .5, without training?",
        0,
        1,
        close=0.06,
        decimals=2,
    ),
    Choice(
        "25.p7",
        "Both answers have become less likely, the better one by 3 nats, the worse one by 12. DPO's loss has …",
        (
            "risen: the better answer is less likely than it was.",
            "stayed: both have fallen, so nothing is learned about the pair.",
            "fallen: the worse answer has become less likely still.",
        ),
        right="C",
    ),
)
