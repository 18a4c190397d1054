"""W17, one token's length: how the weights of softmax(X Xᵀ) move when one vector grows or shrinks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...._validate import check_choice
from ..plotting.base import as_array, distinct_tokens, softmax
from ..svg import Picture, attention_map
from .controls import choice, number
from .panel import Panel

SCORES = ("dot product", "cosine")


def similarity_weights(X: Any, scores: str = "dot product") -> np.ndarray:
    """Return the weights [seq_len, seq_len] of the rows of X [seq_len, d_model] for each other, without scaling.

    Raises ValueError when ``scores`` is neither "dot product" nor "cosine", or X is no matrix of numbers.
    """
    X = as_array("X", X, 2)
    if check_choice("scores", scores, SCORES) == "cosine":
        lengths = np.linalg.norm(X, axis=1, keepdims=True)
        X = np.divide(X, lengths, out=np.zeros_like(X), where=lengths > 0)  # a zero vector has no direction
    return softmax(X @ X.T)


def token_length(X: Any, tokens: Sequence[str]) -> Panel:
    """Change the length of one token's vector, from 0 to 5 times, and see the weights of all.

    X: [seq_len, d_model], 2 to 9 tokens. Raises ValueError when X and tokens do not fit, or X has no such size.
    """
    X, labels = as_array("X", X, 2), distinct_tokens(tokens)
    if len(X) != len(labels):
        raise ValueError(f"tokens must be as many as the rows of X, {len(X)}, got {len(labels)}")
    if not 2 <= len(X) <= 9:
        raise ValueError(f"X must have 2 to 9 rows to be drawn, got {len(X)}")

    def draw(token: str, length: float, scores: str) -> Picture:
        return draw_lengths(X, labels, labels.index(token), length, scores)

    controls = {
        "token": choice("token", labels),
        "length": number("its length is multiplied by", 1.0, 0.0, 5.0, 0.25),
        "scores": choice("scores", SCORES),
    }
    return Panel(draw, controls, widget_id="W17")


def draw_lengths(X: np.ndarray, labels: Sequence[str], i: int, length: float, scores: str) -> Picture:
    """Draw the weights when row i of X is ``length`` times as long; its row is outlined."""
    factors = np.ones((len(X), 1))
    factors[i] = length
    weights = similarity_weights(X * factors, scores)
    others = np.delete(weights[:, i], i).mean()
    says = f"{labels[i]} × {length:g}, {scores}: the others give it {others:.2f} on average, "
    says += f"it gives itself {weights[i, i]:.2f}"
    alt = f"Heat map of weights, query by key; {says}."
    picture = attention_map(weights, labels, query=i, titles=[f"{labels[i]} × {length:g}"], alt=alt)
    return replace(picture, says=says)
