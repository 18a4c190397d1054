"""Controls that work by keyboard inside JupyterLab and have a name: number, choice, switch, word.

A slider's handle has no accessible name, so each is paired with a number box that has one. Dropdowns, radio
buttons and lists are not used: JupyterLab takes some of their keys for its own commands.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import ipywidgets
import traitlets

_NAMED = {"description_width": "initial"}


class Number(ipywidgets.HBox):
    """A number box with its slider; ``value`` is the number. ``powers`` makes the slider go 1, 2, 4, 8 …

    A number outside the bounds becomes the nearest one inside, and ``note`` says so. ``choices`` are all values that
    it can take, or what they are in words where they cannot be listed; ``stops`` are those that its slider gives.
    """

    value = traitlets.Any()

    def __init__(self, label: str, value: float, low: float, high: float, step: float, powers: bool = False) -> None:
        whole = all(isinstance(number, int) for number in (value, low, high, step))
        self._powers, self._low, self._high = powers, low, high
        listed = whole and not powers
        self.choices = range(low, high + 1, step) if listed else f"any number from {low:g} to {high:g}"
        self.stops = _powers(low, high, whole) if powers else self.choices if listed else _steps(low, high, step)
        box = ipywidgets.IntText if whole else ipywidgets.FloatText
        slider = ipywidgets.IntSlider if whole or powers else ipywidgets.FloatSlider
        ends = (round(math.log2(low)), round(math.log2(high)), 1) if powers else (low, high, step)
        jump = step if whole or not powers else None  # without a step, the box takes any number
        self.box = box(value, step=jump, description=label, style=_NAMED)
        self.box.layout.width = f"{90 + 8 * len(label)}px"
        look = {"min": ends[0], "max": ends[1], "step": ends[2], "readout": False, "tooltip": label}
        self.slider = slider(self._on_slider(value), **look)
        self.slider.layout.width = "170px"
        self.note = ipywidgets.HTML()
        super().__init__([self.box, self.slider, self.note])
        self.value = value
        self.box.observe(lambda change: self.set_trait("value", change.new), "value")
        self.slider.observe(self._slid, "value")
        self.observe(self._changed, "value")

    def _on_slider(self, value: float) -> float:
        return round(math.log2(value)) if self._powers else value

    def _slid(self, change: Any) -> None:
        if change.new != self._on_slider(self.value):
            self.value = 2.0**change.new if self._powers else change.new

    def _changed(self, change: Any) -> None:
        inside = min(max(change.new, self._low), self._high)
        self.box.value = round(inside, 6)  # 1.05 rather than 1.0499999999999998
        self.slider.value = self._on_slider(self.box.value)
        self.value = self.box.value
        bound = "smallest" if change.new < inside else "largest"
        self.note.value = "" if inside == change.new else f"<i>the {bound} is {inside:g}</i>"


def _powers(low: float, high: float, whole: bool) -> list[float]:
    """Return the powers of 2 from ``low`` to ``high``, as the box writes them."""
    powers = [round(2.0**k, 6) for k in range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)]
    return [int(power) for power in powers] if whole else powers


def _steps(low: float, high: float, step: float) -> list[float]:
    """Return the numbers from ``low`` to ``high`` in steps."""
    return [round(low + i * step, 6) for i in range(math.floor((high - low) / step + 1e-9) + 1)]


def number(label: str, value: float, low: float, high: float, step: float = 1, *, powers: bool = False) -> Number:
    """Make a control for a number from ``low`` to ``high``, box and slider; all four int make it whole.

    ``powers`` lets the slider step through the powers of 2, while the box takes any number.
    Raises ValueError unless low ≤ value ≤ high.
    """
    if not low <= value <= high:
        raise ValueError(f"value must lie between {low} and {high}, got {value}")
    return Number(label, value, low, high, step, powers)


class Steps(Number):
    """A whole number from 1 with its slider, and the buttons back, next and reset."""

    def __init__(self, label: str, last: int) -> None:
        super().__init__(label, 1, 1, last, 1)
        goes = {"back": lambda: max(1, self.value - 1), "next": lambda: min(last, self.value + 1), "reset": lambda: 1}
        self.buttons = {name: ipywidgets.Button(description=name, layout={"width": "auto"}) for name in goes}
        for name, go in goes.items():
            self.buttons[name].on_click(lambda _, go=go: self.set_trait("value", go()))
        self.children = (*self.children, *self.buttons.values())


def steps(label: str, last: int) -> Steps:
    """Make a control for a step from 1 to ``last``: box, slider, buttons. Raises ValueError if ``last`` is below 1."""
    if last < 1:
        raise ValueError(f"last must be at least 1, got {last}")
    return Steps(label, last)


def choices_of(control: Any) -> Sequence[Any] | str:
    """Return all values that a control can take, or what they are in words where they cannot be listed."""
    if isinstance(control, ipywidgets.Checkbox):
        return (False, True)
    if hasattr(control, "options"):
        return [value for _, value in control.options]
    return getattr(control, "choices", "any text")


def declared(control: Any, values: Sequence[Any]) -> dict[str, Any]:
    """Describe a control that offers these values to a page without a kernel: kind, label, what is shown of each value.

    "actions" are buttons, of which a script knows what they do. "at" is the number of the present value, and "some" is
    true where the control itself takes more than these values.
    """
    kinds = {Steps: "steps", Number: "number", ipywidgets.Checkbox: "switch", ipywidgets.Text: "text"}
    kind = next((kind for family, kind in kinds.items() if isinstance(control, family)), "")
    kind = kind or ("choice" if hasattr(control, "options") else "actions")
    names = {value: name for name, value in control.options} if kind == "choice" else {}
    label = control.box.description if isinstance(control, Number) else control.description
    every = choices_of(control)
    return {
        "kind": kind,
        "label": label.removesuffix(":"),
        "values": [*control.buttons] if kind == "actions" else [names.get(value, value) for value in values],
        "at": 0 if kind == "actions" else list(values).index(control.value),
        "some": isinstance(every, str) or len(every) > len(values),
    }


def choice(
    label: str, options: Sequence[Any], value: Any = None, *, names: Sequence[str] | None = None
) -> ipywidgets.ToggleButtons | Any:
    """Make a control for one of several options: buttons up to nine, else a slider; the first is the default.

    ``names`` are what the buttons say, where that is not the options themselves.
    """
    options = list(options)
    if not options:
        raise ValueError("options must hold at least one entry, got none")
    value = options[0] if value is None else value
    named = list(zip(names or map(str, options), options, strict=True))
    if len(options) <= 9:
        buttons = ipywidgets.ToggleButtons(options=named, value=value, description=label)
        buttons.style = {"description_width": "initial", "button_width": "auto"}
        buttons.layout = {"width": "max-content"}
        return buttons
    return ipywidgets.SelectionSlider(options=named, value=value, description=label, style=_NAMED)


def switch(label: str, value: bool = False) -> ipywidgets.Checkbox:
    """Make a control that is on or off."""
    return ipywidgets.Checkbox(value, description=label, indent=False, layout={"width": "auto"})


def word(label: str, value: str) -> ipywidgets.Text:
    """Make a control for a typed word; it takes effect on Enter, or when the box is left."""
    return ipywidgets.Text(value, description=label, continuous_update=False, style=_NAMED, layout={"width": "330px"})
