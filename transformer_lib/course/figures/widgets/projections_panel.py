"""W16, the projection stepper: one token through W_Q, W_K, W_V to scores, weights and output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..plotting.base import check_room, distinct_tokens, head_arrays, signed_text, softmax
from ..svg import projection
from ..svg.elements import Picture
from .controls import choice, number
from .panel import Panel

STEPS = ("its vector", "three projections", "scores", "weights", "output")
_MOST = {"tokens": 8, "d_model": 8, "d_k": 4, "d_v": 4}


@dataclass(frozen=True)
class Head:
    """One head's numbers: query, key [n_tokens, d_k], value [n_tokens, d_v], scores, weights, output."""

    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    scores: np.ndarray
    weights: np.ndarray
    output: np.ndarray


def run_head(X: np.ndarray, W_Q: np.ndarray, W_K: np.ndarray, W_V: np.ndarray, causal: bool = False) -> Head:
    """Return every stage of scaled dot-product self-attention on the rows of X; ``causal`` hides later rows."""
    query, key, value = X @ W_Q, X @ W_K, X @ W_V
    scores = query @ key.T / np.sqrt(W_Q.shape[1])
    weights = softmax(np.where(np.tri(len(X), dtype=bool), scores, -np.inf) if causal else scores)
    return Head(query, key, value, scores, weights, weights @ value)


def projection_stepper(X: Any, W_Q: Any, W_K: Any, W_V: Any, tokens: Sequence[str]) -> Panel:
    """Follow one token's vector through a head, step by step; what comes later shows its shape only.

    X: [n_tokens, d_model]; W_Q, W_K: [d_model, d_k]; W_V: [d_model, d_v]; up to 8 tokens, d_model 8, d_k and d_v 4.
    Raises ValueError when the sizes do not fit together or the picture.
    """
    X, W_Q, W_K, W_V = head_arrays(X, W_Q, W_K, W_V, tokens)
    sizes = {"tokens": len(X), "d_model": X.shape[1], "d_k": W_Q.shape[1], "d_v": W_V.shape[1]}
    for name, size in sizes.items():
        check_room(name, size, 1, _MOST[name])
    labels, head = distinct_tokens(tokens), run_head(X, W_Q, W_K, W_V)

    def draw(token: str, step: int) -> Picture:
        return draw_step(X, head, labels, labels.index(token), step)

    controls = {"token": choice("token", labels), "step": number("step", 1, 1, len(STEPS))}
    return Panel(draw, controls, widget_id="W16")


def draw_step(X: np.ndarray, head: Head, labels: Sequence[str], i: int, step: int) -> Picture:
    """Draw the picture for token ``i`` after ``step`` (from 1) of STEPS."""
    d_k, n_tokens = head.key.shape[1], len(labels)
    largest = max(float(np.abs(part).max()) for part in (X, head.query, head.key, head.value))
    own = (head.query[i], head.key[i], head.value[i])
    parts = [projection.top_part(labels[i], X[i], own, step >= 2, largest)]
    rows = (head.key, head.scores[i], head.weights[i], head.value)
    parts.append(projection.table_part(labels, *rows, current=i, step=step, largest=largest))
    parts.append(projection.output_part(head.output[i], d_k, n_tokens, step >= 5, largest))
    says = describe(X, head, labels, i, step)
    alt = f"One head, token {labels[i]}, step {step} of {len(STEPS)}, {STEPS[step - 1]}. {says}"
    return Picture("".join(parts), 710, projection.height(n_tokens), alt, says)


def describe(X: np.ndarray, head: Head, labels: Sequence[str], i: int, step: int) -> str:
    """Say what ``step`` computes for token ``i``, in one line with its shape."""
    n_tokens, d_model = X.shape
    d_k, d_v = head.key.shape[1], head.value.shape[1]
    q, k, v = (written(part[i]) for part in (head.query, head.key, head.value))
    best = labels[int(head.weights[i].argmax())]
    return (
        f"x of {labels[i]}: [d_model {d_model}], {written(X[i])}",
        f"q {q} and k {k}: [d_k {d_k}]; v {v}: [d_v {d_v}]",
        f"q · k_j / √{d_k}: [k_len {n_tokens}], {written(head.scores[i])}; the highest is with {best}",
        f"softmax: [k_len {n_tokens}], {written(head.weights[i])}, sum 1; most goes to {best}",
        f"sum of weight × v_j: [d_v {d_v}], {written(head.output[i])}",
    )[step - 1]


def written(values: np.ndarray) -> str:
    """Write out a vector: "(0.12, −0.63)"."""
    return "(" + ", ".join(signed_text(float(value)) for value in values) + ")"
