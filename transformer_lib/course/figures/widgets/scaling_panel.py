"""W3, saturation: what dividing the scores by √d_k buys, in weights and in gradients."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from ..plotting.base import softmax
from ..svg.charts import bar_strip, log_chart
from ..svg.colours import CIVIDIS, PUOR, signed_levels, weight_levels
from ..svg.elements import Picture, text
from .controls import number, switch
from .panel import Panel

WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_COLOURS = ("#d55e00", "#0072b2")


@dataclass(frozen=True)
class Saturation:
    """What `softmax_saturation` measured; means over the queries.

    Args:
        scores, weights: of the first query alone [n_keys].
        score_std: standard deviation of all scores.
        largest_weight: mean over queries of the largest weight.
        gradient: mean Frobenius norm of the softmax's Jacobian, diag(w) − w wᵀ.
    """

    scores: np.ndarray
    weights: np.ndarray
    score_std: float
    largest_weight: float
    gradient: float


@functools.lru_cache(maxsize=256)
def softmax_saturation(d_k: int, scaled: bool, n_keys: int = 64, seed: int = 0) -> Saturation:
    """Draw 200 random queries, each with ``n_keys`` random keys of its own, and measure how far the softmax saturates.

    ``scaled`` divides the scores by √d_k. The same arguments give the same numbers; see `Saturation`.
    Raises ValueError when a size is below 1.
    """
    if min(d_k, n_keys) < 1:
        raise ValueError(f"d_k and n_keys must be at least 1, got {d_k} and {n_keys}")
    scores = _dot_products(d_k, n_keys, seed) / (np.sqrt(d_k) if scaled else 1.0)
    weights = softmax(scores)
    largest, gradient = weights.max(-1).mean(), jacobian_norm(weights).mean()
    scores.flags.writeable = weights.flags.writeable = False  # they stay in the cache
    return Saturation(scores[0], weights[0], float(scores.std()), float(largest), float(gradient))


@functools.lru_cache(maxsize=64)
def _dot_products(d_k: int, n_keys: int, seed: int) -> np.ndarray:
    """Return the scores before scaling, [200, n_keys]; drawn once for both settings of the scaling."""
    generator = np.random.default_rng(seed)
    queries = generator.standard_normal((200, d_k), dtype=np.float32)
    keys = generator.standard_normal((200, n_keys, d_k), dtype=np.float32)
    return np.einsum("qd,qkd->qk", queries, keys).astype(float)


def jacobian_norm(weights: np.ndarray) -> np.ndarray:
    """Return the Frobenius norm of diag(w) − w wᵀ for each row w of [..., n_keys]: how much gradient gets through."""
    squares = (weights**2).sum(-1)
    return np.sqrt(np.maximum(0.0, squares - 2 * (weights**3).sum(-1) + squares**2))


def saturation(d_k: int = 64, *, scaled: bool = False, n_keys: int = 64, seed: int = 0) -> Panel:
    """Show scores and weights of one query, and two curves over all d_k, with d_k and the scaling to move."""
    controls = {
        "d_k": number("d_k", d_k, 1, 1024, 1, powers=True),
        "scaled": switch("divide the scores by √d_k", scaled),
    }
    return Panel(lambda **v: draw_saturation(n_keys=n_keys, seed=seed, **v), controls, widget_id="W3")


def draw_saturation(d_k: int, scaled: bool, n_keys: int = 64, seed: int = 0) -> Picture:
    """Draw one query's scores and weights, sorted; beside them largest weight and gradient over d_k."""
    now = softmax_saturation(d_k, scaled, n_keys, seed)
    order = np.argsort(-now.scores, kind="stable")
    scores, weights = now.scores[order], now.weights[order]
    reach = next(limit for limit in (10.0, 40.0, 160.0, np.inf) if np.abs(scores).max() <= limit)
    drawn = [PUOR[level] for level in signed_levels(scores, reach)]
    left = text(50, 14, f"scores of one query, {n_keys} keys, sorted", "bold")
    left += bar_strip(scores, drawn, (50, 24, 290, 130), (-reach, reach))
    left += text(50, 222, "its weights", "bold")
    left += bar_strip(weights, [CIVIDIS[i] for i in weight_levels(weights)], (50, 232, 290, 130), (0.0, 1.0))
    curves = {(d, on): softmax_saturation(d, on, n_keys, seed) for d in WIDTHS for on in (False, True)}
    right = _curves("largest weight (mean of 200 queries)", "largest_weight", curves, (d_k, now), 24, 1.0)
    right += _curves("gradient through the softmax (mean)", "gradient", curves, (d_k, now), 232, 0.4)
    said = "divided by √d_k" if scaled else "not divided"
    says = f"d_k {d_k}, {said}: scores spread ±{now.score_std:.1f}, "
    says += f"largest weight {now.largest_weight:.2f}, gradient {now.gradient:.3f}"
    alt = f"One query's scores and weights as bars; largest weight and gradient over d_k as curves. {says}."
    return Picture(left + right, 700, 400, alt, says, table=_table(curves))


def _curves(
    title: str,
    name: str,
    curves: dict[tuple[int, bool], Saturation],
    now: tuple[int, Saturation],
    y: float,
    high: float,
) -> str:
    """Draw one quantity over all d_k, with and without the division, and a ring at the present d_k."""
    labels = {"not divided": False, "divided by √d_k": True}
    series = {label: [getattr(curves[d, on], name) for d in WIDTHS] for label, on in labels.items()}
    marked = (now[0], getattr(now[1], name))
    drawn = log_chart(WIDTHS, series, (410, y, 270, 130), high=high, colours=_COLOURS, marked=marked)
    return text(410, y - 10, title, "bold") + drawn + text(690, y + 161, "d_k", "end soft", size=11)


def _table(curves: dict[tuple[int, bool], Saturation]) -> list[list[str]]:
    rows = [["d_k", "largest weight", "gradient", "largest weight, divided", "gradient, divided"]]
    for d_k in WIDTHS[::2]:
        pair = (curves[d_k, False], curves[d_k, True])
        rows.append([str(d_k), *(f"{x:.3f}" for one in pair for x in (one.largest_weight, one.gradient))])
    return rows
