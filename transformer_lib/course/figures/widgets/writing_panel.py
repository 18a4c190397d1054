"""W34, the decoder at work: word after word, what its cross-attention reads and what it writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....decoding.translator import Translator, load_trained
from ..plotting.base import check_sentences
from ..svg import Picture
from ..svg.writing import writing_picture
from .aligning_panel import SENTENCES, Aligned, recorded_alignments
from .controls import choice, steps
from .panel import Panel

FIRST_SENTENCES = SENTENCES[:2]  # what the others show is asked later


def writing(translator: Translator | None = None, sentences: Sequence[str] = FIRST_SENTENCES) -> Panel:
    """Watch `translator` (the trained one by default) write greedily: its last layer's weights, mean over the heads.

    Raises:
        TypeError, ValueError: `sentences` is one string or none, or has a word that the translator does not know.
    """
    check_sentences(sentences)
    shown = recorded_alignments(translator or load_trained(), sentences)

    def draw(step: int, sentence: int = 1) -> Picture:
        return draw_writing(shown[sentence - 1], step)

    several = len(sentences) > 1
    controls: dict[str, Any] = {"sentence": choice("sentence", range(1, len(sentences) + 1))} if several else {}
    controls["step"] = steps("step", max(len(entry.writes) for entry in shown))
    return Panel(draw, controls, widget_id="W34")


def draw_writing(shown: Aligned, step: int) -> Picture:
    """Draw one step, from 1; a number beyond the last step shows the last."""
    target = (*shown.reads, shown.writes[-1])
    return writing_picture(shown.weights[-1].mean(axis=0), shown.source, target, min(step, len(shown.writes)))
