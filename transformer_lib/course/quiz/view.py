"""Shows a question: a widget where there is a kernel, else text with the explanations folded away."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cached_property
from html import escape
from itertools import zip_longest
from typing import TYPE_CHECKING

from .model import Answer, Choice, Feedback, Number, Question

if TYPE_CHECKING:
    import ipywidgets


class AskedView:
    """Something asked that shows itself: as a widget, or as HTML, or as plain text."""

    def __init__(self, page: str, text: str) -> None:
        """Show `page` where HTML can be shown, else `text`."""
        self._bundle = {"text/html": page, "text/plain": text}

    def build(self) -> ipywidgets.VBox:
        """Return a new ipywidgets box."""
        raise NotImplementedError

    @cached_property
    def widget(self) -> ipywidgets.VBox:
        """The ipywidgets box; made when it is first needed."""
        return self.build()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, object]:
        try:
            live = self.widget._repr_mimebundle_() or {}
        except ImportError:  # ipywidgets is not installed: the text is enough
            live = {}
        return {**live, **self._bundle}

    def __repr__(self) -> str:
        """Return what is asked as text."""
        return self._bundle["text/plain"]


def rich(text: str) -> str:
    """Return text as HTML: escaped, with `code` in backticks and *a word* in asterisks."""
    parts = re.split(r"`([^`]+)`", escape(text))  # what stands in backticks is at the odd places
    marked = (re.sub(r"(?<![\w*])\*(\w[^*]*)\*(?![\w*])", r"<em>\1</em>", part) for part in parts[::2])
    code = (f"<code>{part}</code>" for part in parts[1::2])
    return "".join(part for pair in zip_longest(marked, code, fillvalue="") for part in pair)


def plain(question: Question) -> str:
    """Return the question as text, without its answers."""
    lines = [f"Question {question.id}: {question.prompt}"]
    if isinstance(question, Choice):
        pairs = zip(question.letters, question.options, strict=True)
        lines += [f"  {letter}. {option.text}" for letter, option in pairs]
    return "\n".join([*lines, f'  By text: tl.quiz.answer("{question.id}", {stand_in(question)})'])


def stand_in(asked: object) -> str:
    """Return what is written where an answer goes; never itself an answer, which would suggest one."""
    return '"letter"' if hasattr(asked, "options") else "number"


WAKE = '<p class="tl-wake">▶ Run this cell (Shift+Enter) to answer.</p>'


def html(question: Question) -> str:
    """Return the question as HTML for a page without a kernel, its explanations in a closed <details>."""
    body = _head(question)
    if isinstance(question, Choice):
        body += _list(rich(option.text) for option in question.options)
        folded = _list(rich(Feedback(option.right, option.why).text) for option in question.options)
    else:
        wrong = [f"{value:g}: {rich(Feedback(False, why).text)}" for value, why in question.near]
        folded = _list([f"{question.value:g}: {rich(Feedback(True, question.why).text)}", *wrong], kind="1")
    return f"<div>{body}{WAKE}<details><summary>Answers, explained</summary>{folded}</details></div>"


def _head(question: Question) -> str:
    return f"<p><b>{escape(question.id)}</b> {rich(question.prompt)}</p>"


def _list(items: Iterable[str], kind: str = "A") -> str:
    """Write a list counted in letters, or in numbers by kind "1"; JupyterLab heeds the style, and not the type."""
    style = "upper-alpha" if kind == "A" else "decimal"
    return (
        f'<ol type="{kind}" style="list-style-type:{style}">' + "".join(f"<li>{item}</li>" for item in items) + "</ol>"
    )


_LOOKS = {True: "success", False: "error", None: "info"}


def status(text: str, right: bool | None = None) -> str:
    """Make a line that screen readers speak when it changes; a verdict has a coloured edge, too."""
    edge = f' style="border-left:4px solid var(--jp-{_LOOKS[right]}-color1);padding-left:8px"' if text else ""
    return f'<div role="status" aria-live="polite"{edge}>{rich(text)}</div>'


# An option's letter is its button, and the button's clickable area is the whole line.
STYLE = (
    "<style>.tl-option{position:relative;align-items:baseline;border-radius:4px}"
    ".tl-option:hover{background:var(--jp-layout-color2)}.tl-option .tl-letter{position:static}"
    '.tl-option .tl-letter::after{content:"";position:absolute;inset:0;z-index:1;cursor:pointer}</style>'
)


def build(question: Question, submit: Callable[[Answer], Feedback], before: bool) -> ipywidgets.VBox:
    """Build the widget: the question, its controls, and a line for the reply."""
    from ipywidgets import HTML, Layout, VBox

    reply = HTML(status("✓ You answered this one before.", True) if before else status(""))

    def give(answer: Answer) -> Feedback | None:
        try:
            feedback = submit(answer)
        except ValueError as error:
            reply.value = status(f"{error}")
            return None
        reply.value = status(feedback.text, feedback.right)
        return feedback

    controls = _options(question, give) if isinstance(question, Choice) else _number(question, give)
    return VBox([HTML(STYLE + _head(question)), *controls, reply], layout=Layout(max_width="720px"))


def _options(question: Choice, give: Callable[[Answer], Feedback | None]) -> list[ipywidgets.HBox]:
    """Make one line for each option, its letter a button; a tried one keeps its mark."""
    from ipywidgets import HTML, Button, HBox, Layout

    def press(button: ipywidgets.Button) -> None:
        feedback = give(button.description[0])
        if feedback:
            button.description = f"{button.description[0]} {'✓' if feedback.right else '✗'}"
            button.button_style = "success" if feedback.right else "warning"

    lines = []
    for letter, option in zip(question.letters, question.options, strict=True):
        button = Button(
            description=letter, tooltip=f"{letter}: {option.text}", layout=Layout(width="64px", flex="0 0 auto")
        )
        button.add_class("tl-letter")
        button.on_click(press)
        line = HBox([button, HTML(rich(option.text))])
        line.add_class("tl-option")
        lines.append(line)
    return lines


def _number(question: Number, give: Callable[[Answer], Feedback | None]) -> list[ipywidgets.HBox]:
    """Make a box for the number, which Enter submits, and a button."""
    from ipywidgets import Button, HBox, Layout, Text

    box = Text(
        description="Your answer",
        placeholder=f"from {question.low:g} to {question.high:g}",
        style={"description_width": "initial"},
        layout=Layout(width="260px"),
    )

    def check(*_: object) -> None:
        give(box.value.strip().replace(",", "."))

    def heard(_: object, content: dict[str, object], __: object) -> None:
        if content.get("event") == "submit":  # Enter; `Text.on_submit` hears the same, and warns that it is old
            check()

    box.on_msg(heard)
    button = Button(description="Check", tooltip="Check my answer", layout=Layout(width="96px"))
    button.on_click(check)
    return [HBox([box, button])]
