"""Markdown cut into sections, blocks and sentences, as far as the notebooks need it."""

from __future__ import annotations

import re
from dataclasses import dataclass

HEADING = re.compile(r"(#{1,6})\s+(.*)")
ABBREVIATION = re.compile(r"\b(al|cf|eq|e\.g|i\.e|vs)\.$")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-ZÄÖÜ\"“*(\x00\d])|(?<=[.?!]\*\*)\s+|(?<=[.?!)]\*)\s+(?=[A-Z(*])")
ATOM = re.compile(r"`[^`]*`|\$[^$]+\$|\[[^\]]*\]\([^)]*\)")  # no sentence ends inside code, a formula or a link


@dataclass(frozen=True)
class Section:
    """A heading with the text below it; `title` is empty for text before the first heading."""

    title: str
    level: int
    text: str


@dataclass(frozen=True)
class Block:
    """A piece of Markdown: "prose", "math", "table", "list", "code" or "html"."""

    kind: str
    text: str


def sections(markdown: str) -> list[Section]:
    """Cut a cell at its headings; those inside a fenced block are none."""
    found, lines, title, level, fenced = [], [], "", 0, False
    for line in markdown.splitlines():
        fenced ^= line.startswith("```")
        heading = None if fenced else HEADING.fullmatch(line.strip())
        if heading:
            found.append(Section(title, level, "\n".join(lines).strip()))
            level, title, lines = len(heading[1]), heading[2], []
        else:
            lines.append(line)
    found.append(Section(title, level, "\n".join(lines).strip()))
    return [section for section in found if section.title or section.text]


def blocks(text: str) -> list[Block]:
    """Cut Markdown into its blocks."""
    found: list[Block] = []
    lines: list[str] = []
    closing = ""

    def close() -> None:
        if lines:
            found.append(Block(kind_of(lines[0]), "\n".join(lines)))
            lines.clear()

    for line in text.splitlines():
        if closing:
            lines.append(line)
            closing = "" if line.rstrip().endswith(closing) else closing
            continue
        if not line.strip() or (lines and _starts(line, lines)):
            close()
        if line.strip():
            lines.append(line)
            closing = _closing(line)
    close()
    return found


def _closing(line: str) -> str:
    """Return what ends the block that this line begins, where blank lines do not."""
    if line.startswith("```"):
        return "```"
    return "$$" if line.count("$$") == 1 else ""


def kind_of(line: str) -> str:
    """Return what kind of block begins with this line."""
    kinds = {"$$": "math", "|": "table", "```": "code", "<": "html", "- ": "list", "* ": "list"}
    named = next((kind for start, kind in kinds.items() if line.startswith(start)), "")
    return named or ("list" if re.match(r"\d+\. ", line) else "prose")


def _starts(line: str, before: list[str]) -> bool:
    """Return True when a line begins another block although no blank line stands before it."""
    kind, current = kind_of(line), kind_of(before[0])
    return kind != current and kind != "prose" or (kind == "prose" and current in ("math", "table"))


def sentences(text: str) -> list[str]:
    """Cut prose into sentences."""
    atoms: list[str] = []

    def hide(found: re.Match[str]) -> str:
        atoms.append(found[0])
        return f"\x00{len(atoms) - 1}\x00"

    parts: list[str] = []
    for part in SENTENCE_END.split(ATOM.sub(hide, " ".join(text.split()))):
        if parts and (ABBREVIATION.search(parts[-1]) or parts[-1].count("(") > parts[-1].count(")")):
            parts[-1] += f" {part}"
        else:
            parts.append(part)
    return [re.sub(r"\x00(\d+)\x00", lambda found: atoms[int(found[1])], part) for part in parts if part]
