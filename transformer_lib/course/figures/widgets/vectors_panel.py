"""W2, the dot product in the plane: it grows with length as well as with closeness of direction."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..plotting.base import as_array
from ..svg.elements import Picture
from ..svg.plane import dot_product_facts, dot_product_plane
from .controls import Number, number
from .panel import Panel


def dot_product(query: Sequence[float] = (3.0, 0.0), key: Sequence[float] = (1.0, 2.0)) -> Panel:
    """Show two vectors of the plane, with the key's angle to the query and both lengths to move.

    The query keeps its direction. Raises ValueError when a vector is zero or has not two components.
    """
    start_query, start_key = _vector("query", query), _vector("key", key)
    turn = math.atan2(start_query[1], start_query[0])
    angle = round(math.degrees(math.atan2(start_key[1], start_key[0]) - turn))
    facts = dot_product_facts(start_query, start_key)
    lengths = [round(facts[name], 2) for name in ("query length", "key length")]
    start = {"angle": (angle + 180) % 360 - 180, "key_length": lengths[1], "query_length": lengths[0]}

    def draw(**values: float) -> Picture:
        if values == start:  # the vectors as given, not from rounded angle and lengths
            return dot_product_plane(start_query, start_key)
        at = turn + math.radians(values["angle"])
        return dot_product_plane(_polar(values["query_length"], turn), _polar(values["key_length"], at))

    longest = max(5.0, *lengths)
    controls = {
        "angle": number("angle of k to q in °", start["angle"], -180, 180),
        "key_length": _length("length of k", start["key_length"], longest),
        "query_length": _length("length of q", start["query_length"], longest),
    }
    return Panel(draw, controls, widget_id="W2", carried={"angle": range(-180, 181, 15)})


def _length(label: str, start: float, longest: float) -> Number:
    """Make a control for a length in steps of ½ that include the start, since a slider snaps to its steps."""
    return number(label, start, round(start % 0.5, 2), longest, 0.5)


def _vector(name: str, values: Sequence[float]) -> tuple[float, float]:
    array = as_array(name, values, 1)
    if array.shape != (2,) or not array.any():
        raise ValueError(f"{name} must be a vector of two components, not both zero, got {array.tolist()}")
    return float(array[0]), float(array[1])


def _polar(length: float, angle: float) -> tuple[float, float]:
    return length * math.cos(angle), length * math.sin(angle)
