"""Translating for the command: with the trained translator that comes along, or with one that `train` has made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from ..data.tokenizers import BPETokenizer
from ..decoding.translator import Translator, load_trained
from ..training.checkpoint import load_weights, read_checkpoint
from .learning import BEST, MODELS


def translate(texts: Sequence[str], folder: Path | None, *, beam_size: int) -> list[str]:
    """Return one translation per text.

    Args:
        folder: where `train` has put its run; None for the trained translator that comes with the library.
    """
    translator = load_trained() if folder is None else load_run(folder)
    return translator.translate(texts, beam_size=beam_size)


def load_run(folder: Path) -> Translator:
    """Return the translator with the best weights of a run of `train`.

    Raises:
        FileNotFoundError: nothing was trained there yet. ValueError: the file there is of no such run.
    """
    path = folder / BEST
    config, weights, _, extra = read_checkpoint(path)
    if "tokenizer" not in extra:
        raise ValueError(f"{path} must be one that `train` wrote, got one without a tokenizer")
    kind = json.loads((folder / "config.json").read_text(encoding="utf-8"))["model"]
    model = MODELS[kind](config)
    load_weights(model, weights, str(path))
    tokenizer = BPETokenizer(extra["tokenizer"])
    return Translator(model.eval(), tokenizer, tokenizer)
