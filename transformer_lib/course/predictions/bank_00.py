"""What notebook 00 asks to predict: how often, how many, and which sentence."""

from __future__ import annotations

from .model import Choice, Number

NOTEBOOK_00 = (
    Number("00.p1", "In how many of the twelve sentences does the translator pick the right German noun?", 0, 12),
    Number("00.p2", "How many of the twelve senses are right when only head 2 of layer 1 is cut?", 0, 12),
    Number("00.p3", "How many of the 81 connections cost at least one sense when they are cut alone?", 0, 81, close=2),
    Choice(
        "00.p4",
        "The river sentence, with the vector of `bank` from the money sentence. What does the translator write?",
        (
            "Der Mann sah das Ufer beim Fluss. (Nothing has changed.)",
            "Der Mann sah das Ufer neben dem Geld.",
            "Der Mann sah die Bank neben dem Geld.",
            "Der Mann sah die Bank beim Fluss.",
        ),
        right="D",
    ),
    Number("00.p5", "For how many of the 22 words does cutting word → cue cost senses?", 0, 22, close=2),
)
