"""The trained translator at work: both paths of the library, and CTranslate2 with four bytes or one for each weight.

All have the same weights and translate the same sentences, from text to text; before anything is timed, those that
compute in float32 must say the same.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from importlib import metadata
from pathlib import Path

import torch

import transformer_lib as tl
from transformer_lib.decoding import export

from .measure import interleaved, spread, timed, times_faster
from .run import machine
from .work import Work

COMMAND = "make bench BENCH=--deployed"
READABLE, FAST, FLOAT32, INT8 = "readable path", "fast path", "CTranslate2, float32", "CTranslate2, int8"
BEAM = 4
WORKS = {  # sentences at a time, beams
    "greedy, 1 sentence": (1, 1),
    "greedy, 8 sentences": (8, 1),
    "greedy, 32 sentences": (32, 1),
    f"beam of {BEAM}, 8 sentences": (8, BEAM),
}
SENTENCES = 32
Translate = Callable[[Sequence[str]], list[str]]


def measured(work: Work, say: Callable[[str], None] = print) -> dict:
    """Return how long each candidate takes for a sentence, and how many times faster than the readable path it is."""
    torch.set_num_threads(work.threads)
    texts = [pair.src for pair in tl.load_corpus("context")["heldout"][: 37 * SENTENCES : 37]][:SENTENCES]
    with tempfile.TemporaryDirectory() as folder:
        engines = opened(Path(folder), work.threads)
        found = {}
        for name, (batch, beam) in WORKS.items():
            say(f"{name} …")
            found[name] = rows(candidates(engines, batch, beam), texts, batch, work.rounds)
    about = machine()
    about["versions"]["ctranslate2"] = metadata.version("ctranslate2")
    head = {"command": COMMAND, "date": date.today().isoformat(), "machine": about}
    return head | {"rounds": work.rounds, "sentences": SENTENCES, "work": found}


def opened(folder: Path, threads: int) -> dict[str, export.Exported]:
    """Return the exported translators."""
    kinds = {FLOAT32: "float32", INT8: "int8"}
    return {
        name: export.load_ctranslate2(
            export.to_ctranslate2(tl.load_trained(), folder / kind, quantization=kind), threads=threads
        )
        for name, kind in kinds.items()
    }


def candidates(engines: dict[str, export.Exported], batch: int, beam: int) -> dict[str, Translate]:
    """Return what translates so many texts, with a beam of that size."""
    ours, options = tl.load_trained(), {"beam_size": beam, "length_penalty": 0.0}
    found: dict[str, Translate] = {
        READABLE: partial(ours.translate, path="readable", **options),
        FAST: partial(ours.translate, path="fast", **options),
    }
    return found | {name: partial(one.translate, batch_size=batch, **options) for name, one in engines.items()}


def rows(translators: dict[str, Translate], texts: Sequence[str], batch: int, rounds: int) -> dict[str, dict]:
    """Return, for each candidate, the seconds for a sentence and the ratio to the readable path, round by round."""
    parts = [texts[start : start + batch] for start in range(0, len(texts), batch)]
    said = {name: [translate(part) for part in parts] for name, translate in translators.items()}
    different = [name for name in translators if name != INT8 and said[name] != said[READABLE]]
    if different:
        raise AssertionError(f"candidates in float32 must say the same, and {', '.join(different)} did not")

    def seconds(translate: Translate) -> float:
        return timed(lambda: [translate(part) for part in parts]) / len(texts)

    found = interleaved({name: partial(seconds, translate) for name, translate in translators.items()}, rounds)
    return {name: {"seconds": spread(own), "ratio": times_faster(found[READABLE], own)} for name, own in found.items()}
