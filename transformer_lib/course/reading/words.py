"""The words of the course: data/glossary.toml, and how an entry is shown."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..._files import DATA
from ..notebooks import NOTEBOOKS, notebook
from . import literature
from .finding import find, folded
from .shown import Shown, plain

GLOSSARY = DATA / "glossary.toml"


@dataclass(frozen=True)
class Entry:
    """One word.

    Args:
        word: as the course writes it.
        means: its definition, Markdown with formulas in `$…$`.
        notebook: number of the notebook that explains it.
        see: words to read next.
        also: its other names.
        sources: keys of the papers that it comes from.
    """

    word: str
    means: str
    notebook: str
    see: tuple[str, ...]
    also: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The word and its other names."""
        return (self.word, *self.also)


@cache
def entries(path: Path = GLOSSARY) -> tuple[Entry, ...]:
    """Return all words in alphabetical order.

    Raises:
        ValueError: if an entry breaks a rule; the message names every such entry.
    """
    return made(tomllib.loads(path.read_text(encoding="utf-8"))["word"])


def made(rows: Sequence[Mapping[str, Any]]) -> tuple[Entry, ...]:
    """Return the entries made of the tables of a TOML file.

    Raises:
        ValueError: if an entry breaks a rule; the message names every such entry.
    """
    words = tuple(
        Entry(
            row["word"],
            " ".join(row["means"].split()),
            row["notebook"],
            tuple(row["see"]),
            tuple(row.get("also", ())),
            tuple(row.get("sources", ())),
        )
        for row in rows
    )
    problems = [*_problems(words)]
    if problems:
        raise ValueError("glossary: " + "; ".join(problems))
    return words


def entry(word: str) -> Entry:
    """Return the entry of a word, by any of its names; capitals, hyphens, plurals and American spelling do not matter.

    Raises:
        ValueError: if the glossary does not have the word; the message has the nearest ones.
    """
    names = {name: row for row in entries() for name in row.names}
    return find("word", word, names, place="the glossary")


def glossary(word: str | None = None) -> Shown:
    """Show what a word means, the notebook that explains it, and what to read next; without a word, all words.

    Raises:
        ValueError: if the glossary does not have the word; the message has the nearest ones.
    """
    return _all() if word is None else _shown(entry(word))


def _shown(row: Entry) -> Shown:
    there = notebook(row.notebook)
    lines = [
        f"**{row.word}** · notebook [{there.id}: {there.title}]({there.filename})",
        row.means,
        f"*See also:* {', '.join(row.see)}",
    ]
    if row.also:
        lines.append(f"*Also called:* {', '.join(named(name) for name in row.also)}")
    if row.sources:
        papers = [literature.reference(key) for key in row.sources]
        lines.append(f"*From:* {', '.join(f'[{paper.label}]({paper.url})' for paper in papers)}")
    return Shown("\n\n".join(lines), f"{row.word} (notebook {row.notebook}): {_as_text(row.means)}")


def _as_text(means: str) -> str:
    """Return a definition without markup: formulas in characters, compound indices in brackets, no emphasis."""
    indexed = re.sub(r"_\{([^{}]*[-+<,][^{}]*)\}", r"_(\1)", means)
    return plain(re.sub(r"\*(\w[^*]*)\*", r"\1", indexed))


def _all() -> Shown:
    by_letter: defaultdict[str, list[str]] = defaultdict(list)
    for row in entries():
        by_letter[folded(row.word)[0].upper()].append(row.word)
    lines = {letter: " · ".join(words) for letter, words in by_letter.items()}
    return Shown(
        "\n\n".join(f"**{letter}** {words}" for letter, words in lines.items()),
        "\n".join(f"{letter}  {words}" for letter, words in lines.items()),
    )


def named(name: str) -> str:
    """Return a name as Markdown: as code where it is a name in code or would be read as markup."""
    return f"`{name}`" if set(name) & set("<>_.") else name


def _problems(rows: Sequence[Entry]) -> Iterator[str]:
    """Yield one sentence for each rule that an entry breaks."""
    order = [folded(row.word) for row in rows]
    if order != sorted(order):
        yield "the words are not in alphabetical order"
    owner: dict[str, str] = {}
    for row in rows:
        for name in row.names:
            if owner.setdefault(folded(name), row.word) != row.word:
                yield f"{name!r} is a name of {owner[folded(name)]!r} and of {row.word!r}"
    for row in rows:
        yield from (f"{row.word!r} {problem}" for problem in _wrong(row, {each.word for each in rows}))


def _wrong(row: Entry, words: set[str]) -> Iterator[str]:
    if not row.means or row.means[-1] not in ".?" or row.means.count("$") % 2:
        yield "has a definition that is empty, without a full stop, or with half a formula"
    if len({folded(name) for name in row.names}) < len(row.names):
        yield "has the same name twice"
    if row.notebook not in {each.id for each in NOTEBOOKS}:
        yield f"names the unknown notebook {row.notebook!r}"
    for name in row.see:
        if name not in words - {row.word}:
            yield f"says see {name!r}, which is no other word of the glossary"
    for key in row.sources:
        if key not in literature.load():
            yield f"names the unknown reference {key!r}"
