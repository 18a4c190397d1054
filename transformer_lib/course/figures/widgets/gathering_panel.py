"""W33, gathering: tokens of the plane read one another without weights, round after round, and move as they do."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...lab.collapse import groups, one_round
from ..plotting.base import as_array
from ..svg import Picture
from ..svg.gathering import HEIGHT, WIDTH, paths_part
from .controls import number
from .panel import Panel

LAST = 20


def gathering(X: Any, *, rounds: int = 0, length: float = 1.0) -> Panel:
    """Let tokens X [seq_len, 2] become their context vectors softmax(X Xᵀ) X, again and again, 20 times at most.

    All tokens are first multiplied by ``length``, from 0.5 to 4. Raises ValueError when X is not 2 to 20 tokens with
    two features each.
    """
    X = as_array("X", X, 2)
    if not 2 <= len(X) <= 20 or X.shape[1] != 2:
        raise ValueError(f"X must be 2 to 20 tokens with two features each, got shape {X.shape}")
    controls = {
        "rounds": number("rounds", rounds, 0, LAST),
        "length": number("length is multiplied by", length, 0.5, 4.0, 0.5),
    }
    return Panel(lambda rounds, length: draw_gathering(length * X, rounds), controls, widget_id="W33")


def paths(X: np.ndarray, rounds: int) -> np.ndarray:
    """Return where tokens [seq_len, d_model] are before the first round and after each, [rounds + 1, …]."""
    steps = [X]
    for _ in range(rounds):
        steps.append(one_round(steps[-1]))
    return np.stack(steps)


def draw_gathering(X: np.ndarray, rounds: int) -> Picture:
    """Draw the tokens X [seq_len, 2] and the paths that the rounds take them."""
    steps = paths(X, rounds)
    left, apart = groups(steps[-1][None])[0], float(_widest(steps[-1]))
    says = f"after {rounds} round{'s' * (rounds != 1)}: {left} different token{'s' * (left != 1)}, "
    says += f"the furthest two {apart:.2f} apart"
    alt = f"Paths of {len(X)} tokens in the plane, rings where they started and dots where they are {says}."
    rows = [[n, groups(step[None])[0], f"{_widest(step):.2f}"] for n, step in enumerate(steps)]
    table = [["round", "different tokens", "largest distance"], *rows]
    return Picture(paths_part(steps), WIDTH, HEIGHT, alt, says, table=table)


def _widest(X: np.ndarray) -> float:
    """Return the largest distance between two of X [seq_len, d_model]."""
    return float(np.linalg.norm(X[:, None] - X[None], axis=-1).max())
