"""Shows a question: a widget where there is a kernel, else text with the explanations folded away."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from html import escape
from typing import TYPE_CHECKING

from .model import Answer, Choice, Feedback, Number, Question

if TYPE_CHECKING:
    import ipywidgets


def rich(text: str) -> str:
    """Return text as HTML: escaped, with `code` in backticks."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def plain(question: Question) -> str:
    """Return the question as text, without its answers."""
    lines = [f"Question {question.id}: {question.prompt}"]
    if isinstance(question, Choice):
        pairs = zip(question.letters, question.options, strict=True)
        lines += [f"  {letter}. {option.text}" for letter, option in pairs]
    example = '"A"' if isinstance(question, Choice) else "number"
    return "\n".join([*lines, f'  By text: tl.quiz.answer("{question.id}", {example})'])


def html(question: Question) -> str:
    """Return the question as HTML, its explanations in a closed <details>."""
    body = f"<p><b>{escape(question.id)}</b> {rich(question.prompt)}</p>"
    if isinstance(question, Choice):
        body += _list(rich(option.text) for option in question.options)
        folded = _list(rich(Feedback(option.right, option.why).text) for option in question.options)
    else:
        wrong = [f"{value:g}: {rich(Feedback(False, why).text)}" for value, why in question.near]
        folded = _list([f"{question.value:g}: {rich(Feedback(True, question.why).text)}", *wrong], kind="1")
    return f"<div>{body}<details><summary>Answers, explained</summary>{folded}</details></div>"


def _list(items: Iterable[str], kind: str = "A") -> str:
    return f'<ol type="{kind}">' + "".join(f"<li>{item}</li>" for item in items) + "</ol>"


def status(text: str) -> str:
    """Make a line that screen readers speak when it changes."""
    return f'<div role="status" aria-live="polite">{rich(text)}</div>'


def build(question: Question, submit: Callable[[Answer], Feedback], before: bool) -> ipywidgets.VBox:
    """Build the widget: the question, its controls, and a line for the reply."""
    from ipywidgets import HTML, HBox, Layout, VBox

    reply = HTML(status("✓ You answered this one before." if before else ""))

    def give(answer: Answer) -> Feedback:
        feedback = submit(answer)
        reply.value = status(feedback.text)
        return feedback

    head = f"<p><b>{escape(question.id)}</b> {rich(question.prompt)}</p>"
    if isinstance(question, Choice):
        head += _list(rich(option.text) for option in question.options)
    controls = _letters(question, give) if isinstance(question, Choice) else _number(question, give)
    return VBox([HTML(head), HBox(controls), reply], layout=Layout(max_width="720px"))


def _letters(question: Choice, give: Callable[[Answer], Feedback]) -> list[ipywidgets.Button]:
    """Make one button for each option; a tried one keeps its mark."""
    from ipywidgets import Button, Layout

    def press(button: ipywidgets.Button) -> None:
        right = give(button.description[0]).right
        button.description = f"{button.description[0]} {'✓' if right else '✗'}"
        button.style.font_weight = "bold" if right else "normal"

    buttons = []
    for letter, option in zip(question.letters, question.options, strict=True):
        button = Button(description=letter, tooltip=f"{letter}: {option.text}", layout=Layout(width="64px"))
        button.on_click(press)
        buttons.append(button)
    return buttons


def _number(question: Number, give: Callable[[Answer], Feedback]) -> list[ipywidgets.DOMWidget]:
    """Make a box for the number and a button."""
    from ipywidgets import BoundedFloatText, Button, Layout

    box = BoundedFloatText(
        value=question.low,
        min=question.low,
        max=question.high,
        step=(question.high - question.low) / 100,
        description="Your answer",
        style={"description_width": "initial"},
        layout=Layout(width="220px"),
    )
    button = Button(description="Check", tooltip="Check my answer", layout=Layout(width="96px"))
    button.on_click(lambda _: give(box.value))
    return [box, button]
