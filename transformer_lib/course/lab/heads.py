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


def silenced_in_encoder() -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Return {translator: shares of the nouns that are right} with one of its encoder's heads silenced, and with all.

    The first dictionary has a share for each head, those of layer 1 first; the second has a single one.
    """
    one, together = {}, {}
    for name, found in load_results()["models"].items():
        alone = found["alone"]["noun"]["right"]
        one[name] = [share for attention in alone if attention.startswith("encoder") for share in alone[attention]]
        together[name] = [found["together"]["noun"]["encoder"]["silenced"]]
    return one, together
