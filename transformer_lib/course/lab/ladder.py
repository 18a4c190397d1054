"""The ladder: the translator with only the parts learned so far, from notebook 02 to notebook 14."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...model.base import TranslationModel
from . import stored, translators
from .ladder_models import PARTS, read_evenly, start_quietly, step_softly, without_residuals_and_norms

load_results = stored.loader("ladder.json")
PASSES = (2, 4, 8)  # over the corpus: the course's number, half and twice of it, to see how much the rest still changes
PLAIN: dict[str, Any] = {"schedule": "constant", "warmup_steps": 1, "label_smoothing": 0.0}
RECIPE = {name: value for name, value in translators.TRAINING.items() if name != "epochs"}
KINDS = ("nouns", "it")  # of ambiguous words
MEASURES = ("loss", "exact match", *KINDS)


@dataclass(frozen=True)
class Rung:
    """One translator: what it is called, what it is made of, and how it is trained and decoded.

    Args:
        id: the notebook that brings the part, or for a control what it is. part: what is new, in a few words.
        parts: of a `Reader`; None for a `Transformer`. n_layers: of its stacks. change: made to the untrained model.
        training: options of `train`; without a learning rate the best of RATES is chosen.
        beam_size: for decoding. trained_as: the rung whose trained translator this one is.
    """

    id: str
    part: str
    parts: tuple[str, ...] | None = None
    n_layers: int = 1
    change: Callable[[TranslationModel], None] = lambda model: None
    training: dict[str, Any] = field(default_factory=lambda: PLAIN)
    beam_size: int = 1
    trained_as: str = ""


DICTIONARY = Rung("01", "a dictionary")
RUNGS = (
    Rung("02", "attention without weights", PARTS[:0]),
    Rung("03", "queries, keys, values", PARTS[:1]),
    Rung("04", "division by √d_k", PARTS[:2]),
    Rung("05", "learned word vectors", PARTS[:3]),
    Rung("06", "positions", PARTS[:4]),
    Rung("07", "earlier words, masked", PARTS[:5]),
    Rung("08", "several heads", PARTS[:6]),
    Rung("09", "residuals, norms, feed-forward", PARTS[:7]),
    Rung("10", "an encoder layer", PARTS[:8]),
    Rung("11", "a decoder layer"),
    Rung("12", "two layers each", n_layers=2),
    Rung("13", "warm-up, decay, smoothing", n_layers=2, training=RECIPE),
    Rung("14", "beam search", n_layers=2, training=RECIPE, beam_size=4, trained_as="13"),
)
CONTROLS = (
    Rung("02, even weights", "a plain average, no attention", (), change=read_evenly),
    Rung("03, quiet start", "a quiet start, not divided", PARTS[:1], change=start_quietly),
    Rung("03, small steps", "small steps, not divided", PARTS[:1], change=step_softly),
    Rung("08 without 07", "several heads without rung 07", tuple(part for part in PARTS[:6] if part != "mask")),
)
ORDER = (  # of which a single pass says enough
    Rung("11 without 09", "one layer without rung 09", change=without_residuals_and_norms),
    Rung("12 without 09", "two layers without rung 09", n_layers=2, change=without_residuals_and_norms),
)
_BY_ID = {rung.id: rung for rung in (*RUNGS, *CONTROLS, *ORDER)}


def find(name: str) -> Rung:
    """Return the trained rung or control `name`; ValueError names those that there are."""
    if name not in _BY_ID:
        raise ValueError(f"name must be one of {', '.join(map(repr, _BY_ID))}, got {name!r}")
    return _BY_ID[name]
