"""Shows whose part is whose, and which of them run, as text and HTML."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape

from .folder import FILE
from .parts import ELSEWHERE, Part
from .running import SENTENCE, Runs, silence


def parts_view(parts: Sequence[Part], kept: Collection[str], runs: Runs) -> tuple[str, str]:
    """Return HTML and text of the table of all parts.

    Args:
        parts: those that are shown. kept: the names of the learner's. runs: how often these ran.
    """
    count = sum(part.name in kept for part in parts)
    where = f", in mine/{FILE}" if count else ""
    title = f"Your own Transformer: {count} of {len(parts)} parts are yours{where}"
    owners = [_owner(part.name, runs) if part.name in kept else "○ the library's" for part in parts]
    width = max(map(len, owners))
    rows, lines = [], [title]
    for part, owner in zip(parts, owners, strict=True):
        cells = (owner, part.notebook, f"<code>{escape(part.name)}</code>", escape(part.task))
        rows.append("<tr>" + "".join(f'<td style="text-align:left">{cell}</td>' for cell in cells) + "</tr>")
        lines.append(f"{owner:<{width}} {part.notebook}  {part.name:<20} {part.task}")
    head = "".join(
        f'<th scope="col" style="text-align:left">{word}</th>' for word in ("whose", "notebook", "part", "it …")
    )
    caption = f"<caption>{escape(title)}</caption>"
    table = f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    notes = _notes([part for part in parts if part.name in kept], parts[0], runs)
    return table + "".join(f"<p>{escape(note)}</p>" for note in notes), "\n".join([*lines, *notes])


def _owner(name: str, runs: Runs) -> str:
    if runs.problem:
        return "✓ yours"
    count, where = runs.calls.get(name, 0), f" {ELSEWHERE[name]}" if name in ELSEWHERE else ""
    times = {0: "never called", 1: f"ran once{where}"}.get(count, f"ran {count} times{where}")
    return f"✓ yours, {times}"


def _notes(yours: Sequence[Part], first: Part, runs: Runs) -> list[str]:
    """Return what is said below the table: how the calls were counted, and why a part was not called."""
    if not yours:
        return [
            f"None of it is yours yet. Pass the exercise of any part, {first.name} in notebook {first.notebook} for "
            "example, and it moves in here."
        ]
    if runs.problem:
        return [runs.problem, "Mend the file, or take a part out of it with tl.mine.reset(name)."]
    counted = f"Counted while it translated “{SENTENCE}”"
    return [counted, *(silence(part.name) for part in yours if not runs.calls.get(part.name))]
