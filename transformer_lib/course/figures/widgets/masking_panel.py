"""W6, the mask laboratory: paint a mask cell by cell; see scores, −∞, weights, leaks, and rows that see nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import ipywidgets
import numpy as np
import traitlets

from ..plotting.base import as_array, counted, distinct_tokens, signed_text, weight_text
from ..svg import mask_grid
from ..svg.elements import Picture
from .controls import Number, choice, number
from .panel import Panel
from .script import Script

PRESETS = ("none", "causal", "padding", "causal & padding")


class Flips(ipywidgets.HBox):
    """Buttons that turn mask cells over; ``value`` is the tuple of cells (i, j) that differ from the preset."""

    value = traitlets.Tuple()
    choices = "any set of cells"
    description = "cells"

    def __init__(self, row: Number, column: Number, n_tokens: int) -> None:
        names = {
            "toggle cell": lambda: [(row.value, column.value)],
            "toggle row": lambda: [(row.value, j) for j in range(n_tokens)],
            "undo all": lambda: self.value,
        }
        self.buttons = {name: ipywidgets.Button(description=name, layout={"width": "auto"}) for name in names}
        for name, cells in names.items():
            self.buttons[name].on_click(lambda _, cells=cells: self.turn(cells()))
        super().__init__(list(self.buttons.values()))

    def turn(self, cells: Iterable[tuple[int, int]]) -> None:
        """Turn these cells over, each once."""
        self.value = tuple(sorted(set(self.value) ^ set(cells)))


def preset_mask(preset: str, is_pad: np.ndarray) -> np.ndarray:
    """Return a preset's boolean mask [n, n], True = may attend; ``is_pad`` [n] says which tokens are padding."""
    n = len(is_pad)
    mask = np.tril(np.ones((n, n), dtype=bool)) if "causal" in preset else np.ones((n, n), dtype=bool)
    return mask & ~is_pad if "padding" in preset else mask


