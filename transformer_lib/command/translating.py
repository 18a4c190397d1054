"""Translating for the command: with the trained translator that is included, or with one that `train` has made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..decoding.translator import Translator, load_trained, tokenizers_in
from ..training.checkpoint import load_weights, read_checkpoint
from .arguments import read_settings
from .learning import BEST, MODELS
from .scores import longest_translation


def translate(texts: Sequence[str], folder: Path | None, *, beam_size: int) -> list[str]:
    """Return one translation per text; an empty line stays an empty line.

    Args:
        folder: where `train` has put its run; None for the trained translator that is included.
    """
    translator = load_trained() if folder is None else load_run(folder)
    written = [text for text in texts if text.strip()]
    limit = longest_translation(translator, written)
    found = iter(translator.translate(written, beam_size=beam_size, max_new_tokens=limit))
    return [next(found) if text.strip() else "" for text in texts]


def load_run(folder: Path) -> Translator:
    """Return the translator with the best weights of a run of `train`, whichever model it trained.

    Raises:
        FileNotFoundError: nothing was trained there yet. ValueError: the file there is of no such run.
    """
    path, settings = folder / BEST, folder / "config.json"
    config, weights, _, extra = read_checkpoint(path)
    kind = read_settings(settings)["model"] if settings.exists() else "ours"
    model = MODELS[kind](config)
    load_weights(model, weights, str(path))
    return Translator(model.eval(), *tokenizers_in(extra, str(path)))
