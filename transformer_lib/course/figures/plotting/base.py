"""What static and interactive figures share: checks of arrays, labels, the ink on a cell, the saved HTML."""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

QUERY, KEY, VALUE = "#0072B2", "#D55E00", "#CC79A7"
"""Colours of query (●), key (■) and value (◆), the same in every figure; always with the letter."""

QUERY_AXIS, KEY_AXIS = "query (reads) ↓", "key (is read) →"
MAX_WIDTH = 720
"""The widest figure, in CSS pixels."""


def checked_alt(alt: str) -> str:
    """Strip the alternative text; TypeError when it is no string, ValueError when it says nothing."""
    if not isinstance(alt, str):
        raise TypeError(f"alt must be a string, got {type(alt).__name__}")
    if not alt.strip():
        raise ValueError("alt must say what the picture shows, got an empty text")
    return alt.strip()


def as_array(name: str, data: Any, *ndims: int, allow_negative_infinity: bool = False) -> np.ndarray:
    """Return ``data`` as a float array with one of these numbers of axes; ValueError says what does not fit."""
    data = data.detach().cpu() if hasattr(data, "detach") else data
    array = np.asarray(data, dtype=float)
    if array.ndim not in ndims:
        wanted = " or ".join(str(n) for n in ndims)
        raise ValueError(f"{name} must be an array with {wanted} axes, got shape {array.shape}")
    allowed = np.isfinite(array) | (np.isneginf(array) if allow_negative_infinity else False)
    if not np.all(allowed):
        raise ValueError(f"{name} must hold finite numbers, got {array[~allowed].flat[0]}")
    return array


def head_arrays(X: Any, W_Q: Any, W_K: Any, W_V: Any, tokens: Sequence[str]) -> list[np.ndarray]:
    """Return the tokens' vectors and a head's matrices as arrays; ValueError says what does not fit together."""
    given = {"X": X, "W_Q": W_Q, "W_K": W_K, "W_V": W_V}
    X, W_Q, W_K, W_V = (as_array(name, data, 2) for name, data in given.items())
    if len(tokens) != len(X):
        raise ValueError(f"tokens must have one entry per row of X, {len(X)}, got {len(tokens)}")
    for name, matrix in (("W_Q", W_Q), ("W_K", W_K), ("W_V", W_V)):
        if len(matrix) != X.shape[1]:
            raise ValueError(f"{name} must have d_model = {X.shape[1]} rows, got {len(matrix)}")
    if W_Q.shape != W_K.shape:
        raise ValueError(f"W_K must have the shape of W_Q, {W_Q.shape}, got {W_K.shape}")
    return [X, W_Q, W_K, W_V]


def check_room(name: str, size: int, least: int, most: int) -> None:
    """Raise ValueError unless this many fit the picture."""
    if not least <= size <= most:
        raise ValueError(f"{name} must be between {least} and {most} to fit the picture, got {size}")


def check_weights(name: str, weights: np.ndarray) -> None:
    """Raise ValueError unless every value lies in [0, 1], up to rounding."""
    if weights.size and (weights.min() < -1e-6 or weights.max() > 1 + 1e-6):
        low, high = weights.min(), weights.max()
        raise ValueError(f"{name} must lie between 0 and 1, got {low:.3g} to {high:.3g}")