def masked_softmax(scores: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return the softmax over the keys of scores [n, n]: 0 where the mask is False, and in a row that sees nothing."""
    largest = np.where(mask, scores, -np.inf).max(axis=1, keepdims=True)
    shifted = np.where(mask, scores - np.where(np.isfinite(largest), largest, 0.0), -np.inf)
    exponentials = np.exp(shifted)
    total = exponentials.sum(axis=1, keepdims=True)
    return exponentials / np.where(total == 0, 1.0, total)


def mask_lab(scores: Any, tokens: Sequence[str], pad: str = "<pad>") -> Panel:
    """Choose a preset, then turn single cells or whole rows over, and watch the weights.

    scores: [n_tokens, n_tokens], finite, scaled already; up to 8 tokens, ``pad`` among them is padding.
    Raises ValueError when the sizes do not fit together or the picture.
    """
    scores = as_array("scores", scores, 2)
    n = len(tokens)
    if not 2 <= n <= mask_grid.MOST:
        raise ValueError(f"tokens must be 2 to {mask_grid.MOST} to fit the picture, got {n}")
    if scores.shape != (n, n):
        raise ValueError(f"scores must have shape {(n, n)} for these tokens, got {scores.shape}")
    is_pad, labels = np.array([token == pad for token in tokens]), distinct_tokens(tokens)
    row, column = number("query i", 0, 0, n - 1), number("key j", 1, 0, n - 1)
    controls = {"preset": choice("start from", PRESETS), "row": row, "column": column}
    controls["flips"] = flips = Flips(row, column, n)
    controls["preset"].observe(lambda _: flips.set_trait("value", ()), "value")  # a preset starts afresh

    def draw(preset: str, row: int, column: int, flips: Iterable[tuple[int, int]]) -> Picture:
        mask = preset_mask(preset, is_pad)
        for cell in flips:
            mask[cell] = not mask[cell]
        return draw_lab(scores, mask, labels, is_pad, row, column)

    script = Script("painting", tuple(controls), lambda: painted(scores, labels, is_pad))
    return Panel(draw, controls, widget_id="W6", carried={"flips": ((),)}, script=script)


def painted(scores: np.ndarray, labels: Sequence[str], is_pad: np.ndarray) -> dict[str, Any]:
    """Return the parts of which a script puts together the picture of any mask, and the numbers that it tells.

    The "texts" are: labels and frames by chosen cell, cells of scores by cell (hidden, then seen), for each query its
    weights by its mask as a number (bit j for key j), its note that it sees nothing, and its frames by key.
    """
    n = len(labels)
    cells = list(np.ndindex(n, n))
    masks = (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(bool)
    texts = [mask_grid.labels(labels, i, j) for i, j in cells]
    texts += [mask_grid.chosen_cell(n, i, j) for i, j in cells]
    texts += [mask_grid.score_cell(scores, i, j, seen) for i, j in cells for seen in (False, True)]
    weights = [masked_softmax(np.tile(row, (len(masks), 1)), masks) for row in scores]
    texts += [mask_grid.weight_row(weights[i][k], mask, i) for i in range(n) for k, mask in enumerate(masks)]
    texts += [mask_grid.sees_nothing(n, i) for i in range(n)]
    texts += [mask_grid.later_frame(n, i, j) for i, j in cells]
    full = np.ones((n, n), dtype=bool)
    longest = describe(scores, full, masked_softmax(scores, full), labels, is_pad, n - 1, n - 1)
    longest += f"; ⚠ sees nothing, weights 0 and no NaN: {labels[0]}"
    data = {"labels": list(labels), "pad": is_pad.tolist(), "scores": scores.tolist()}
    return {**data, "texts": texts, "longest": longest}


def draw_lab(
    scores: np.ndarray, mask: np.ndarray, labels: Sequence[str], is_pad: np.ndarray, row: int, column: int
) -> Picture:
    """Draw the masked scores beside the weights, with the cell (row, column) chosen."""
    weights = masked_softmax(scores, mask)
    parts = [mask_grid.labels(labels, row, column), mask_grid.score_grid(scores, mask)]
    parts += [mask_grid.weight_grid(weights, mask), mask_grid.chosen_cell(len(labels), row, column)]
    says = describe(scores, mask, weights, labels, is_pad, row, column)
    table = [["query", *labels]]
    table += [[label, *(weight_text(float(w)) for w in line)] for label, line in zip(labels, weights, strict=True)]
    alt = f"Two grids of queries by keys: scores with −∞ where hidden, and weights. {says}"
    return Picture("".join(parts), *mask_grid.size(len(labels)), alt, says, table=table)


def describe(
    scores: np.ndarray,
    mask: np.ndarray,
    weights: np.ndarray,
    labels: Sequence[str],
    is_pad: np.ndarray,
    row: int,
    column: int,
) -> str:
    """Describe the chosen cell, the allowed cells in the future or on padding, and the rows that see nothing."""
    score, weight = (signed_text(float(scores[row, column])), weight_text(float(weights[row, column])))
    cell = f"allowed, score {score}, weight {weight}" if mask[row, column] else "hidden, score −∞, weight 0"
    later = np.triu(mask, 1)
    facts = [f"{labels[row]} → {labels[column]}: {cell}", f"later tokens seen: {_cells(later)}"]
    if later.any():
        i, j = np.unravel_index(int(np.where(later, weights, -1.0).argmax()), weights.shape)
        facts[-1] += f", most by {labels[i]} → {labels[j]} {weight_text(float(weights[i, j]))}"
    if is_pad.any():
        facts.append(f"padding seen by real tokens: {_cells(mask[~is_pad][:, is_pad])}")
    nothing = [labels[i] for i in np.flatnonzero(~mask.any(axis=1))]
    if nothing:
        facts.append(f"⚠ sees nothing, weights 0 and no NaN: {', '.join(nothing)}")
    return "; ".join(facts)


def _cells(where: np.ndarray) -> str:
    return counted(int(where.sum()), "cell")
