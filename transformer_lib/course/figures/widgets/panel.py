"""``Panel``: controls above a picture that a pure function draws from their values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import ipywidgets

from ...progress import mark
from ..svg import Picture
from ..svg.elements import escape
from .controls import choices_of
from .spots import Spot, over

_LINE = 90  # characters that fit beside each other in the line of text
_WAKE = '<p class="tl-wake">▶ Run this cell (Shift+Enter) to get the controls.</p>'
_WRAP = {"flex_flow": "row wrap", "align_items": "center", "grid_gap": "2px 18px", "overflow": "visible"}


class Panel(ipywidgets.VBox):
    """Controls, their result in one line, and the picture, which is what a saved notebook keeps, with alternative text.

    Args:
        draw: called with the value of every control by name; returns the Picture. It must be pure.
        controls: widgets with a ``value``, by the names of ``draw``'s arguments.
        widget_id: id in `figures.catalogue` under which the learner's first change is remembered, such as "W1".
        footer: called like ``draw``; HTML below the picture, such as links to other notebooks.
        spots: parts of the picture that set a control when they are clicked.
        says_lines: the most lines that the result takes, if known; the picture then never moves.
    """

    def __init__(
        self,
        draw: Callable[..., Picture],
        controls: Mapping[str, Any],
        *,
        widget_id: str | None = None,
        footer: Callable[..., str] | None = None,
        spots: Sequence[Spot] = (),
        says_lines: int = 1,
    ) -> None:
        self.controls = dict(controls)
        self._draw, self._footer, self._widget_id = draw, footer, widget_id
        self._by_code, self._lines = False, says_lines
        self._says, self._view, self._below = ipywidgets.HTML(), ipywidgets.HTML(), ipywidgets.Output()
        self._redraw()
        row = ipywidgets.HBox(list(self.controls.values()), layout=_WRAP)
        shown = over(self._view, spots, self.picture, self._clicked) if spots else self._view
        super().__init__([row, self._says, shown, *([self._below] if footer else [])])
        for control in self.controls.values():
            control.observe(self._changed, "value")

    @property
    def values(self) -> dict[str, Any]:
        """The value of every control by name."""
        return {name: control.value for name, control in self.controls.items()}

    def unlisted(self, most: int = 500) -> str:
        """Say why the states of the panel cannot all be listed; "" where there are at most ``most`` of them."""
        choices = {name: choices_of(control) for name, control in self.controls.items()}
        for name, values in choices.items():
            if isinstance(values, str):
                return f"{name} takes {values}"
        count = math.prod(map(len, choices.values()))
        return f"{count:,} states are more than {most:,}" if count > most else ""

    def states(self, most: int = 500) -> Iterator[tuple[dict[str, Any], Picture]]:
        """Return (values, picture) for every setting of the controls, such as a page without a kernel would keep.

        The controls stay where they are; the last of them changes fastest.

        Raises:
            ValueError: there are more than ``most`` states, or a control takes any number or text (see `unlisted`).
        """
        if reason := self.unlisted(most):
            raise ValueError(f"states cannot be listed: {reason}")
        settings = itertools.product(*map(choices_of, self.controls.values()))
        every = (dict(zip(self.controls, setting, strict=True)) for setting in settings)
        return ((values, self._draw(**values)) for values in every)

    def set(self, **values: Any) -> Panel:
        """Move controls from code; returns the panel. Raises ValueError on a name that it does not have."""
        unknown = sorted(set(values) - set(self.controls))
        if unknown:
            raise ValueError(f"values must name controls among {sorted(self.controls)}, got {unknown}")
        self._by_code = True
        try:
            for name, value in values.items():
                self.controls[name].value = value
        finally:
            self._by_code = False
        return self

    def _clicked(self, spot: Spot) -> None:
        self.controls[spot.control].value = spot.value

    def _changed(self, change: Any) -> None:
        self._redraw()
        if self._widget_id and not self._by_code:
            mark("widget", self._widget_id)
            self._widget_id = None  # once is enough

    def _redraw(self) -> None:
        self.picture = self._draw(**self.values)
        self._view.value = self.picture.svg
        # As many lines as were ever needed: the picture below stays where it is.
        self._lines = max(self._lines, math.ceil(len(self.picture.says) / _LINE))
        room = f'style="min-height:{1.5 * self._lines:g}em;line-height:1.5"'
        self._says.value = f'<div role="status" aria-live="polite" {room}><b>{escape(self.picture.says)}</b></div>'
        self._foot = self._footer(**self.values) if self._footer else ""
        if self._footer:  # shown as an output, since only there JupyterLab follows links between notebooks
            data = {"text/html": self._foot, "text/plain": ""}
            self._below.outputs = ({"output_type": "display_data", "data": data, "metadata": {}},)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle = super()._repr_mimebundle_(**kwargs)
        says = f"<p><strong>{escape(self.picture.says)}</strong></p>\n" if self.picture.says else ""
        saved = _WAKE + says + self.picture.saved_html + self._foot
        return {**bundle, "text/html": saved, "text/plain": self.picture.alt}
