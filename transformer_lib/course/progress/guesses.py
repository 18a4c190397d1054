"""What was predicted and how it came out: how a prediction is kept, and the picture of all of them by notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from ..notebooks import Notebook

_WORDS = {None: "open", True: "right", False: "surprise"}
_MARKS = {True: "●", False: "○"}
_COLOURS = {True: "#2e7d32", False: "#B8860B"}


@dataclass(frozen=True)
class Guess:
    """A prediction as it is kept: the day, whether it came true (None until its cell has run), and what was said."""

    date: str
    right: bool | None
    said: str

    @classmethod
    def read(cls, kept: str) -> Guess | None:
        """Return what `kept` holds; None where that is nothing of the kind."""
        date, _, rest = kept.partition(" ")
        word, _, said = rest.partition(" ")
        rights = {word: right for right, word in _WORDS.items()}
        return cls(date, rights[word], said) if word in rights and said else None

    def __str__(self) -> str:
        """Return it as it is kept."""
        return f"{self.date} {_WORDS[self.right]} {self.said}"


def guesses_view(kept: Mapping[str, str], course: Sequence[Notebook]) -> tuple[str, str]:
    """Return HTML and text of how often a prediction came true, a row for each notebook with one."""
    found = {name: guess for name, text in kept.items() if (guess := Guess.read(text))}
    rows = []
    for entry in course:
        rights = [guess.right for name, guess in sorted(found.items(), key=_order) if _notebook(name) == entry.id]
        known = [right for right in rights if right is not None]
        if known:
            rows.append((entry, known))
    if not rows:
        says = "No prediction has met its outcome yet. Commit to one, run the cell below it, and come back."
        return f"<p>{says}</p>", says
    every = [right for _, known in rows for right in known]
    says = f"{sum(every)} of {len(every)} predictions came true. The others were surprises, and those teach more."
    lines = [f"  {entry.id}  {''.join(_MARKS[right] for right in known)}  {_count(known)}" for entry, known in rows]
    body = "".join(_row(entry, known) for entry, known in rows)
    titles = "".join(f'<th scope="col" style="text-align:left">{title}</th>' for title in ("notebook", "", "came true"))
    table = f"<table><caption>{escape(says)}</caption><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"
    return table, "\n".join([says, *lines, "  ● came true  ○ a surprise"])


def _order(item: tuple[str, Guess]) -> tuple[str, int]:
    notebook, _, number = item[0].partition(".p")
    return notebook, int(number) if number.isdigit() else 0


def _notebook(name: str) -> str:
    return name.partition(".")[0]


def _count(known: Sequence[bool]) -> str:
    return f"{sum(known)} of {len(known)}"


def _row(entry: Notebook, known: Sequence[bool]) -> str:
    dots = "".join(f'<span style="color:{_COLOURS[right]}">{_MARKS[right]}</span>' for right in known)
    shown = f'<span aria-hidden="true" style="letter-spacing:2px">{dots}</span>'
    cells = (f"{entry.id} · {escape(entry.title)}", shown, _count(known))
    return "<tr>" + "".join(f'<td style="text-align:left">{cell}</td>' for cell in cells) + "</tr>"
