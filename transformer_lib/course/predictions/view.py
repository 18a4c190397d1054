"""Shows a prediction: controls where there is a kernel, else its question as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..quiz.view import STYLE, WAKE, rich, stand_in, status
from .model import Choice, Number, Prediction, Said

if TYPE_CHECKING:
    import ipywidgets

Commit = Callable[[Said], str]  # notes what was said and returns a line about it; ValueError when it cannot be read


def plain(asked: Prediction) -> str:
    """Return the question as text."""
    lines = [f"Your prediction {asked.id}: {asked.prompt}"]
    if isinstance(asked, Choice):
        lines += [f"  {letter}. {option}" for letter, option in zip(asked.letters, asked.options, strict=True)]
    return "\n".join([*lines, f'  By text: predict("{asked.id}", {stand_in(asked)})'])


def html(asked: Prediction) -> str:
    """Return the question as HTML for a page without a kernel."""
    options = "".join(f"<li>{rich(option)}</li>" for option in getattr(asked, "options", ()))
    listed = f'<ol type="A" style="list-style-type:upper-alpha">{options}</ol>' if options else ""
    return f"<div>{head(asked)}{listed}{WAKE}</div>"


def head(asked: Prediction) -> str:
    """Return the question itself."""
    return f"<p><b>Your prediction</b> {rich(asked.prompt)}</p>"


def compared(text: str, right: bool | None) -> str:
    """Return the line that follows a run as HTML: green for a prediction that came true, amber for a surprise."""
    edge = {True: "#2e7d32", False: "#B8860B", None: "#8a8a8a"}[right]
    return f'<p style="border-left:4px solid {edge};padding-left:8px"><b>{rich(text)}</b></p>'


def build(asked: Prediction, commit: Commit, before: str) -> ipywidgets.VBox:
    """Build the widget: the question, its controls, and a line that says what was noted."""
    from ipywidgets import HTML, Layout, VBox

    line = HTML(status(before))

    def note(said: Said) -> bool:
        try:
            line.value = status(commit(said))
        except ValueError as error:
            line.value = status(f"{error}")
            return False
        return True

    controls = _options(asked, note) if isinstance(asked, Choice) else _number(asked, note)
    return VBox([HTML(STYLE + head(asked)), *controls, line], layout=Layout(max_width="720px"))


def _options(asked: Choice, note: Callable[[Said], bool]) -> list[ipywidgets.HBox]:
    """Make one line for each option, its letter a button; the one that was chosen last is filled."""
    from ipywidgets import HTML, Button, HBox, Layout

    buttons: list[ipywidgets.Button] = []

    def press(button: ipywidgets.Button) -> None:
        if note(button.description):
            for each in buttons:
                each.button_style = "info" if each is button else ""

    lines = []
    for letter, option in zip(asked.letters, asked.options, strict=True):
        button = Button(description=letter, tooltip=f"{letter}: {option}", layout=Layout(width="64px", flex="0 0 auto"))
        button.add_class("tl-letter")
        button.on_click(press)
        buttons.append(button)
        line = HBox([button, HTML(rich(option))])
        line.add_class("tl-option")
        lines.append(line)
    return lines


def _number(asked: Number, note: Callable[[Said], bool]) -> list[ipywidgets.HBox]:
    """Make a line for the number, which Enter commits, and a button."""
    from ipywidgets import Button, HBox, Layout, Text

    box = Text(
        description="I expect",
        placeholder=asked.hint.removeprefix("a number "),
        style={"description_width": "initial"},
        layout=Layout(width="240px"),
    )

    def heard(_: object, content: dict[str, object], __: object) -> None:
        if content.get("event") == "submit":  # Enter; `Text.on_submit` hears the same, and warns that it is old
            note(box.value)

    box.on_msg(heard)
    button = Button(description="That is my guess", tooltip="Note my prediction", layout=Layout(width="150px"))
    button.on_click(lambda _: note(box.value))
    return [HBox([box, button])]
