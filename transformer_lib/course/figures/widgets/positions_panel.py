"""W4, the position dial: an encoding is a set of clock hands, and a shift turns each by its own angle."""

from __future__ import annotations

import math

import numpy as np

from ..plotting.base import signed_text
from ..svg import dial
from ..svg.elements import Picture, text
from .controls import choice, number
from .panel import Panel

POSITIONS, D_MODEL, REACH = 60, 8, 12  # the map's positions; features; largest offset


def encodings(positions: np.ndarray, d_model: int = D_MODEL) -> np.ndarray:
    """Return sinusoidal encodings [len(positions), d_model]: sine of pos · ω_j in feature 2j, cosine in 2j + 1."""
    angles = np.asarray(positions, dtype=float)[:, None] * frequencies(d_model)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(len(angles), d_model)


def frequencies(d_model: int = D_MODEL) -> np.ndarray:
    """Return ω_j = 10000^(−2j/d_model) for the pairs j = 0 … d_model/2 − 1, in radians per position."""
    return 10000.0 ** (-2 * np.arange(d_model // 2) / d_model)


def rotation(angle: float) -> np.ndarray:
    """Return the matrix [2, 2] that turns (sin a, cos a) into (sin(a + angle), cos(a + angle)), as columns."""
    return np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])


def position_dial(position: int = 20, offset: int = 5, pair: int = 1) -> Panel:
    """Move a position, an offset and a pair of features; see the map, the hands, and the similarity curve.

    position: 12 to 47; offset: −12 to 12; pair: 0 to 3. Raises ValueError outside these.
    """
    controls = {
        "position": number("position p", position, REACH, POSITIONS - REACH - 1),
        "offset": number("offset k", offset, -REACH, REACH),
        "pair": choice("pair j", list(range(D_MODEL // 2)), pair),
    }
    few = range(position % 3 + REACH, POSITIONS - REACH, 3)
    return Panel(draw_dial, controls, widget_id="W4", carried={"position": few})


def draw_dial(position: int, offset: int, pair: int) -> Picture:
    """Draw the map, the similarity under it, the dials of all pairs, and the chosen one's rotation in numbers."""
    table, omega = encodings(np.arange(POSITIONS)), frequencies()
    p, q, turn = position, position + offset, offset * omega[pair]
    parts = [text(dial.LEFT, 16, "encodings: one column per position, one row per feature", "bold")]
    parts.append(dial.encoding_map(table, 50, p, q, pair))
    parts.append(text(dial.LEFT, 158, "similarity PE(p) · PE(position)", "bold"))
    parts.append(dial.similarity_curve(table @ table[p], 168, 84, p, q, (-0.5, D_MODEL / 2)))
    for j, w in enumerate(omega):
        parts.append(dial.dial(62 + 122 * j, 336, (p * w, q * w), f"j = {j}, ω = {w:g}", j == pair))
    parts.append(_arithmetic(table, p, q, pair, turn))
    says = describe(table, p, offset, pair)
    alt = f"Map of sinusoidal encodings, similarity curve, and four dials with the hands of p and p + k. {says}."
    return Picture("".join(parts), 710, 408, alt, says)


def _arithmetic(table: np.ndarray, p: int, q: int, pair: int, turn: float) -> str:
    """Write out the chosen pair's rotation."""
    features = slice(2 * pair, 2 * pair + 2)
    x = 484
    parts = [text(x, 292, f"pair {pair} turns by k · ω = {signed_text(turn)}", "bold")]
    parts.append(dial.rotation_line(rotation(turn), table[p, features], table[q, features], x, 314))
    parts.append(text(x, 372, "turn × (sin, cos) at p = at p + k", "soft", size=11))
    parts.append(text(x, 394, "blue hand: p; orange, longer: p + k", "soft", size=11))
    return "".join(parts)


def describe(table: np.ndarray, p: int, offset: int, pair: int) -> str:
    """Describe the turn, the error of the shift over all pairs, and the similarities at p + k and p − k."""
    q, omega = p + offset, frequencies()
    shifted = np.concatenate([rotation(offset * w) @ table[p, 2 * j : 2 * j + 2] for j, w in enumerate(omega)])
    error = np.abs(shifted - table[q]).max()
    verdict = "equal to 1e-12" if error < 1e-12 else f"off by {error:.1e}"
    degrees = signed_text(math.degrees(offset * omega[pair])).removesuffix(".00")
    right, left = (signed_text(float(table[p] @ table[i])) for i in (q, p - offset))
    return (
        f"p {p}, k {offset}".replace("-", "−")
        + f": pair {pair} turns {signed_text(offset * omega[pair])} rad ({degrees}°); turned PE({p}) and PE({q}) are "
        + f"{verdict}; similarity {right} at {q}, {left} at {p - offset}"
    )
