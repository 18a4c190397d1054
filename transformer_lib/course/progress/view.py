"""Draws progress as text and HTML, from plain data; no file is touched here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from ..notebooks import Notebook
from .places import Place

SYMBOLS = {"done": "✓", "started": "◐", "not yet": "○"}
State = dict[str, dict[str, str]]


class View:
    """Shows itself as HTML in a notebook and as text elsewhere, drawn afresh each time."""

    def __init__(self, draw: Callable[[], tuple[str, str]]) -> None:
        """Keep `draw`, which gives the HTML and the text."""
        self._draw = draw

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        html, text = self._draw()
        return {"text/html": html, "text/plain": text}

    def __repr__(self) -> str:
        """Return the text form."""
        return self._draw()[1]


def standing(entry: Notebook, state: State) -> str:
    """Return "done", "started" or "not yet"; a notebook without tasks is done once it was opened.

    A panel may stand in two notebooks, so that moving one starts neither.
    """
    opened = entry.id in state["notebook"]
    passed = {(kind, name) for kind, name in entry.parts if name in state[kind]}
    if entry.parts and len(passed) == len(entry.parts):
        return "done"
    if opened and not entry.parts:
        return "done"
    return "started" if opened or any(kind != "widget" for kind, _ in passed) else "not yet"


def finished(entry: Notebook, state: State) -> bool:
    """Return whether all exercises, questions and cases of a notebook that has some are passed."""
    tasks = [(kind, name) for kind, name in entry.parts if kind != "widget"]
    return bool(tasks) and all(name in state[kind] for kind, name in tasks)


def strip_view(
    entry: Notebook, state: State, course: Sequence[Notebook], onward: Place | None = None
) -> tuple[str, str]:
    """Return HTML and text of the strip on top of one notebook; `onward` is where the learner left."""
    word = standing(entry, state)
    passed = sum(name in state[kind] for kind, name in entry.parts)
    head = f"{SYMBOLS[word]} {word} · {entry.minutes} minutes · you will build {entry.builds}"
    tasks = [f"{_tick(name in state[kind])} {label}" for label, kind, name in _labelled(entry)]
    count = f"{passed} of {len(entry.parts)} done: {' '.join(tasks)}" if entry.parts else ""
    path = " ".join(_place(other, entry, state) for other in course)
    go_on = f"▶ continue at {onward.name}" if onward else ""
    lines = (f"Notebook {entry.id}: {entry.title}", head, count, _plain_path(course, entry, state), go_on)
    text = "\n".join(line for line in lines if line)
    link = f'<a href="{escape(onward.link, quote=True)}">{escape(go_on)}</a>' if onward else ""
    rows = "".join(f"<div>{row}</div>" for row in (f"<b>{escape(head)}</b>", escape(count), path, link) if row)
    label = escape(f"Your progress in notebook {entry.id}", quote=True)
    return f'<div role="region" aria-label="{label}">{rows}</div>', text


def _labelled(entry: Notebook) -> list[tuple[str, str, str]]:
    """Return the parts of a notebook as (label, kind, id); panels are called so, and numbered where there are more."""
    several, labels = len(entry.widgets) > 1, []
    for kind, name in entry.parts:
        number = f" {entry.widgets.index(name) + 1}" if kind == "widget" and several else ""
        labels.append((f"panel{number}" if kind == "widget" else name, kind, name))
    return labels


def closing_view(entry: Notebook, following: Notebook | None) -> tuple[str, str]:
    """Return HTML and text of the moment at which everything in a notebook is passed; `following` is the next one."""
    head = f"✓ Notebook {entry.id}: every exercise passed, every question answered."
    built = f"You have built {entry.builds}."
    after = f"Next: {following.id} · {following.title}" if following else "That was the last one."
    link = f'<a href="{escape(following.filename, quote=True)}">{escape(after)} →</a>' if following else escape(after)
    return boxed(head, f"{escape(built)} {link}"), f"{head}\n{built} {after}"


def boxed(head: str, below: str) -> str:
    """Return HTML of the box in which something is celebrated: a line of text, and the HTML below it."""
    look = "border:2px solid #2e7d32;border-radius:6px;padding:8px 14px;margin:6px 0;max-width:640px"
    return f'<div style="{look}"><p><b>{escape(head)}</b></p><p>{below}</p></div>'


def _tick(passed: bool) -> str:
    return SYMBOLS["done" if passed else "not yet"]


def _place(other: Notebook, here: Notebook, state: State) -> str:
    """Return one notebook in the strip's path: symbol and number, a link unless it is this one, which is in bold."""
    word = standing(other, state)
    title = escape(f"{other.id} {other.title}: {word}", quote=True)
    mark = f"{SYMBOLS[word]}&nbsp;{other.id}"
    if other.id == here.id:
        return f'<span title="{title}"><b aria-current="page">[{mark}]</b></span>'
    return f'<a href="{escape(other.filename, quote=True)}" title="{title}">{mark}</a>'


def _plain_path(course: Sequence[Notebook], here: Notebook, state: State) -> str:
    marks = [f"{SYMBOLS[standing(other, state)]}{other.id}" for other in course]
    here_at = [other.id for other in course].index(here.id)
    marks[here_at] = f"[{marks[here_at]}]"
    return " ".join(marks)


def map_view(state: State, course: Sequence[Notebook], written: Callable[[Notebook], bool]) -> tuple[str, str]:
    """Return HTML and text of the table of all notebooks."""
    rows, lines = [], []
    for entry in course:
        word = standing(entry, state) if written(entry) else "planned"
        symbol = SYMBOLS.get(word, "·")
        name = escape(f"{entry.id} · {entry.title}")
        link = f'<a href="{escape(entry.filename, quote=True)}">{name}</a>' if written(entry) else name
        cells = (f"{symbol} {word}", link, f"{entry.minutes}", escape(entry.builds))
        rows.append("<tr>" + "".join(f'<td style="text-align:left">{cell}</td>' for cell in cells) + "</tr>")
        line = f"{symbol} {word:<8} {entry.id:>2}  {entry.title:<34} {entry.minutes:>3} min  {entry.builds}"
        lines.append(line.rstrip())
    titles = ("progress", "notebook", "minutes", "you will build")
    head = "".join(f'<th scope="col" style="text-align:left">{title}</th>' for title in titles)
    caption = "<caption>The course, and how far you are</caption>"
    html = f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return html, "\n".join(lines)
