"""How results get into pages: as text between the two marks of a name."""

from __future__ import annotations

from pathlib import Path

from transformer_lib._files import DATA, write_atomically

ROOT = DATA.parent  # the repository: README.md and docs/ show what is stored


def put_between(text: str, name: str, report: str) -> str:
    """Return the text with the report in place of what is between `<!-- name: begin -->` and `<!-- name: end -->`.

    Raises:
        ValueError: the text does not have these two marks once, in this order.
    """
    begin, end = (f"<!-- {name}: {edge} -->" for edge in ("begin", "end"))
    before, *rest = text.split(begin)
    inside, *after = "".join(rest).split(end)
    if len(rest) != 1 or len(after) != 1:
        raise ValueError(f"text must have the marks {begin} and {end} once, in this order")
    return f"{before}{begin}\n{report}\n{end}{after[0]}"


def write_between(page: Path, name: str, report: str) -> None:
    """Put the report between the two marks of this name in a Markdown page."""
    text = put_between(page.read_text(encoding="utf-8"), name, report)
    write_atomically(page, text.encode("utf-8"))
