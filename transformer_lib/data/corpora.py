"""Sentence pairs: the generated context corpus, and Multi30k for those who have it."""

from __future__ import annotations

import csv
import gzip
import hashlib
import os
import re
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._files import DATA
from .._lists import check_items

CORPORA = ("context", "multi30k")
CONTEXT_SPLITS = ("train", "validation", "heldout", "compositional", "hard")

# Task 1 of Multi30k (Elliott et al. 2016): file -> SHA-256 of the compressed file.
MULTI30K_FILES = {
    "test_2016_flickr.de.gz": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
    "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
    "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
}
MULTI30K_SOURCE = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/"


@dataclass(frozen=True)
class Pair:
    """A source sentence with its translation, and, where a word in it is ambiguous, what decides it."""

    src: str
    tgt: str
    contrast: tuple[str, ...] = ()  # the translations that the other senses would have
    word: str = ""  # the ambiguous English word
    sense: str = ""  # its sense here, as a German lemma
    expected: str = ""  # the German form of that sense in tgt
    cue: str = ""  # the English word that decides
    frame: str = ""  # the sentence pattern
    gap: int = 0  # tokens from the word to the cue; negative when the cue comes first
    held: str = ""  # which of its combinations training does not show, in the splits that are about them


_COLUMNS = set(Pair.__dataclass_fields__) - {"held"}


def check_pairs(name: str, pairs: object) -> list[Pair]:
    """Return `pairs` as a list if these are sentence pairs; a generator will do.

    Raises:
        TypeError: they are something else.
    """
    listed = check_items(name, pairs, "tl.Pair")
    for i, pair in enumerate(listed):
        if not isinstance(pair, Pair):
            raise TypeError(f"{name} must be a list of tl.Pair, got {pair!r} at index {i}")
    return listed


@dataclass(frozen=True)
class Corpus:
    """Named splits of sentence pairs: `corpus["train"]`, `corpus.splits`."""

    name: str
    splits: dict[str, tuple[Pair, ...]]

    def __getitem__(self, split: str) -> tuple[Pair, ...]:
        if split not in self.splits:
            raise KeyError(f"split must be one of {', '.join(self.splits)}, got {split!r}")
        return self.splits[split]


def load_corpus(name: str = "context", *, download: bool = False) -> Corpus:
    """Load a corpus by name.

    Args:
        name: "context" (in the repository) or "multi30k" (29,000 captions, read from the folder in the
            environment variable MULTI30K_DIR).
        download: for "multi30k" only: fetch missing files into that folder first. Nothing is fetched otherwise.

    Raises:
        ValueError: unknown name, a malformed line, or a file with the wrong checksum.
        FileNotFoundError: a file is missing, with what to do about it.
    """
    if name not in CORPORA:
        raise ValueError(f"name must be one of {', '.join(map(repr, CORPORA))}, got {name!r}")
    if name == "context":
        splits = {split: _read_context(DATA / "context" / f"{split}.tsv") for split in CONTEXT_SPLITS}
        return Corpus(name, splits)
    return _load_multi30k(download)


def _read_context(path: Path) -> tuple[Pair, ...]:
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: it belongs to the library's data; install transformer_lib again")
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE, strict=True)
        missing = _COLUMNS - set(rows.fieldnames or ())
        if missing:
            raise ValueError(f"{path.name} must have the columns {sorted(_COLUMNS)}, got none named {sorted(missing)}")
        return tuple(_context_pair(row, path, line) for line, row in enumerate(rows, start=2))


def _context_pair(row: dict[str, Any], path: Path, line: int) -> Pair:
    if None in row or None in row.values():
        raise ValueError(f"{path.name} line {line} must have as many columns as the header, got {row}")
    fields: dict[str, Any] = {key: value for key, value in row.items() if key in Pair.__dataclass_fields__}
    if not re.fullmatch(r"(-?\d+)?", fields["gap"]):
        raise ValueError(f"{path.name} line {line} must have an integer gap, got {fields['gap']!r}")
    contrast = tuple(filter(None, fields.pop("contrast").split("|")))
    return Pair(**{**fields, "contrast": contrast, "gap": int(fields["gap"] or 0)})


def _load_multi30k(download: bool) -> Corpus:
    folder = os.environ.get("MULTI30K_DIR")
    if not folder:
        raise FileNotFoundError("multi30k is not included: set MULTI30K_DIR to the folder of its task-1 files")
    stems = {"train": "train", "val": "val", "test": "test_2016_flickr"}
    splits = {}
    for split, stem in stems.items():
        sides = [_read_lines(Path(folder), f"{stem}.{language}.gz", download) for language in ("en", "de")]
        if len(sides[0]) != len(sides[1]):
            raise ValueError(f"{stem}: both languages must have as many lines, got {len(sides[0])} and {len(sides[1])}")
        splits[split] = tuple(Pair(src, tgt) for src, tgt in zip(*sides, strict=True))
    return Corpus("multi30k", splits)


def _read_lines(folder: Path, name: str, download: bool) -> list[str]:
    path = folder / name
    if not path.exists():
        if not download:
            hint = "load_corpus('multi30k', download=True) fetches it"
            raise FileNotFoundError(f"{name} is missing in MULTI30K_DIR; {hint}")
        _download(name, path)
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if digest != MULTI30K_FILES[name]:
        raise ValueError(f"{name} must have SHA-256 {MULTI30K_FILES[name]}, got {digest}: delete it and fetch it again")
    return gzip.decompress(content).decode("utf-8").splitlines()


def _download(name: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".part")
    urllib.request.urlretrieve(MULTI30K_SOURCE + name, partial)  # noqa: S310 - a fixed https address
    os.replace(partial, path)
