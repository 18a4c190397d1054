"""Points of the plane on their way, round after round: where each started, its path, and where it is now."""

from __future__ import annotations

import numpy as np

from ..plotting.base import signed_text
from .elements import LINE, circle, line, polyline, ring, text

WIDTH, HEIGHT = 560, 420
_MARGIN = 34
_MOVED, _START = "#0072B2", "#767676"


def paths_part(paths: np.ndarray) -> str:
    """Draw paths [rounds + 1, n, 2] in a plane that holds all starts: grey rings where they started, dots now."""
    reach = float(np.abs(paths[0]).max())
    places, parts = _places(paths, reach), [_axes(reach)]
    for path in places.swapaxes(0, 1).tolist():
        parts.append(polyline(path, f'fill="none" stroke="{_MOVED}" stroke-width="1.3" stroke-opacity=".55"'))
    parts += [ring(x, y, _START, 1.4, 4.5) for x, y in places[0].tolist()]
    parts += [circle(x, y, 3, _MOVED, 'fill-opacity=".5"') for step in places[1:-1] for x, y in step.tolist()]
    parts += [circle(x, y, 6, _MOVED, 'stroke="#fff" stroke-width="1"') for x, y in places[-1].tolist()]
    return "".join(parts)


def _places(points: np.ndarray, reach: float) -> np.ndarray:
    """Return points [..., 2] of a plane that reaches from −reach to reach upwards, as px [..., 2]."""
    scale = (HEIGHT / 2 - _MARGIN) / (reach or 1.0)
    return np.stack([WIDTH / 2 + points[..., 0] * scale, HEIGHT / 2 - points[..., 1] * scale], axis=-1)


def _axes(reach: float) -> str:
    """Draw the two axes with a tick near their ends, so that the scale can be read."""
    tick = float(f"{0.8 * reach:.1g}") or 1.0
    ends = _places(np.array([[tick, 0.0], [0.0, tick]]), reach).tolist()
    drawn = line(12, HEIGHT / 2, WIDTH - 12, HEIGHT / 2, LINE) + line(WIDTH / 2, 12, WIDTH / 2, HEIGHT - 12, LINE)
    (x, y), (_, up) = ends
    drawn += line(x, y - 4, x, y + 4, LINE) + line(WIDTH / 2 - 4, up, WIDTH / 2 + 4, up, LINE)
    label = signed_text(tick, 1).removesuffix(".0")
    drawn += text(x, y + 17, label, "mid soft", size=11) + text(WIDTH / 2 + 8, up + 4, label, "soft", size=11)
    drawn += text(WIDTH - 14, HEIGHT / 2 - 8, "first feature", "end soft", size=11)
    return drawn + text(WIDTH / 2 + 8, 20, "second feature", "soft", size=11)
