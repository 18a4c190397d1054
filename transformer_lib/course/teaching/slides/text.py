"""Which part of a Markdown cell a slide shows: headings, formulas, tables, lists, and a sentence or two.

Everything else of the cell goes to the speaker notes, so that nothing is lost.
"""

from __future__ import annotations

import re

from .markdown import Section, blocks, kind_of, sentences

LEFT_OUT = re.compile(r"Exercise |Terms$")
MISCONCEPTIONS = re.compile(r"\*\*(Common m|M)isconceptions[.:]?\*\*[.:]?\s*")
READING = re.compile(r"^\*\*Further reading\.?\*\*.*?(?=^\*\*|\Z)", re.DOTALL | re.MULTILINE)
ANSWER = re.compile(r"<details>\s*<summary>[^<]*(?:[Aa]nswer|[Cc]ompare)[^<]*</summary>(.*?)</details>", re.DOTALL)
DETAILS = re.compile(r"<details>.*?</details>", re.DOTALL)
LABEL = re.compile(r"(\*{1,2})[^*]+[.:]?\1[.:]?")
SHORT, LONG_ITEM = 45, 32
"""Words: prose up to SHORT stays whole; a list item of more than LONG_ITEM keeps its first sentence."""
ALONE, ACCOMPANIED = 36, 14
"""The least number of words kept of a longer text: on a slide of its own, and beside something else."""


def for_slides(section: Section) -> bool:
    """Return False for what is worked on alone: exercises, tables of terms."""
    return not LEFT_OUT.match(section.title)


def split_misconceptions(section: Section) -> list[Section]:
    """Cut the misconceptions out of a summary: they get a slide of their own, as a list."""
    found = MISCONCEPTIONS.search(section.text)
    if not found:
        return [section]
    before, after = section.text[: found.start()].strip(), section.text[found.end() :].strip()
    if not after.startswith(("-", "*", "|")):
        first, *rest = after.split("\n\n")
        items = re.split(r"(?<=[.!?])\s+(?=[\"“])", first)
        after = "\n\n".join(["\n".join(f"- {item}" for item in items), *rest])
    own = Section("Common misconceptions", section.level, after)
    return [Section(section.title, section.level, before), own] if before else [own]


def split_answer(text: str) -> tuple[str, str]:
    """Take the folded answer out of a text: (text without any folded part, the answer or nothing)."""
    answers = [found[1].strip() for found in ANSWER.finditer(text)]
    return DETAILS.sub("", text).strip(), "\n\n".join(answers)


def without_reading(text: str) -> str:
    """Drop the list of further reading, or its heading where the notebook's next cell has the list."""
    return READING.sub("", text).strip()


def condense(text: str, *, accompanied: bool = False) -> str:
    """Return the part of a section's text that a slide shows, which is less where it also shows something else."""
    found = blocks(text)
    words = sum(len(block.text.split()) for block in found if block.kind == "prose")
    least = ACCOMPANIED if accompanied or any(block.kind != "prose" for block in found) else ALONE
    shown = []
    for index, block in enumerate(found):
        following = found[index + 1].kind if index + 1 < len(found) else ""
        if block.kind == "prose" and words > SHORT:
            shown.append(_gist(block.text, least, following))
            least -= len(shown[-1].split())
        elif block.kind == "list":
            shown.append("\n".join(_short_item(item) for item in re.split(r"\n(?=\S)", block.text)))
        elif block.kind != "html":
            shown.append(block.text)
    return "\n\n".join(filter(None, shown))


def _gist(prose: str, least: int, following: str) -> str:
    """Return a paragraph's sentences worth a slide: its beginning, the bold, the question, the one before a formula."""
    parts = sentences(prose)
    keep = set(range(_beginning(parts, least)))
    if following in ("math", "table", "list", "code"):
        keep.add(len(parts) - 1)
    for index, part in enumerate(parts):
        if part.startswith("**Predict"):
            keep.update(_question(parts, index))
        elif part.startswith("**"):
            keep |= {index, index + 1} if LABEL.fullmatch(part) else {index}
    return " ".join(part for index, part in enumerate(parts) if index in keep)


def _beginning(parts: list[str], least: int) -> int:
    """Return how many sentences make at least so many words."""
    words = 0
    for index, part in enumerate(parts):
        if words >= least:
            return index
        words += len(part.split())
    return len(parts)


def _question(parts: list[str], start: int) -> range:
    """Return the text from "Predict" to the last question after it, or to the end of the paragraph."""
    asked = [index for index in range(start, len(parts)) if parts[index].endswith("?")]
    return range(start, (asked[-1] if asked else len(parts) - 1) + 1)


def without_lead_in(text: str) -> str:
    """Drop a last sentence that announces what the slide does not show: one that ends with a colon."""
    before, gap, last = text.rpartition("\n\n")
    if kind_of(last) == "prose" and last.rstrip("* ").endswith(":"):
        last = " ".join(sentences(last)[:-1])
    if LABEL.fullmatch(last) and last.startswith("**Predict"):
        last = ""
    return f"{before}{gap}{last}".strip()


def _short_item(item: str) -> str:
    marker, _, text = item.partition(" ")
    if len(text.split()) <= LONG_ITEM:
        return item
    parts = sentences(text)
    return " ".join([marker, *parts[: 2 if LABEL.fullmatch(parts[0]) else 1]])


def caption(text: str, most: int = 30) -> str:
    """Return the italic line below a figure, some of its sentences, set upright; "" where there is none."""
    inside, _ = _split_caption(text)
    kept: list[str] = []
    for part in inside:
        if kept and len(" ".join([*kept, part]).split()) > most:
            break
        kept.append(part)
    return " ".join(kept).replace("*", "")


def without_caption(text: str) -> str:
    """Return the text of a cell after the caption with which it begins."""
    inside, outside = _split_caption(text)
    rest = text.partition("\n\n")[2]
    return "\n\n".join(filter(None, [" ".join(outside), rest])) if inside else text


def _split_caption(text: str) -> tuple[list[str], list[str]]:
    """Return the sentences of the first paragraph up to the end of its emphasis, and those after it."""
    first = text.partition("\n\n")[0].strip()
    if not first.startswith("*") or first.startswith(("**", "* ")):
        return [], []
    parts = sentences(first)
    for end in range(1, len(parts) + 1):
        stars = " ".join(parts[:end]).replace("**", "").count("*")
        if stars % 2 == 0 and parts[end - 1].endswith("*"):
            return parts[:end], parts[end:]
    return parts, []
