"""Parts of a picture that can be clicked: invisible buttons over it, since a picture cannot speak to the kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ipywidgets

from ..svg import Picture


@dataclass(frozen=True)
class Spot:
    """A rectangle of the picture, in its own coordinates, that sets ``control`` to ``value`` when it is clicked."""

    label: str
    control: str
    value: Any
    x: float
    y: float
    width: float
    height: float


_STYLE = (
    ".tl-spots{position:relative;width:fit-content;max-width:100%;overflow:visible}.tl-spots>*{margin:0}"
    ".tl-spots .tl-spot{position:absolute;margin:0;background:transparent;box-shadow:none;border-radius:5px}"
    ".tl-spots .tl-spot:hover{outline:2px solid var(--jp-brand-color1,#1565c0)}"
)


def over(
    view: ipywidgets.HTML, spots: Sequence[Spot], picture: Picture, clicked: Callable[[Spot], None]
) -> ipywidgets.Box:
    """Return the view with a button over each spot; the keyboard has the control itself, so Tab skips the buttons."""
    rules, buttons = [_STYLE], []
    for number, spot in enumerate(spots):
        button = ipywidgets.Button(tooltip=spot.label, tabbable=False, layout={"width": "auto", "height": "auto"})
        button.on_click(lambda _, spot=spot: clicked(spot))
        button.add_class("tl-spot").add_class(f"tl-spot-{number}")
        place = {
            "left": spot.x / picture.width,
            "top": spot.y / picture.height,
            "width": spot.width / picture.width,
            "height": spot.height / picture.height,
        }
        sizes = "".join(f"{name}:{100 * share:.3f}%!important;" for name, share in place.items())
        rules.append(f".tl-spots-{picture.width}x{picture.height} .tl-spot-{number}{{{sizes}}}")
        buttons.append(button)
    style = ipywidgets.HTML(f"<style>{''.join(rules)}</style>", layout={"display": "none"})
    box = ipywidgets.Box([style, view, *buttons])
    return box.add_class("tl-spots").add_class(f"tl-spots-{picture.width}x{picture.height}")
