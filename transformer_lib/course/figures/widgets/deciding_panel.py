"""W27, the word that decides: type the last word of a sentence, see the translation flip, and cut the one reading."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
import torch

from ....data.corpora import load_corpus
from ....data.tokenizers import WordTokenizer
from ....decoding.translator import Translator, load_trained
from ....model.interventions import cut as cut_reading
from ....model.recording import record_attention
from ..svg import Picture
from ..svg.deciding import deciding_picture
from .controls import choice, switch
from .controls import word as typed_word
from .panel import Panel

WORDS = ("bank", "seal", "bat", "ruler", "nut")
SENTENCE = "The man saw the {} near the {} ."
READER, CUE = 4, 7  # positions of the word and of its cue in the sentence


@dataclass(frozen=True)
class Sense:
    """One meaning of a word: its German noun, and the cues that the translator has met beside it."""

    noun: str
    cues: tuple[str, ...]


def deciding_word(
    translator: Translator | None = None, *, word: str = "bank", cue: str = "river", cut: bool = False
) -> Panel:
    """Type the last word of "The man saw the bank near the …", and let *bank* read it or not.

    Args:
        translator: the trained one by default; its encoder reads whole words.
        word: the ambiguous word shown first, one of `WORDS`.
        cue: the last word shown first.
        cut: whether the word may not read the cue, in any layer or head of the encoder.

    Raises:
        ValueError: `word` is none of `WORDS`.
    """
    if word not in WORDS:
        raise ValueError(f"word must be one of {', '.join(WORDS)}, got {word!r}")
    translator = translator or load_trained()
    senses = {name: senses_of(name) for name in WORDS}

    def draw(word: str, cue: str, cut: bool) -> Picture:
        return draw_deciding(translator, word, senses[word], cue, cut)

    controls = {
        "word": choice("ambiguous word", WORDS, word),
        "cue": typed_word("last word, then Enter", cue),
        "cut": switch("cut: the word may not read the last one", cut),
    }
    return Panel(draw, controls, widget_id="W27", says_lines=2)


def senses_of(name: str) -> tuple[Sense, ...]:
    """Return the meanings of a word in the training sentences."""
    found: dict[str, set[str]] = {}
    for pair in load_corpus("context")["train"]:
        if pair.word == name and pair.cue and pair.sense:
            found.setdefault(pair.sense.split()[-1], set()).add(pair.cue)
    return tuple(Sense(noun, tuple(sorted(cues))) for noun, cues in sorted(found.items()))


@torch.no_grad()
def draw_deciding(translator: Translator, name: str, senses: tuple[Sense, ...], typed: str, cut: bool) -> Picture:
    """Translate the sentence with this last word and draw what the word in question reads."""
    cue = typed.strip(" .,!?").lower()
    known = _known(translator, cue)
    if known:
        return _refused(name, known)
    tokens = SENTENCE.format(name, cue).split()
    source = " ".join(tokens[:-1]) + "."
    layer, head = reading_head(translator, source)
    with cut_reading(translator.model, query=READER, key=CUE) if cut else nullcontext():
        german = translator.translate([source])[0]
        row = _rows(translator, source)[layer, head]
    written = german.rstrip(".").split()
    decided = [i for i, token in enumerate(written) if any(token.startswith(sense.noun) for sense in senses)]
    nouns = " and ".join(written[i] for i in decided) or "neither " + " nor ".join(sense.noun for sense in senses)
    reads = "may not read" if cut else f"gives {row[CUE]:.2f} of its weight to"
    says = f"“{name}” {reads} “{cue}”, and the translation says {nouns}. Beside it in training: {_tried(senses)}."
    title = f"encoder layer {layer + 1}, head {head + 1}: what “{name}” reads"
    return deciding_picture(tokens, row, READER, CUE, [*written, "."], decided, cut=cut, title=title, says=says)


def _tried(senses: tuple[Sense, ...]) -> str:
    return "; ".join(f"{', '.join(sense.cues[:5])} ({sense.noun})" for sense in senses)


def _known(translator: Translator, cue: str) -> str:
    """Return what is wrong with a typed word; an empty text when the translator can read it."""
    words = translator.src_tokenizer.words if isinstance(translator.src_tokenizer, WordTokenizer) else []
    learned = [each for each in words if each.isalpha()]
    if not cue:
        return "Type a word, such as river or money, and press Enter."
    if len(cue.split()) > 1:
        return f"Type a single word, not {len(cue.split())}."
    if cue in learned:
        return ""
    close = get_close_matches(cue, learned, 3)
    hint = f" Close to it: {', '.join(close)}." if close else " Try river, money, swan or loan."
    return f"“{cue}” is not among the {len(learned)} words that this small translator has learned.{hint}"


def _refused(name: str, problem: str) -> Picture:
    tokens = SENTENCE.format(name, "?").split()
    nothing = np.zeros(len(tokens))
    return deciding_picture(tokens, nothing, READER, CUE, ["?"], (), cut=False, title="", says=problem)


def reading_head(translator: Translator, source: str) -> tuple[int, int]:
    """Return the layer and the head, from 0, in which the word in question reads its cue most."""
    rows = _rows(translator, source)[:, :, CUE]
    layer, head = np.unravel_index(int(rows.argmax()), rows.shape)
    return int(layer), int(head)


def _rows(translator: Translator, source: str) -> np.ndarray:
    """Return what the word in question reads, in each layer and head of the encoder, [n_layers, n_heads, src_len]."""
    with record_attention(translator.model) as record:
        translator.model.encode(translator.src_tokenizer.encode_batch([source]))
    return np.stack([grid[0, :, READER].double().numpy() for grid in record.values()])
