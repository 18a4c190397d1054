"""W29, the mask dial: from causal over prefix to full, and what it does to every row of a language model's stack."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ....data.tokenizers import WordTokenizer
from ....model.masks import causal_mask
from ..plotting.base import distinct_tokens, likeliest
from ..svg import mask_dial as drawing
from ..svg.elements import Picture
from .controls import number
from .panel import Panel

_SAME = 1e-5  # in shares of a row's length: rounding


def mask_dial(model: Any, tokenizer: WordTokenizer, sentence: str, *, prefix: int = 3, position: int = 4) -> Panel:
    """Turn the mask of a language model from causal to full, and see which rows of which layer move.

    Args:
        model: called as model(ids, mask), with its layers in `model.stack.layers`; trained with the causal mask.
        tokenizer: of its words. sentence: up to 10 words and marks.
        prefix: how many tokens all may see each other, with bos; 1 is the causal mask. position: whose next words are
            shown; bos is 0.

    Raises:
        ValueError: the sentence is too long for the picture, or prefix or position lies outside it.
    """
    ids = torch.tensor([tokenizer.encode(sentence, bos=True)])
    n = ids.shape[1]
    if not 2 <= n <= drawing.MOST:
        raise ValueError(f"sentence must have 1 to {drawing.MOST - 1} words and marks, got {n - 1}")
    labels = distinct_tokens([tokenizer.words[i] for i in ids[0]])

    @cache
    def run(length: int) -> tuple[np.ndarray, np.ndarray]:
        return rows_and_words(model, ids, prefixed(n, length))

    def draw(prefix: int, position: int) -> Picture:
        return draw_dial(run(1), run(prefix), prefix, position, labels, tokenizer.words)

    controls = {
        "prefix": number("prefix p", prefix, 1, n),
        "position": number("position looked at", position, 0, n - 1),
    }
    return Panel(draw, controls, widget_id="W29", says_lines=3)


def prefixed(n: int, length: int) -> Tensor:
    """Return the mask [1, 1, n, n] with a prefix of this length."""
    return causal_mask(n) | (torch.arange(n) < length)


@torch.no_grad()
def rows_and_words(model: Any, ids: Tensor, mask: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows behind each layer, [n_layers, n, d_model], and the next words' probabilities [n, vocab_size]."""
    rows: list[Tensor] = []
    with ExitStack() as hooks:
        for layer in model.stack.layers:
            hooks.enter_context(layer.register_forward_hook(lambda module, inputs, output: rows.append(output[0])))
        words = model(ids, mask)[0].softmax(dim=-1)
    return torch.stack(rows).double().numpy(), words.double().numpy()


def moved(before: np.ndarray, now: np.ndarray) -> np.ndarray:
    """Return how far each row moved, [n_layers, n], in shares of its length before; rounding counts as 0."""
    shares: np.ndarray = np.linalg.norm(now - before, axis=-1) / np.linalg.norm(before, axis=-1)
    return np.where(shares < _SAME, 0.0, shares)


def draw_dial(
    causal: tuple[np.ndarray, np.ndarray],
    now: tuple[np.ndarray, np.ndarray],
    prefix: int,
    position: int,
    labels: Sequence[str],
    vocabulary: Sequence[str],
) -> Picture:
    """Draw the mask, what moved since the causal one, and the next words of one row under both."""
    n, shares = len(labels), moved(causal[0], now[0])
    mask = prefixed(n, prefix)[0, 0].numpy()
    words = [likeliest(rows[position], vocabulary) for _, rows in (causal, now)]
    body = drawing.grid(mask, labels, position) + drawing.moves(shares)
    places = (len(shares), n)
    body += drawing.next_words("next word, causal mask", words[0], *places, 60, drawing.OLD)
    body += drawing.next_words("next word, this mask", words[1], *places, 190, drawing.NEW)
    says = describe(shares, prefix, position, labels, words)
    table = [["row", *(f"layer {layer + 1} moved by, in lengths of the row" for layer in range(len(shares)))]]
    table += [[label, *(f"{share:.2f}" for share in column)] for label, column in zip(labels, shares.T, strict=True)]
    alt = f"A grid of who may see whom, how far the rows of each layer moved in their lengths, and next words. {says}"
    return Picture(body, drawing.WIDTH, drawing.height(n), alt, says, table=table)


def describe(
    shares: np.ndarray,
    prefix: int,
    position: int,
    labels: Sequence[str],
    words: Sequence[Sequence[tuple[str, float]]],
) -> str:
    """Say which rows moved in each layer, and what follows the chosen row under both masks."""
    n = len(labels)
    kind = {1: "causal mask (p = 1)", n: f"full mask (p = {n})"}.get(prefix, f"prefix of {prefix}")
    effects = []
    for layer, column in enumerate(shares):
        names = [label for label, share in zip(labels, column, strict=True) if share]
        rows = "all rows" if len(names) == n else ", ".join(names) or "no row"
        effects.append(f"layer {layer + 1} moves {rows}")
    (before, p), (after, q) = words[0][0], words[1][0]
    follows = f"after {labels[position]} comes {before} {p:.2f}, with this mask {after} {q:.2f}"
    return f"{kind}: {'; '.join(effects)}; {follows}"
