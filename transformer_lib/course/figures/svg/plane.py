"""Two vectors in the plane: their arrows, the projection of one on the other, their dot product."""

from __future__ import annotations

import math

from ..plotting.base import KEY, QUERY, signed_text
from .elements import LINE, Picture, arrow, line, number, rect, text

_SIDE, _SIDEBAR, _MARGIN = 380, 300, 16


def dot_product_plane(query: tuple[float, float], key: tuple[float, float], *, reach: float = 5.0) -> Picture:
    """Draw query and key as arrows, the key's projection on the query, and score, cosine and lengths in numbers.

    ``reach`` is how far the axes go; longer vectors widen them.
    """
    reach = max(reach, *(math.ceil(abs(c)) for c in (*query, *key)))
    facts = dot_product_facts(query, key)
    parts = [_axes(reach), _projection(query, key, reach)]
    for vector, colour, label in ((key, KEY, "■ k"), (query, QUERY, "● q")):
        x, y = _place(vector, reach)
        parts.append(arrow(*_place((0, 0), reach), x, y, colour, 3))
        beyond = 18 / (math.hypot(*vector) or 1.0)  # px past the tip, and a little up: clear of the axis
        parts.append(text(x + beyond * vector[0], y - beyond * vector[1] - 3, label, "bold mid"))
    parts.append(_sidebar(facts))
    says = f"angle {facts['angle']:.0f}°, cosine {signed_text(facts['cosine'])}, "
    says += f"lengths {facts['query length']:.2f} and {facts['key length']:.2f}: "
    says += f"score {signed_text(facts['score'])}"
    alt = f"Query and key as arrows in the plane: {says}; projection {signed_text(facts['projection'])}."
    table = [["quantity", "value"], *([name, signed_text(value)] for name, value in facts.items())]
    return Picture("".join(parts), _SIDE + _SIDEBAR, _SIDE, alt, says, table=table)


def dot_product_facts(query: tuple[float, float], key: tuple[float, float]) -> dict[str, float]:
    """Return lengths, angle in degrees (0 to 180), cosine, projection of key on query, and score q · k.

    With a zero vector there is no angle: cosine, angle and projection are then 0.
    """
    q_length, k_length = math.hypot(*query), math.hypot(*key)
    score = query[0] * key[0] + query[1] * key[1]
    cosine = score / (q_length * k_length) if q_length and k_length else 0.0
    cosine = 0.0 if abs(cosine) < 1e-12 else max(-1.0, min(1.0, cosine))
    return {
        "query length": q_length,
        "key length": k_length,
        "angle": math.degrees(math.acos(cosine)) if q_length and k_length else 0.0,
        "cosine": cosine,
        "projection": k_length * cosine,
        "score": q_length * k_length * cosine,
    }


def _place(vector: tuple[float, float], reach: float) -> tuple[float, float]:
    scale = (_SIDE / 2 - _MARGIN - 14) / reach
    return _SIDE / 2 + vector[0] * scale, _SIDE / 2 - vector[1] * scale


def _axes(reach: float) -> str:
    parts, last = [], math.floor(reach)
    for tick in range(-last, last + 1):
        strong = 'stroke-width="1.4"' if tick == 0 else 'stroke-width="0.6" stroke-dasharray="2 3"'
        parts.append(line(*_place((tick, -reach), reach), *_place((tick, reach), reach), LINE, strong))
        parts.append(line(*_place((-reach, tick), reach), *_place((reach, tick), reach), LINE, strong))
    step = max(1, last // 5)
    for tick in range(-last, last + 1):
        if tick and tick % step == 0:
            x, y = _place((tick, 0), reach)
            parts.append(text(x, y + 14, signed_text(tick).removesuffix(".00"), "mid soft", size=11))
    return "".join(parts)


def _projection(query: tuple[float, float], key: tuple[float, float], reach: float) -> str:
    """Draw the perpendicular from the key's tip to the query's line, and the part of the line that it cuts off."""
    length = math.hypot(*query)
    if not length:
        return ""
    along = (query[0] * key[0] + query[1] * key[1]) / length**2
    foot = _place((along * query[0], along * query[1]), reach)
    origin, tip = _place((0, 0), reach), _place(key, reach)
    shadow = line(*origin, *foot, KEY, 'stroke-width="8" stroke-opacity=".35"')
    return shadow + line(*tip, *foot, KEY, 'stroke-dasharray="5 4" stroke-width="1.5"')


def _sidebar(facts: dict[str, float]) -> str:
    """Draw the numbers in a column, and cosine and score as bars about 0."""
    rows = [
        ("length of q", signed_text(facts["query length"])),
        ("length of k", signed_text(facts["key length"])),
        ("angle between them", f"{facts['angle']:.0f}°"),
        ("cosine", signed_text(facts["cosine"])),
        ("projection of k on q", signed_text(facts["projection"])),
        ("score q · k", signed_text(facts["score"])),
    ]
    x, right = _SIDE + 20, _SIDE + _SIDEBAR - 20
    parts = []
    for i, (name, value) in enumerate(rows):
        kind = " bold" if i == len(rows) - 1 else ""
        parts.append(text(x, 40 + 24 * i, name, kind.strip()) + text(right, 40 + 24 * i, value, f"end{kind}"))
    parts.append(_meter("cosine, −1 to 1", facts["cosine"], x, 210, right - x))
    parts.append(_meter("score, −25 to 25", facts["score"] / 25, x, 270, right - x))
    parts.append(text(x, 336, "score = length of q × projection", "soft", size=11))
    return "".join(parts)


def _meter(label: str, share: float, x: float, y: float, width: float) -> str:
    """Draw a bar to the right of the middle for positive, to its left for negative; ``share`` is in [−1, 1]."""
    share, middle = max(-1.0, min(1.0, share)), x + width / 2
    length = abs(share) * width / 2
    start = middle if share >= 0 else middle - length
    colour = "#542788" if share >= 0 else "#b35806"
    frame = rect(x, y + 8, width, 16, "none", f'stroke="{LINE}"')
    bar = rect(start, y + 8, max(length, 1), 16, colour, f'data-share="{number(100 * share)}"')
    return text(x, y, label, "soft", size=11) + frame + bar + line(middle, y + 5, middle, y + 27, LINE)
