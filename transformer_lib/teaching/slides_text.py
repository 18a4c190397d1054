"""Which part of a Markdown cell a slide shows: headings, formulas, tables, lists, and a sentence or two.

Everything else of the cell goes to the speaker notes, so that nothing is lost.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

HEADING = re.compile(r"(#{1,6})\s+(.*)")
LEFT_OUT = re.compile(r"Exercise |Terms$|What the sources claim")
MISCONCEPTIONS = re.compile(r"\*\*(Common m|M)isconceptions[.:]?\*\*[.:]?\s*")
ANSWER = re.compile(r"<details>\s*<summary>[^<]*(?:[Aa]nswer|[Cc]ompare)[^<]*</summary>(.*?)</details>", re.DOTALL)
LABEL = re.compile(r"\*\*[^*]+\*\*[.:]?")
DETAILS = re.compile(r"<details>.*?</details>", re.DOTALL)
ATOM = re.compile(r"`[^`]*`|\$[^$]+\$|\[[^\]]*\]\([^)]*\)")  # no sentence ends inside code, a formula or a link
SHORT, LONG_ITEM = 45, 32
"""Words: prose up to SHORT stays whole; a list item of more than LONG_ITEM keeps its first sentence."""


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


def for_slides(section: Section) -> bool:
    """False for what is worked on alone: exercises, tables of terms, the ledger of claims."""
    return not LEFT_OUT.match(section.title)


def split_misconceptions(section: Section) -> list[Section]:
    """A summary also holds the misconceptions: they get a slide of their own, as a list."""
    found = MISCONCEPTIONS.search(section.text)
    if not found:
        return [section]
    before, after = section.text[: found.start()].strip(), section.text[found.end() :].strip()
    if not after.startswith(("-", "*", "|")):
        first, *rest = after.split("\n\n")
        items = re.split(r"\s+(?=[\"“])", first)
        after = "\n\n".join(["\n".join(f"- {item}" for item in items), *rest])
    own = Section("Common misconceptions", section.level, after)
    return [Section(section.title, section.level, before), own] if before else [own]


def split_answer(text: str) -> tuple[str, str]:
    """Take the folded answer out of a text: (text without any folded part, the answer or nothing)."""
    answers = [found[1].strip() for found in ANSWER.finditer(text)]
    return DETAILS.sub("", text).strip(), "\n\n".join(answers)


def blocks(text: str) -> list[Block]:
    """Cut Markdown into its blocks."""
    found: list[Block] = []
    lines: list[str] = []
    closing = ""

    def close() -> None:
        if lines:
            found.append(Block(_kind(lines[0]), "\n".join(lines)))
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
    """What ends the block that this line begins, where blank lines do not."""
    if line.startswith("```"):
        return "```"
    return "$$" if line.count("$$") == 1 else ""


def _kind(line: str) -> str:
    kinds = {"$$": "math", "|": "table", "```": "code", "<": "html", "- ": "list", "* ": "list"}
    named = next((kind for start, kind in kinds.items() if line.startswith(start)), "")
    return named or ("list" if re.match(r"\d+\. ", line) else "prose")


def _starts(line: str, before: list[str]) -> bool:
    """Whether a line begins another block although no blank line stands before it."""
    kind, current = _kind(line), _kind(before[0])
    return kind != current and kind != "prose" or (kind == "prose" and current in ("math", "table"))


def sentences(text: str) -> list[str]:
    """Cut prose into sentences."""
    atoms: list[str] = []

    def hide(found: re.Match[str]) -> str:
        atoms.append(found[0])
        return f"\x00{len(atoms) - 1}\x00"

    hidden = ATOM.sub(hide, " ".join(text.split()))
    parts = re.split(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?:(?<=[.!?])|(?<=\*))\s+(?=[A-ZÄÖÜ\"“*(\x00\d])", hidden)
    parts = [piece for part in parts for piece in re.split(r"(?<=[.?!]\*\*)\s+|(?<=[.?!]\*)\s+(?=[A-Z*])", part)]
    return [re.sub(r"\x00(\d+)\x00", lambda found: atoms[int(found[1])], part) for part in parts if part]


def condense(text: str) -> str:
    """The part of a section's text that a slide shows."""
    found = blocks(text)
    words = sum(len(block.text.split()) for block in found if block.kind == "prose")
    shown = []
    for index, block in enumerate(found):
        following = found[index + 1].kind if index + 1 < len(found) else ""
        if block.kind == "prose" and words > SHORT:
            shown.append(_gist(block.text, index == 0, following))
        elif block.kind == "list":
            shown.append("\n".join(_short_item(item) for item in re.split(r"\n(?=\S)", block.text)))
        elif block.kind != "html":
            shown.append(block.text)
    return "\n\n".join(filter(None, shown))


def _gist(prose: str, first: bool, following: str) -> str:
    """The sentences of a paragraph worth a slide: the first, the question, the bold, the one before a formula."""
    parts = sentences(prose)
    keep = set(range(2 if parts[0].endswith("?") else 1)) if first else set()
    if following in ("math", "table", "list", "code"):
        keep.add(len(parts) - 1)
    for index, part in enumerate(parts):
        if part.startswith("**Predict"):
            keep.update(_question(parts, index))
        elif part.startswith("**"):
            keep |= {index, index + 1} if LABEL.fullmatch(part) else {index}
    return " ".join(part for index, part in enumerate(parts) if index in keep)


def _question(parts: list[str], start: int) -> range:
    """From "Predict" to the last question after it, or to the end of the paragraph."""
    asked = [index for index in range(start, len(parts)) if parts[index].endswith("?")]
    return range(start, (asked[-1] if asked else len(parts) - 1) + 1)


def without_lead_in(text: str) -> str:
    """Drop a last sentence that announces what the slide does not show: one that ends with a colon."""
    before, gap, last = text.rpartition("\n\n")
    if not last.rstrip("* ").endswith(":") or _kind(last) != "prose":
        return text
    return f"{before}{gap}{' '.join(sentences(last)[:-1])}".strip()


def _short_item(item: str) -> str:
    if len(item.split()) <= LONG_ITEM:
        return item
    parts = sentences(item)
    return " ".join(parts[:2]) if parts[0].endswith("**") else parts[0]


def caption(text: str, most: int = 30) -> str:
    """The italic line that stands below a figure, to its first full stop after some words; else nothing."""
    first = text.split("\n\n")[0].strip()
    if not first.startswith("*") or first.startswith(("**", "* ")):
        return ""
    kept: list[str] = []
    for part in sentences(first):
        if kept and len(" ".join([*kept, part]).split()) > most:
            break
        kept.append(part)
    line = " ".join(kept)
    return line + "*" * (line.replace("**", "").count("*") % 2)


def without_caption(text: str) -> str:
    """The text of a cell after the caption with which it begins."""
    line = caption(text)
    if not line:
        return text
    first, _, rest = text.partition("\n\n")
    shown, parts = len(sentences(line.removesuffix("*"))), sentences(first)
    inside = [part for part in parts[shown:] if _outside_emphasis(parts, part)]
    return "\n\n".join(filter(None, [" ".join(inside), rest]))


def _outside_emphasis(parts: list[str], part: str) -> bool:
    before = " ".join(parts[: parts.index(part)]).replace("**", "")
    return before.count("*") % 2 == 0
