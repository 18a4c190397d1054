"""Which heads, entries and memory rows decide a translation? Five translators, the same interventions (notebook 15)."""

from __future__ import annotations

from collections.abc import Sequence

from ...data.corpora import Pair
from ...decoding.translator import Translator
from . import stored
from .questions import Questions

load_results = stored.loader("heads.json")


def questions(translator: Translator, pairs: Sequence[Pair]) -> tuple[Questions, Questions]:
    """Return the sentences with an ambiguous noun, and those with "it"."""
    return (
        Questions(translator, [pair for pair in pairs if pair.word not in ("", "it")]),
        Questions(translator, [pair for pair in pairs if pair.word == "it"]),
    )
