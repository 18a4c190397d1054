"""Shows whose part is whose, as text and HTML."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape

from .folder import FILE
from .parts import Part


def parts_view(parts: Sequence[Part], kept: Collection[str]) -> tuple[str, str]:
    """Return HTML and text of the table of all parts; `kept` are the names of the learner's."""
    count = sum(part.name in kept for part in parts)
    where = f", in mine/{FILE}" if count else ""
    title = f"Your own Transformer: {count} of {len(parts)} parts are yours{where}"
    rows, lines = [], [title]
    for part in parts:
        owner = "✓ yours" if part.name in kept else "○ the library's"
        cells = (owner, part.notebook, f"<code>{escape(part.name)}</code>", escape(part.task))
        rows.append("<tr>" + "".join(f'<td style="text-align:left">{cell}</td>' for cell in cells) + "</tr>")
        lines.append(f"{owner:<15} {part.notebook}  {part.name:<20} {part.task}")
    head = "".join(
        f'<th scope="col" style="text-align:left">{word}</th>' for word in ("whose", "notebook", "part", "it …")
    )
    caption = f"<caption>{escape(title)}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>", "\n".join(lines)
