"""W1, the soft lookup: the nearest key alone is its limit as the temperature goes to 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..plotting.base import as_array, signed_text, softmax, weight_text
from ..svg.elements import Picture
from ..svg.lookup import lookup_table
from .controls import number, switch
from .panel import Panel

NAMES = ("honey", "orange", "lemon", "vinegar")
KEYS = ((3.0, 0.0), (1.0, 2.0), (0.0, 3.0), (-1.0, 1.0))
VALUES = (9.0, 3.0, 2.0, 1.0)
FEATURES = ("sweet", "sour")


def soft_lookup(
    keys: Any = KEYS,
    values: Any = VALUES,
    *,
    names: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    query: Sequence[float] = (1.0, 0.0),
) -> Panel:
    """Show a table of keys [n_keys, d_k] and values [n_keys], with the query and the temperature to move.

    Without arguments: what something sweet, or sour, would cost. The switch repeats the first entry, which a
    dictionary could not hold. d_k is 1 to 3. Raises ValueError when the sizes do not fit together.
    """
    keys, values = as_array("keys", keys, 2), as_array("values", values, 1)
    query = as_array("query", query, 1)
    if len(keys) != len(values) or len(keys) < 1:
        raise ValueError(f"values must have one entry per key, {len(keys)}, got {len(values)}")
    if not 1 <= keys.shape[1] <= 3 or query.shape != keys.shape[1:]:
        raise ValueError(f"query must have d_k entries, 1 to 3, as keys {keys.shape}, got {query.shape}")
    ours = keys.shape == np.shape(KEYS) and np.array_equal(keys, KEYS)
    names = list(names or (NAMES if ours else [f"entry {i + 1}" for i in range(len(keys))]))
    features = list(features or (FEATURES if ours else [f"feature {i + 1}" for i in range(keys.shape[1])]))
    if (len(names), len(features)) != keys.shape:
        raise ValueError(f"names, features must fit keys {keys.shape}, got {len(names)} and {len(features)}")

    def draw(temperature: float, copy: bool, **parts: float) -> Picture:
        wanted = np.array([parts[f"q{i + 1}"] for i in range(len(features))])
        return draw_lookup(wanted, keys, values, names, temperature, copy)

    controls: dict[str, Any] = {}
    for i, name in enumerate(features):
        controls[f"q{i + 1}"] = number(f"query, {name}", float(query[i]), -4.0, 4.0, 0.5)
    controls["temperature"] = number("temperature T", 1.0, 1 / 32, 128.0, powers=True)
    controls["copy"] = switch(f"a second copy of {names[0]}")
    few = {name: range(-4, 5) for name in controls if name.startswith("q")}
    return Panel(draw, controls, widget_id="W1", carried=few)


def lookup_weights(scores: np.ndarray, temperature: float) -> np.ndarray:
    """Return softmax(scores / temperature) over [n_keys]. Raises ValueError unless the temperature is positive."""
    if not temperature > 0:
        raise ValueError(f"temperature must be positive, got {temperature}")
    return softmax((scores - scores.max()) / temperature)


def draw_lookup(
    query: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
    names: Sequence[str],
    temperature: float,
    copy: bool,
) -> Picture:
    """Draw the table for one query; with ``copy`` it has the first entry twice."""
    if copy:
        names = [f"{names[0]} (1)", f"{names[0]} (2)", *names[1:]]
        keys, values = np.vstack([keys[:1], keys]), np.concatenate([values[:1], values])
    scores = keys @ query
    weights = lookup_weights(scores, temperature)
    best = np.flatnonzero(np.isclose(scores, scores.max()))
    hard = f"the nearest key returns {signed_text(values[best[0]])} ({names[best[0]]})"
    if len(best) > 1:
        hard = f"{len(best)} keys tie for nearest"
    blended = signed_text(weights @ values)
    says = f"largest weight {weight_text(weights.max())}; blended value {blended}; {hard}"
    words = ["(" + ", ".join(f"{c:g}".replace("-", "−") for c in key) + ")" for key in keys]
    alt = f"Soft lookup at temperature {temperature:g} over {len(names)} entries: {says}."
    return lookup_table(names, words, scores, weights, values, alt=alt, says=says)
