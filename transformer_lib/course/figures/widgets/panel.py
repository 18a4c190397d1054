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
from .controls import choices_of, declared
from .script import Script
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
        carried: values by control that a page without a kernel offers, where all of them are too many (see `carried`).
        script: what works out the effect of controls on such a page.

    Raises:
        ValueError: ``carried`` names a control that there is not.
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
        carried: Mapping[str, Sequence[Any]] | None = None,
        script: Script | None = None,
    ) -> None:
        self.controls, self.spots, self._some = dict(controls), tuple(spots), dict(carried or {})
        self.script = script
        if unknown := sorted(set(self._some) - set(self.controls)):
            raise ValueError(f"carried must name controls among {sorted(self.controls)}, got {unknown}")
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

    @property
    def carried(self) -> dict[str, list[Any]]:
        """The values by control that a page without a kernel offers: the panel's choice, or all, or those of a slider.

        The present value is always among them. Raises ValueError where a control takes any text and none is named.
        """
        return {name: self._carried(name, control) for name, control in self.controls.items()}

    def _carried(self, name: str, control: Any) -> list[Any]:
        values = self._some.get(name, getattr(control, "stops", None) or choices_of(control))
        if isinstance(values, str):
            raise ValueError(f"carried must name values of {name!r}, which takes {values}")
        values = [round(value, 6) if isinstance(value, float) else value for value in values]
        if control.value in values:
            return values
        numbers = isinstance(control.value, int | float)
        return sorted({*values, control.value}) if numbers else [control.value, *values]

    def declared(self) -> list[dict[str, Any]]:
        """Describe every control, as `carried`, for a page that has no kernel."""
        values, ours = self.carried, self.script.controls if self.script else ()
        return [
            {"name": name, **declared(control, values[name]), "scripted": name in ours}
            for name, control in self.controls.items()
        ]

    def states(self, most: int = 500) -> Iterator[tuple[dict[str, Any], Picture, str]]:
        """Return (values, picture, footer) for every setting of the `carried` values, for a page without a kernel.

        The controls stay where they are; the last of them changes fastest. A control whose effect a script works out
        has its first value in all of them.

        Raises:
            ValueError: there are more than ``most`` states, or a control takes any text and none is named.
        """
        ours = self.script.controls if self.script else ()
        values = {name: found[:1] if name in ours else found for name, found in self.carried.items()}
        count = math.prod(map(len, values.values()))
        if count > most:
            raise ValueError(f"{count:,} states are more than {most:,}; name fewer values as `carried`")
        every = (dict(zip(values, setting, strict=True)) for setting in itertools.product(*values.values()))
        return ((each, self._draw(**each), self._footer(**each) if self._footer else "") for each in every)

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