def visible_cells(mask: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return the boolean mask (True = may attend) as an array of this shape; without one, all cells are visible.

    Leading axes of length 1, as `tl.causal_mask` has them, are dropped.
    """
    if mask is None:
        return np.ones(shape, dtype=bool)
    mask = np.asarray(mask.detach().cpu() if hasattr(mask, "detach") else mask)
    if mask.dtype != bool:
        raise TypeError(f"mask must be boolean (True = may attend), got {mask.dtype}")
    mask = mask.reshape(mask.shape[-2:]) if set(mask.shape[:-2]) == {1} else mask
    if mask.shape != shape:
        raise ValueError(f"mask must have shape {shape}, got {mask.shape}")
    return mask


def distinct_tokens(tokens: Sequence[str]) -> list[str]:
    """Number the repeated tokens, so that a label names one: the cat the → the₁ cat the₂."""
    tokens = [str(token) for token in tokens]
    total, seen = Counter(tokens), Counter()
    labels = []
    for token in tokens:
        seen[token] += 1
        index = str(seen[token]).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))
        labels.append(token + index if total[token] > 1 else token)
    return labels


def weight_text(weight: float, short: bool = False) -> str:
    """Write a weight with two decimals; a small one is "<.01", never "0.00", and only an exact zero is "0"."""
    if weight == 0:
        return "0"
    if weight < 0.005:
        return "<.01"
    text = f"{weight:.2f}"
    return text.removeprefix("0") if short else text


def signed_text(value: float, decimals: int = 2) -> str:
    """Write a signed number with a real minus sign and no negative zero."""
    return f"{round(value, decimals) + 0.0:.{decimals}f}".replace("-", "−")


def counted(number: int, thing: str) -> str:
    """Write how many there are of a thing whose plural takes an s: "1 head", "1,024 heads"."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def check_sentences(sentences: Sequence[str]) -> None:
    """Raise unless there is at least one sentence; a single string is no list of sentences."""
    if isinstance(sentences, str):
        raise TypeError(f"sentences must be a list of strings, got one string: {sentences!r}")
    if not sentences:
        raise ValueError("sentences must hold at least one sentence, got none")


def softmax(scores: np.ndarray) -> np.ndarray:
    """Return the softmax of scores over their last axis."""
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def likeliest(probabilities: np.ndarray, words: Sequence[str], most: int = 4) -> list[tuple[str, float]]:
    """Return the likeliest words with their probabilities, the likeliest first."""
    order = np.argsort(-probabilities, kind="stable")[:most]
    return [(words[i], float(probabilities[i])) for i in order]


def shown_cells(weights: np.ndarray, visible: np.ndarray) -> np.ndarray:
    """Say which cells of a weight map carry their number: all up to 12 tokens, large ones up to 24, else none."""
    longest = max(weights.shape)
    if longest <= 12:
        return visible
    if longest > 24:
        return np.zeros_like(visible)
    return visible & ((weights >= 0.1) | (weights == weights.max(-1, keepdims=True)))


def ink(red: float, green: float, blue: float) -> str:
    """Return black or white, whichever has more contrast with a colour (components 0–1): at least 4.5 : 1 (WCAG 2)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (red, green, blue)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000" if luminance > 0.179 else "#fff"


def picture_html(
    source: str,
    alt: str,
    width: int,
    caption: str | None = None,
    table: Sequence[Sequence[object]] | None = None,
) -> str:
    """Return the HTML that the saved notebook keeps: an image on a white card, its caption, its data folded away."""
    parts = [
        f'<img alt="{html.escape(alt)}" src="{source}" width="{width}" '
        'style="background:#fff;border-radius:4px;max-width:100%;height:auto">'
    ]
    if caption:
        parts.append(f"<p><em>{html.escape(caption)}</em></p>")
    if table:
        head, *rows = [[html.escape(str(cell)) for cell in row] for row in table]
        lines = ["<tr>" + "".join(f'<th scope="col">{cell}</th>' for cell in head) + "</tr>"]
        lines += ["<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows]
        summary = "<summary>The data as a table</summary>"
        parts.append(f"<details>{summary}<table>{''.join(lines)}</table></details>")
    return "\n".join(parts)


def plain_number(number: float) -> str:
    """Write a number below an axis: 0.001, 64 and 100,000, and powers of ten from 10⁻⁵ down as such."""
    if 0 < number < 9e-5 and f"{number:e}".startswith("1.000000e"):
        return f"$10^{{{math.floor(math.log10(number) + 0.5)}}}$"
    return f"{number:,.0f}" if number >= 1000 else f"{number:g}"
