"""Draws progress as text and HTML, from plain data; no file is touched here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from ..notebooks import Notebook

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
    """Return "done", "started" or "not yet"; a notebook without tasks is done once it was opened."""
    opened = entry.id in state["notebook"]
    passed = [name in state[kind] for kind, name in entry.parts]
    if entry.parts:
        return "done" if all(passed) else "started" if any(passed) or opened else "not yet"
    return "done" if opened else "not yet"


def strip_view(entry: Notebook, state: State, course: Sequence[Notebook]) -> tuple[str, str]:
    """Return HTML and text of the strip on top of one notebook."""
    word = standing(entry, state)
    passed = sum(name in state[kind] for kind, name in entry.parts)
    head = f"{SYMBOLS[word]} {word} · {entry.minutes} minutes · you will build {entry.builds}"
    tasks = [f"{_tick(name in state[kind])} {name}" for kind, name in entry.parts]
    count = f"{passed} of {len(entry.parts)} done: {' '.join(tasks)}" if entry.parts else ""
    path = " ".join(_place(other, entry, state) for other in course)
    lines = (f"Notebook {entry.id}: {entry.title}", head, count, _plain_path(course, entry, state))
    text = "\n".join(line for line in lines if line)
    rows = "".join(f"<div>{row}</div>" for row in (f"<b>{escape(head)}</b>", escape(count), path) if row)
    label = escape(f"Your progress in notebook {entry.id}", quote=True)
    return f'<div role="region" aria-label="{label}">{rows}</div>', text


def _tick(passed: bool) -> str:
    return SYMBOLS["done" if passed else "not yet"]


def _place(other: Notebook, here: Notebook, state: State) -> str:
    """Return one notebook in the strip's path: symbol and number, the current one in bold."""
    word = standing(other, state)
    title = escape(f"{other.id} {other.title}: {word}", quote=True)
    mark = f"{SYMBOLS[word]}&nbsp;{other.id}"
    inner = f'<b aria-current="page">[{mark}]</b>' if other.id == here.id else mark
    return f'<span title="{title}">{inner}</span>'


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
