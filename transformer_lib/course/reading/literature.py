"""The papers that the course cites: data/references.toml, and how a reference is shown."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..._files import DATA
from .finding import find
from .shown import Shown

REFERENCES = DATA / "references.toml"
OTHERS = "and others"
"""Stands last among the authors where the list is cut short."""

_AUTHOR = re.compile(r"[^\W\d_][\w' -]*, [^\W\d_]\.(?:[ -][^\W\d_]\.)*|[a-z]+")  # a pen name is one word
_ARXIV = re.compile(r"https://arxiv\.org/abs/((\d\d)\d\d\.\d{4,5})")
_DOI = re.compile(r"https://doi\.org/(10\.\d{4,}/\S+)")


@dataclass(frozen=True)
class Reference:
    """One paper.

    Args:
        key: first author's family name and year, such as "vaswani2017".
        authors: each as "Vaswani, A."; a long list ends with `OTHERS`.
        year: of the publication that `venue` names.
        title: as printed.
        venue: journal with volume and pages, conference, or "arXiv preprint".
        url: where it can be read; arXiv where it is there.
    """

    key: str
    authors: tuple[str, ...]
    year: int
    title: str
    venue: str
    url: str

    @property
    def label(self) -> str:
        """How a text cites it, such as "Xu et al. 2019"."""
        families = [author.partition(",")[0] for author in self.authors]
        if len(families) > 2:
            return f"{families[0]} et al. {self.year}"
        return f"{' and '.join(families)} {self.year}"

    @property
    def number(self) -> str:
        """The address in short: "arXiv:1706.03762", "doi:10.1137/1109020", or the whole of it."""
        for form, name in ((_ARXIV, "arXiv"), (_DOI, "doi")):
            if short := form.fullmatch(self.url):
                return f"{name}:{short[1]}"
        return self.url

    @property
    def markdown(self) -> str:
        """The entry of a bibliography, with its title as a link."""
        return f"{self._who} [{self.title}]({self.url}). *{self.venue}*."

    @property
    def text(self) -> str:
        """The same without links."""
        end = "" if self.title.endswith("?") else "."
        return f"{self._who} {self.title}{end} {self.venue}. {self.number}"

    @property
    def _who(self) -> str:
        *first, last = self.authors
        if last == OTHERS:
            names = f"{', '.join(first)} {OTHERS}"
        else:
            names = f"{', '.join(first)} and {last}" if first else last
        return f"{names} ({self.year})."


@cache
def load(path: Path = REFERENCES) -> Mapping[str, Reference]:
    """Return the references by key, in the order of the file.

    Raises:
        ValueError: if an entry breaks a rule; the message names every such entry.
    """
    return made(tomllib.loads(path.read_text(encoding="utf-8")))


def made(data: Mapping[str, Any]) -> Mapping[str, Reference]:
    """Return the references made of the tables of a TOML file.

    Raises:
        ValueError: if an entry breaks a rule; the message names every such entry.
    """
    rows = {key: Reference(key=key, **row | {"authors": tuple(row["authors"])}) for key, row in data.items()}
    problems = [*_problems(rows.values())]
    if problems:
        raise ValueError("references: " + "; ".join(problems))
    return rows


def reference(key: str) -> Reference:
    """Return the paper with this key ("xu2019"), or cited so in a text ("Xu et al. 2019").

    Raises:
        ValueError: if there is none; the message has the nearest ones.
    """
    names = {name: row for row in load().values() for name in (row.key, row.label)}
    return find("key", key, names, place="data/references.toml")


def cite(key: str) -> Shown:
    """Show the entry of one paper: authors, year, title with its link, venue.

    Raises:
        ValueError: if there is no such paper; the message has the nearest ones.
    """
    row = reference(key)
    return Shown(row.markdown, row.text)


def references(keys: Iterable[str] | Mapping[str, str]) -> Shown:
    """Show a list for further reading, in the order given.

    Args:
        keys: keys of the papers; a mapping also says of each, in a sentence, why to read it.

    Raises:
        ValueError: if there is no such paper, or if `keys` is a single string; `cite` shows one.
    """
    if isinstance(keys, str):
        raise ValueError(f"keys must be several keys, such as ['xu2019', 'xiong2020'], got the string {keys!r}")
    whys = keys if isinstance(keys, Mapping) else dict.fromkeys(keys, "")
    rows = [(reference(key), f" {why}".rstrip()) for key, why in whys.items()]
    return Shown(
        "\n".join(f"- {row.markdown}{why}" for row, why in rows),
        "\n".join(f"{row.text}{why and ' –' + why}" for row, why in rows),
    )


def _problems(rows: Iterable[Reference]) -> Iterator[str]:
    """Yield one sentence for each rule that an entry breaks."""
    listed = [*rows]
    if [row.key for row in listed] != sorted(row.key for row in listed):
        yield "the keys are not in alphabetical order"
    for label, times in Counter(row.label for row in listed).items():
        if times > 1:
            yield f"{label} could be {times} papers"
    for row in listed:
        yield from (f"{row.key} {problem}" for problem in _wrong(row))


def _wrong(row: Reference) -> Iterator[str]:
    expected = f"{_letters(row.authors[0].partition(',')[0])}{row.year}"
    if row.key != expected:
        yield f"should have the key {expected}"
    for author in row.authors:
        if author != OTHERS and not _AUTHOR.fullmatch(author):
            yield f"has the author {author!r}, which is not of the form 'Vaswani, A.'"
    for name, text in (("title", row.title), ("venue", row.venue)):
        if not text.strip() or text != text.strip() or text.endswith("."):
            yield f"has the {name} {text!r}, which is empty or has a space or a full stop at its end"
    if not re.fullmatch(r"https://[\w.-]+/\S*", row.url):
        yield f"has the address {row.url!r}, which does not begin with https://"
    if (found := _ARXIV.fullmatch(row.url)) and 2000 + int(found[2]) > row.year:
        yield f"is of {row.year}, but its arXiv number is of 20{found[2]}"


def _letters(name: str) -> str:
    """Return a name in small letters without accents or anything else."""
    return re.sub(r"[^a-z]", "", unicodedata.normalize("NFKD", name).casefold())
