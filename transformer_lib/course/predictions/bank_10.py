"""What notebook 10 asks to predict: how far news travels, which step moves a word, and what another training does."""

from __future__ import annotations

from .model import Choice, Number

NOTEBOOK_10 = (
    Number(
        "10.p1", "Two layers, each token reads itself and its neighbours. How many outputs does input 5 move?", 0, 9
    ),
    Choice(
        "10.p2",
        "Can a single layer learn two hops within 3,000 steps?",
        (
            "No, neither of the two: it would have to read one token before it can look for the other.",
            "Only the wide one, because it has the weights of two layers.",
            "Yes, but with about three times the steps that two layers need.",
            "Yes, as fast as two layers, because it sees everything at once.",
        ),
        right="C",
    ),
    Choice(
        "10.p3",
        "Which step carries the two senses of 'bank' furthest apart?",
        (
            "The attention of layer 1.",
            "The feed-forward network of layer 1.",
            "The attention of layer 2.",
            "The feed-forward network of layer 2.",
        ),
        right="A",
    ),
    Number("10.p4", "How many of the 20 nouns take their largest step in the first attention?", 0, 20, close=2),
    Number(
        "10.p5",
        "In which share of the sentences is the probe right about the mean of the others?",
        0,
        1,
        close=0.05,
        decimals=2,
    ),
    Choice(
        "10.p6",
        "The noun may not read its cue. What is left in the five translators?",
        (
            "About the same in all: between .6 and .7.",
            "It is different in each: from near guessing to above .75.",
            "Ours is the exception: the four others guess.",
            "Ours is the exception: the four others keep above .9.",
        ),
        right="B",
    ),
)
