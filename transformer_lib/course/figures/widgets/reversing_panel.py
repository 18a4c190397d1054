"""W8, the heads of a model that reverses letters: attention with a known right answer."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import torch

from ...studies.reversal import (
    FIRST_ID,
    LENGTH,
    LETTERS,
    cross_weights,
    on_anti_diagonal,
    stored_reverser,
    train_reverser,
)
from ..svg import Picture, attention_map, token_lines
from .controls import choice, number
from .panel import Panel

SENTENCES = 20


def reversal_heads(*, seed: int = 0, token: int = 1) -> Panel:
    """Look through the cross-attention of a small model that writes six letters in reverse.

    Args:
        seed: of the model. That of seed 0 is stored; another is trained when first asked for, in a second or two.
        token: which written letter is shown first, from 1.
    """

    def draw(letters: int, head: Any, show: str, token: int) -> Picture:
        return draw_reversal(seed, letters, head, show, token)

    n_heads = trained_weights(seed)[1].shape[1]
    controls = {
        "letters": number("letters", 1, 1, SENTENCES),
        "head": choice("head", ["mean", *range(1, n_heads + 1)]),
        "show": choice("as", ["map", "lines"]),
        "token": number("written letter", token, 1, LENGTH),
    }
    return Panel(draw, controls, widget_id="W8")


@cache
def trained_weights(seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the sources [500, 6] as ids, the weights [500, n_heads, 6, 6], and the share of correct letters."""
    src, weights, right = cross_weights(train_reverser(seed) if seed else stored_reverser())
    return src.numpy(), weights.double().numpy(), float(right)


def draw_reversal(seed: int, letters: int, head: int | str, show: str, token: int) -> Picture:
    """Draw one source, one head (from 1) or their "mean", and the row that writes letter ``token``, from 1."""
    src, weights, right = trained_weights(seed)
    both = weights.mean(axis=1) if head == "mean" else weights[:, int(head) - 1]
    grid = both[letters - 1]
    source = [f"{LETTERS[i - FIRST_ID]} ({place})" for place, i in enumerate(src[letters - 1], start=1)]
    written = [name.split()[0] + f" [{t}]" for t, name in enumerate(reversed(source), start=1)]
    drawn = token_lines if show == "lines" else attention_map
    picture = drawn(grid, written, source, query=token - 1)
    best = int(grid[token - 1].argmax())
    who = "mean of heads" if head == "mean" else f"head {head}"
    share = on_anti_diagonal(torch.from_numpy(both))
    says = (
        f"{who}: to write letter {token} of {LENGTH}, reads place {best + 1} most, {grid[token - 1, best]:.2f} "
        f"(needed: place {LENGTH + 1 - token}). Largest weight on the anti-diagonal in {share:.0%} of rows; "
        f"{right:.0%} of letters right."
    )
    return replace(picture, says=says, alt=f"{picture.alt} {says}")
