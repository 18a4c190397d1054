"""W7, the head splitter: the shapes from X to the output, and where each number of Q lies on the way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..svg import splitting
from ..svg.elements import Picture
from .controls import number, switch
from .panel import Panel

STAGES = ("X", "X W_Q", "view", "transpose", "weights", "A V", "merge", "× W_O")
_TOKENS = ("Show", "me", "the", "money")
_NOTES = (
    "Tokens are rows. Each has d_model features; no head is in sight.",
    "All heads' queries in one product (K and V alike). The numbers say where each entry lies in memory.",
    "unflatten(-1, (n_heads, d_k)): the last axis is read as two. Nothing moves: token by token.",
    "transpose(1, 2): now head by head. Every token is in every head, with a piece of its own.",
    "softmax(Q Kᵀ / √d_k): one grid per head, queries × keys.",
    "Weights times values: one row per token in every head, blended from all tokens' values.",
    "transpose(1, 2) back and flatten(2): the heads side by side again, one row per token.",
    "Each output feature is a sum over all heads' columns: W_O mixes them.",
)
_WRONG = "The shape is right, but head 1 got the first tokens, not a piece of each (blue Show, orange me, …)."


def stage_shapes(batch: int, seq_len: int, d_model: int, n_heads: int) -> list[tuple[int, ...]]:
    """Return the shape at each of STAGES, with d_k = d_v = d_model / n_heads.

    Raises:
        ValueError: d_model is not divisible by n_heads.
    """
    if d_model % n_heads:
        raise ValueError(f"d_model must be divisible by n_heads, got d_model={d_model}, n_heads={n_heads}")
    d_k = d_model // n_heads
    flat, split = (batch, seq_len, d_model), (batch, n_heads, seq_len, d_k)
    return [flat, flat, (batch, seq_len, n_heads, d_k), split, (batch, n_heads, seq_len, seq_len), split, flat, flat]


def head_splitter(*, d_model: int = 12, n_heads: int = 3, stage: int = 4) -> Panel:
    """Take four tokens from X through n_heads heads, stage by stage; a head count that does not fit says why.

    Raises ValueError when d_model is not 1 to 12, n_heads not 1 to 6 or stage not 1 to 8.
    """
    controls = {
        "d_model": number("d_model", d_model, 1, 12),
        "n_heads": number("n_heads", n_heads, 1, 6),
        "plain": switch("split by a plain reshape (a mistake)"),
        "stage": number("stage", stage, 1, len(STAGES)),
    }
    return Panel(draw_stage, controls, widget_id="W7")


def draw_stage(d_model: int, n_heads: int, plain: bool, stage: int) -> Picture:
    """Draw one stage (from 1) for four tokens; ``plain`` shows the mistaken split at stage 4."""
    if d_model % n_heads:
        return _refused(d_model, n_heads)
    shapes = stage_shapes(1, len(_TOKENS), d_model, n_heads)
    name, shape = STAGES[stage - 1], list(shapes[stage - 1])
    grids, owners = places(d_model, n_heads, stage, plain)
    wrong = plain and stage == 4 and n_heads > 1
    note = _WRONG if wrong else _NOTES[stage - 1]
    says = f"stage {stage} of {len(STAGES)}, {'plain reshape' if wrong else name}: {shape}"
    if stage == 4:
        says += f"; head 1 holds numbers {_spoken(grids[0])}"
    body = splitting.ribbon(STAGES, shapes, stage)
    body += splitting.blocks(
        [] if wrong else _TOKENS, grids, owners, gap=5 if stage in (3, 7) else 22, heads=3 <= stage <= 7, note=note
    )
    alt = f"Four tokens, d_model {d_model}, {n_heads} heads: {says}. {note}"
    return Picture(body, splitting.WIDTH, splitting.HEIGHT, alt, says)


def places(d_model: int, n_heads: int, stage: int, plain: bool) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the blocks: each cell's place in the memory of X W_Q (−1: a new number), and its token (−1: none)."""
    n, d_k = len(_TOKENS), d_model // n_heads
    flat = np.arange(n * d_model).reshape(n, d_model)
    if stage in (1, 2, 8):
        grids = [flat]
    elif stage == 5:
        grids = [np.full((n, n), -1)] * n_heads
    elif plain and stage == 4:
        grids = list(flat.reshape(n_heads, n, d_k))
    else:
        grids = list(flat.reshape(n, n_heads, d_k).transpose(1, 0, 2))
    owners = [np.where(grid < 0, -1, grid // d_model) for grid in grids]
    if stage not in (2, 3, 4):
        grids = [np.full_like(grid, -1) for grid in grids]
    return grids, owners


def _spoken(grid: np.ndarray) -> str:
    """Write the rows of a block as ranges: "0–3, 12–15"."""
    ends: Sequence[tuple[int, int]] = [(row[0], row[-1]) for row in grid]
    return ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in ends)


def _refused(d_model: int, n_heads: int) -> Picture:
    """Return the message for a head count that does not divide d_model."""
    says = f"{d_model} features cannot be shared equally by {n_heads} heads"
    fits = ", ".join(str(heads) for heads in range(1, 7) if d_model % heads == 0)
    below, above = d_model // n_heads * n_heads, (d_model // n_heads + 1) * n_heads
    nearest = f"d_model {below} or {above}" if below else f"d_model {above}"
    advice = f"n_heads that divide {d_model}: {fits}. Or keep {n_heads} heads and take {nearest}."
    library = "tl.MultiHeadAttention refuses such sizes with a ValueError, unless d_k and d_v are given."
    body = splitting.message([says + ".", advice, library])
    return Picture(body, splitting.WIDTH, splitting.HEIGHT, f"No picture: {says}. {advice}", says)
