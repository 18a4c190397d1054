"""W9, the cross-attention of the translator: which source words were read for each target word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ....decoding.translator import Translator, load_trained
from ..plotting.base import check_sentences
from ..svg import Picture
from ..svg.aligning import alignment_picture
from .controls import choice, number
from .explorer_panel import PARTS, recorded
from .panel import Panel

SENTENCES = (
    "The man wanted to see the bank near the river.",
    "Although the woman described the car, the aunt drew a trunk.",
    "The child saw the bat near the cave.",
    "The child saw the bat near the ball.",
    "Yesterday the father found the letter near the mailbox.",
    "The dog did not cross the street because it was too tired.",
    "The chair did not fit into the box because it was too small.",
)


@dataclass(frozen=True)
class Aligned:
    """A sentence, its translation token by token, and the cross-attention of each layer [n_heads, tgt_len, src_len].

    Row t of the weights reads `reads[t]` and writes `writes[t]`.
    """

    source: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    weights: tuple[np.ndarray, ...]


def alignment(
    translator: Translator | None = None, sentences: Sequence[str] = SENTENCES, *, sentence: int = 1, position: int = 1
) -> Panel:
    """Look at the cross-attention while `translator` (the trained one by default) writes its translations.

    Args:
        translator: knows every word of the sentences.
        sentences: what is translated, greedily.
        sentence, position: what is shown first: which sentence, and which of its target tokens; from 1.
    Raises:
        TypeError, ValueError: `sentences` is one string or none, or has a word that the translator does not know.
    """
    check_sentences(sentences)
    shown = _trained() if translator is None and tuple(sentences) == SENTENCES else None
    shown = shown or recorded_alignments(translator or load_trained(), sentences)
    n_layers, n_heads = len(shown[0].weights), len(shown[0].weights[0])

    def draw(sentence: int, layer: int, head: Any, position: int) -> Picture:
        return draw_alignment(shown[sentence - 1], layer, head, position)

    controls = {
        "sentence": number("sentence", sentence, 1, len(shown)),
        "layer": choice("layer", range(1, n_layers + 1), n_layers),
        "head": choice("head", ["mean", *range(1, n_heads + 1)]),
        "position": number("target word", position, 1, max(len(entry.writes) for entry in shown)),
    }
    return Panel(draw, controls, widget_id="W9")


def recorded_alignments(translator: Translator, sentences: Sequence[str]) -> tuple[Aligned, ...]:
    """Translate each sentence greedily, and record the cross-attention of all steps in one pass."""
    return tuple(_aligned(translator, sentence) for sentence in sentences)


def _aligned(translator: Translator, sentence: str) -> Aligned:
    entry = recorded(translator, sentence)
    layers = (PARTS["cross"].format(n) for n in range(translator.model.config.n_layers))
    return Aligned(entry.source, entry.target[:-1], entry.target[1:], tuple(entry.weights[name] for name in layers))


@cache
def _trained() -> tuple[Aligned, ...]:
    return recorded_alignments(load_trained(), SENTENCES)


def draw_alignment(shown: Aligned, layer: int, head: int | str, position: int) -> Picture:
    """Draw one layer (from 1), one head (from 1) or their "mean", and one target token, at most the last."""
    grids, row = shown.weights[layer - 1], min(position, len(shown.writes)) - 1
    grid = grids.mean(axis=0) if head == "mean" else grids[int(head) - 1]
    who = "mean of heads" if head == "mean" else f"head {head}"
    title = f"layer {layer}, {who}: reads “{shown.reads[row]}”, writes “{shown.writes[row]}”"
    return alignment_picture(grid, shown.source, shown.writes, row, title)
