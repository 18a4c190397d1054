"""Docstrings of the library, which are plain text with `code`, as the reStructuredText that Sphinx reads."""

from __future__ import annotations

import re

CODE = re.compile(r"(``.+?``)|(?<!`)`([^`]+)`(?!`)")
SPECIAL = re.compile(r"(\*|\||(?<=\w)_(?!\w))")  # emphasis, substitutions, references


def safe(line: str) -> str:
    """Return one line with `code` in double backticks and no other character read as markup."""
    pieces, end = [], 0
    for found in CODE.finditer(line):
        pieces += [SPECIAL.sub(r"\\\1", line[end : found.start()]), found[1] or f"``{found[2]}``"]
        end = found.end()
    return "".join(pieces) + SPECIAL.sub(r"\\\1", line[end:])


def as_restructuredtext(app, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Change the lines of a docstring in place; examples and indented code after `::` stay."""
    lines[:] = [line if line.lstrip().startswith((">>>", "...")) else safe(line) for line in lines]
