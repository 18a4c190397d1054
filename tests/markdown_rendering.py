"""What a Markdown cell shows in Jupyter that its author did not mean: leftover marks and broken tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

# Jupyter takes formulas out before it reads Markdown, and GitHub's tables and strike-through are on. Without the rule
# "text_join", an escaped mark stays apart from the text around it: that one is meant.
READER = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")
FORMULA = re.compile(r"\$\$.*?\$\$|(?<![\\$])\$(?!\s)[^$\n]*?(?<![\\\s])\$(?!\d)", re.DOTALL)
CODE = re.compile(r"^(```|~~~).*?^\1[^\n]*$|(?<!`)(`+)(?!`).*?(?<!`)\2(?!`)", re.DOTALL | re.MULTILINE)
LEFTOVER = re.compile(r"\*|(?<![\w\u0300-\u036f])_|_(?!\w)|~~")  # not within a word: d_model is shown as it is meant
ROW = re.compile(r"^\s*\|.*\|\s*$", re.MULTILINE)


def rendering_problems(text: str) -> Iterator[str]:
    """Yield a phrase for each mark that is shown as it is, and for each table that is none."""
    text = without_formulas(text)
    lines = text.splitlines()
    for token in READER.parse(text):
        yield from _leftovers(token)
        if token.type == "inline" and ROW.search(token.content):
            yield f"a table is shown as text: {_shortened(token.content)}"
        if token.type == "table_open":
            yield from _uneven_rows(lines[token.map[0] : token.map[1]])


def without_formulas(text: str) -> str:
    """The text with a letter for each formula, but not for a dollar inside code."""
    kept: list[str] = []

    def keep(found: re.Match) -> str:
        kept.append(found[0])
        return f"\0{len(kept) - 1}\0"

    text = FORMULA.sub(lambda found: "F" + "\n" * found[0].count("\n"), CODE.sub(keep, text))
    return re.sub(r"\0(\d+)\0", lambda found: kept[int(found[1])], text)


def _leftovers(token: Token) -> Iterator[str]:
    if token.type == "html_block":
        shown = [re.sub(r"<code>.*?</code>|<[^>]*>", " ", token.content, flags=re.DOTALL)]
    else:
        shown = _texts(token.children or ())
    for text in shown:
        for found in LEFTOVER.finditer(text):
            yield f"{found[0]!r} is shown as it is: {_shortened(text[max(0, found.start() - 20) :])}"


def _texts(children: Iterable[Token]) -> Iterator[str]:
    """The pieces of text of a paragraph, but for code, which may also stand between tags."""
    in_code = False
    for child in children:
        if child.type == "html_inline":
            in_code = child.content == "<code>" or (in_code and child.content != "</code>")
        if child.type == "text" and not in_code:
            yield child.content


def _uneven_rows(rows: list[str]) -> Iterator[str]:
    """A row with fewer cells than the headings gets empty ones, and of a row with more the last are dropped."""
    width = _cells(rows[0])
    for row in rows[1:]:
        if row.strip() and _cells(row) != width:
            yield f"a row with {_cells(row)} cells in a table of {width}: {_shortened(row)}"


def _cells(row: str) -> int:
    inner = row.strip().removeprefix("|")
    inner = inner if inner.endswith("\\|") else inner.removesuffix("|")
    return len(re.findall(r"(?<!\\)\|", inner)) + 1


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:59] + "…"
