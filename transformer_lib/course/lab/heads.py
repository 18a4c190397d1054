"""Which heads, entries and memory rows decide a translation? Five translators, the same interventions (notebook 15).

`python -m studies.heads` measured what `load_results` reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..._files import DATA
from ...data.corpora import Pair
from ...decoding.translator import Translator
from . import stored
from .questions import Questions

RESULTS = DATA / "heads.json"


def questions(translator: Translator, pairs: Sequence[Pair]) -> tuple[Questions, Questions]:
    """Return the sentences with an ambiguous noun, and those with "it"."""
    return (
        Questions(translator, [pair for pair in pairs if pair.word not in ("", "it")]),
        Questions(translator, [pair for pair in pairs if pair.word == "it"]),
    )


def load_results(path: Path = RESULTS) -> dict[str, Any]:
    """Return what the command of this module wrote: command, date, seeds, every, models."""
    return stored.read(path)
