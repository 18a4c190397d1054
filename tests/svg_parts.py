"""An SVG drawing taken apart, so that tests ask where things are and not how they are written."""

from __future__ import annotations

import xml.etree.ElementTree as ET

Point = tuple[float, float]


def parts(drawn: str, tag: str) -> list[ET.Element]:
    """Return every element with this tag, in the order of drawing."""
    return list(ET.fromstring(f"<g>{drawn}</g>").iter(tag))


def number(part: ET.Element, name: str) -> float:
    """Return a number among the attributes; 0 where SVG takes 0 for granted."""
    return float(part.get(name, 0))


def points(line: ET.Element) -> list[Point]:
    """Return the corners of a polyline."""
    return [tuple(map(float, pair.split(","))) for pair in line.get("points").split()]


def centre(circle: ET.Element) -> Point:
    return number(circle, "cx"), number(circle, "cy")


def assert_inside(picture, below: float = 4) -> None:
    """Boxes and lines of text lie within the picture, the lowest text at least `below` px above its edge."""
    boxes, lines = parts(picture.body, "rect"), parts(picture.body, "text")
    assert lines
    for box in boxes:
        assert number(box, "x") >= 0 and number(box, "x") + number(box, "width") <= picture.width
        assert number(box, "y") >= 0 and number(box, "y") + number(box, "height") <= picture.height
    for line in lines:
        assert 0 <= number(line, "x") <= picture.width
        assert 0 < number(line, "y") <= picture.height - below
