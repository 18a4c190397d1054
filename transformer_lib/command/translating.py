"""Translating for the command: with the trained translator that is included, or with one that `train` has made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..decoding.translator import Translator, load_trained, tokenizers_in
from ..training.checkpoint import load_weights, read_checkpoint
from .arguments import read_settings
from .learning import BEST, MODELS
from .lines import one_line, plain, simplified
from .scores import longest_translation

FILES = (
    "Text is read and written as UTF-8, whatever the console's encoding; UTF-16 is read, too, where it begins with a "
    "byte order mark. Each line gives one line. A line that cannot be translated gives an empty one, and an error with "
    "its number; the others are translated. The exit status is then 1; it is 2 when nothing can be translated, 130 "
    "after Ctrl+C, and 141 when the output is not read to its end."
)


@dataclass(frozen=True)
class Translated:
    """A line's translation, or why there is none."""

    text: str = ""
    problem: str = ""


def open_translator(folder: Path | None) -> Translator:
    """Return the translator of a run's folder; with None the trained one that is included."""
    return load_trained() if folder is None else load_run(folder)


def translate(translator: Translator, lines: Sequence[str], *, beam_size: int) -> list[Translated]:
    """Return the translation of each line as if it were alone; an empty line stays empty.

    Raises:
        ValueError: the model cannot translate at all.
    """
    translated = [Translated() for _ in lines]
    of_limit: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for i, line in enumerate(lines):
        try:
            if text := _readable(translator, plain(line)):
                of_limit[longest_translation(translator, [text])].append((i, text))
        except ValueError as error:
            translated[i] = Translated(problem=str(error))
    for limit, numbered in of_limit.items():  # one limit for all would let neighbours change a translation
        texts = [text for _, text in numbered]
        translations = translator.translate(texts, beam_size=beam_size, max_new_tokens=limit)
        for (i, _), translation in zip(numbered, translations, strict=True):
            translated[i] = Translated(one_line(translation))
    return translated


def _readable(translator: Translator, text: str) -> str:
    """Return the text in a form that the translator can read.

    Raises:
        ValueError: a word is unknown, or the text too long.
    """
    tokenizer, max_len = translator.src_tokenizer, translator.model.config.max_len
    try:
        ids = tokenizer.encode(text)
    except ValueError as unknown:
        text = simplified(text)  # only here: subwords know every character, and can tell these apart
        try:
            ids = tokenizer.encode(text)
        except ValueError:
            raise unknown from None
    if len(ids) > max_len:
        raise ValueError(f"text has {len(ids)} tokens, more than max_len = {max_len}")
    return text


def load_run(folder: Path) -> Translator:
    """Return the translator with the best weights of a run of `train`, whichever model it trained.

    The checkpoint names the model's class; where it was written by version 1.0, the options of the run tell it.

    Raises:
        FileNotFoundError: nothing was trained there yet. ValueError: the file there is of no such run.
    """
    path, settings = folder / BEST, folder / "config.json"
    if not path.exists():
        raise FileNotFoundError(f"checkpoint {path} does not exist: {_missing(folder, settings)}")
    name = read_settings(settings)["model"] if settings.exists() else "ours"
    contents = read_checkpoint(path)
    classes = {model.__name__: model for model in MODELS.values()}
    kind = contents.kind or MODELS[name].__name__
    if kind not in classes:
        raise ValueError(f"checkpoint {path} must hold a model of `train`, {' or '.join(classes)}, got a {kind}")
    model = classes[kind](contents.config)
    load_weights(model, contents.weights, str(path))
    return Translator(model.eval(), *tokenizers_in(contents.extra, str(path)))


def _missing(folder: Path, settings: Path) -> str:
    if settings.exists():
        return "the run there has not ended its first epoch yet"
    if folder.is_dir():
        return "the folder holds no run of `transformer-lib train`"
    return "that is a file, and a run is a folder" if folder.exists() else "there is no such folder"
