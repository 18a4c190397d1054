"""The pieces of an SVG picture: text, boxes, arrows, and the two forms in which a picture is shown.

Live, inside a widget, text takes the theme's colour. Saved, the same drawing is an ``<img>`` on a white
card, which needs no kernel and no trust. Nothing here depends on chance, time or memory addresses.
"""

from __future__ import annotations

import base64
import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..plotting.base import MAX_WIDTH, checked_alt, picture_html

TEXT = "var(--jp-content-font-color1, #111)"
SOFT = "var(--jp-content-font-color2, #555)"
LINE = "var(--jp-border-color1, #bbb)"
FOCUS = "var(--jp-brand-color1, #1565c0)"
POINTED = "#e69f00"
FONT_SIZE = 12

# Rules are scoped by the class "tl" because a style sheet inside an inline picture holds for the whole page.
_CSS = (
    '.tl{font:12px system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif;max-width:100%;height:auto}'
    f".tl text{{fill:{TEXT};white-space:pre}}.tl .soft{{fill:{SOFT}}}.tl .bold{{font-weight:600}}"
    ".tl .mid{text-anchor:middle}.tl .end{text-anchor:end}"
    ".tl text.black{fill:#000}.tl text.white{fill:#fff}.tl text.cross{fill:#333}"
    ".tl [tabindex]{outline:none}.tl .row{fill:transparent;stroke:none;stroke-width:2.5}"
    f".tl .row:hover,.tl .row:focus{{stroke:{POINTED}}}"
)


@dataclass(frozen=True)
class Picture:
    """A drawing of ``width`` × ``height`` px; ``alt`` describes it in words, ``says`` is its result in a line.

    ``css`` and ``live`` are for the live form alone (hover, focus); ``table`` is the data, headings first.
    Raises ValueError when ``alt`` is empty or the picture is wider than the page.
    """

    body: str
    width: int
    height: int
    alt: str
    says: str = ""
    css: str = ""
    live: str = ""
    table: Sequence[Sequence[object]] | None = None

    def __post_init__(self) -> None:
        checked_alt(self.alt)
        if not 0 < self.width <= MAX_WIDTH:
            raise ValueError(f"width must be between 1 and {MAX_WIDTH} px, got {self.width}")

    @property
    def svg(self) -> str:
        """The live form: inline SVG in the theme's colours, its parts reachable by Tab."""
        return self._document(self.css, self.body + self.live, 'role="group"')

    @property
    def saved_svg(self) -> str:
        """The saved form: the same drawing on a white card."""
        card = rect(0, 0, self.width, self.height, "#fff")
        return self._document("", card + self.body, 'role="img"')

    @property
    def saved_html(self) -> str:
        """The saved form as an ``<img>`` with its alternative text, and the data in a folded table."""
        source = "data:image/svg+xml;base64," + base64.b64encode(self.saved_svg.encode()).decode("ascii")
        return picture_html(source, self.alt, self.width, table=self.table)

    def _document(self, css: str, body: str, role: str) -> str:
        size = f'width="{self.width}" height="{self.height}" viewBox="0 0 {self.width} {self.height}"'
        name = f'{role} aria-label="{escape(self.alt)}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" class="tl" {size} {name}>'
        return f"{head}<style>{_CSS}{css}</style>{body}</svg>"


def escape(text: object) -> str:
    """Make text safe between tags and inside attribute values."""
    return html.escape(str(text))


def number(value: float) -> str:
    """Write a coordinate with at most one decimal, without a needless “.0” or a negative zero."""
    return f"{round(float(value), 1) + 0.0:g}"


def text(x: float, y: float, content: object, kind: str = "", *, turn: float = 0.0, size: int | None = None) -> str:
    """Draw a line of text, its baseline at (x, y); ``kind`` names classes: mid, end, bold, soft, black, white."""
    turned = f' transform="rotate({number(turn)} {number(x)} {number(y)})"' if turn else ""
    sized = f' font-size="{size}"' if size else ""
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{number(x)}" y="{number(y)}"{named}{turned}{sized}>{escape(content)}</text>'


def text_width(content: str, size: float = FONT_SIZE) -> float:
    """Estimate how wide a line will be, in px: generously, since fonts differ."""
    return 0.6 * size * len(content)


def fit(content: str, width: float, size: float = FONT_SIZE) -> str:
    """Return the text, cut with “…” where it would be wider than ``width`` px."""
    room = int(width / (0.6 * size))
    return content if len(content) <= room else content[: max(0, room - 1)] + "…"


def rect(x: float, y: float, width: float, height: float, fill: str, extra: str = "") -> str:
    """Draw a box; ``extra`` is put into the tag as it is."""
    place = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
    return f'<rect {place} fill="{fill}"{" " + extra if extra else ""}/>'


def line(x1: float, y1: float, x2: float, y2: float, stroke: str = LINE, extra: str = "") -> str:
    """Draw a straight line."""
    place = f'x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}"'
    return f'<line {place} stroke="{stroke}"{" " + extra if extra else ""}/>'


def circle(x: float, y: float, radius: float, fill: str, extra: str = "") -> str:
    """Draw a circle around (x, y)."""
    place = f'cx="{number(x)}" cy="{number(y)}" r="{number(radius)}"'
    return f'<circle {place} fill="{fill}"{" " + extra if extra else ""}/>'


def ring(x: float, y: float, colour: str = TEXT, width: float = 2, radius: float = 5) -> str:
    """Mark a point of a curve without hiding it."""
    return circle(x, y, radius, "none", f'stroke="{colour}" stroke-width="{width:g}"')


def path_of(points: Iterable[Sequence[float]]) -> str:
    """Write points as the corners of a polyline or polygon."""
    return " ".join(f"{number(x)},{number(y)}" for x, y in points)


def polyline(points: Iterable[Sequence[float]], look: str) -> str:
    """Join points by straight lines; ``look`` holds the attributes of stroke and fill."""
    return f'<polyline points="{path_of(points)}" {look}/>'


def polygon(points: Iterable[Sequence[float]], look: str) -> str:
    """Draw the closed shape with these corners."""
    return f'<polygon points="{path_of(points)}" {look}/>'


def hover_rules(count: int, rule: str = "display:inline") -> str:
    """Return CSS that gives the parts of class s3 the ``rule`` while row q3 is pointed at, or else has the focus.

    Without JavaScript: ``:has`` looks inside the same picture, so two pictures on a page never meet.
    """
    rules = [".tl .say{display:none}.tl:has(.row:hover) .idle,.tl:has(.row:focus) .idle{display:none}"]
    for i in range(count):
        focused = f".tl:not(:has(.row:hover)):has(.q{i}:focus) .s{i}"
        rules.append(f".tl:has(.q{i}:hover) .s{i},{focused}{{{rule}}}")
    return "".join(rules)


def arrow(x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 2.5) -> str:
    """Draw an arrow from (x1, y1) to (x2, y2); nothing when the two coincide."""
    length = math.hypot(x2 - x1, y2 - y1)
    if length < 0.5:
        return ""
    head = min(11.0, length)
    ux, uy = (x2 - x1) / length, (y2 - y1) / length
    base_x, base_y = x2 - head * ux, y2 - head * uy
    corners = [(x2, y2), (base_x - 0.45 * head * uy, base_y + 0.45 * head * ux)]
    corners.append((base_x + 0.45 * head * uy, base_y - 0.45 * head * ux))
    shaft = line(x1, y1, base_x, base_y, colour, f'stroke-width="{number(width)}"')
    return shaft + polygon(corners, f'fill="{colour}"')
