"""W27, the word that decides: type the last word of a sentence, see the translation flip, and cut the one reading."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
import torch

from ...._validate import check_choice
from ....data.corpora import load_corpus
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
_LONGEST = 12  # tokens of a translation, or letters of a word, that are shown


@dataclass(frozen=True)
class Sense:
    """One meaning of a word: its German noun, and the cues that the translator has met beside it."""

    noun: str
    cues: tuple[str, ...]


def deciding_word(
    translator: Translator | None = None, *, word: str = "bank", cue: str = "money", cut: bool = False
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
    check_choice("word", word, WORDS)
    translator = translator or load_trained()
    senses = {name: senses_of(name) for name in WORDS}
    heads = {name: reading_head(translator, name, senses[name]) for name in WORDS}

    def draw(word: str, cue: str, cut: bool) -> Picture:
        return draw_deciding(translator, word, senses[word], heads[word], cue, cut)

    controls = {
        "word": choice("ambiguous word", WORDS, word),
        "cue": typed_word("last word, then Enter", cue),
        "cut": switch("cut: the word may not read the last one, in any head", cut),
    }
    met = {known for found in senses.values() for sense in found for known in sense.cues}
    return Panel(draw, controls, widget_id="W27", says_lines=3, carried={"cue": sorted(met | {cue, "house", "swan"})})


def senses_of(name: str) -> tuple[Sense, ...]:
    """Return the meanings of a word in the training sentences."""
    cues_of: dict[str, set[str]] = {}
    for pair in load_corpus("context")["train"]:
        if pair.word == name and pair.cue and pair.sense:
            cues_of.setdefault(pair.sense.split()[-1], set()).add(pair.cue)
    return tuple(Sense(noun, tuple(sorted(cues))) for noun, cues in sorted(cues_of.items()))


@torch.no_grad()
def draw_deciding(
    translator: Translator, name: str, senses: tuple[Sense, ...], head: tuple[int, int], typed: str, cut: bool
) -> Picture:
    """Translate the sentence with this last word, and draw what the word in question reads in one (layer, head)."""
    cue, problem = _known(translator, typed)
    if problem:
        return _refused(name, problem)
    source = _sentence(name, cue)
    with cut_reading(translator.model, query=READER, key=CUE) if cut else nullcontext():
        german = translator.translate([source], max_new_tokens=_LONGEST)[0]
        row = _rows(translator, [source])[0][head]
    written = [token for word in german.split() if (token := word.strip(".,:?"))]
    noun = next((i for i, token in enumerate(written) if any(token.startswith(each.noun) for each in senses)), None)
    chosen = f"says {written[noun]}" if noun is not None else f"says neither {' nor '.join(s.noun for s in senses)}"
    reads = "may not read" if cut else f"gives {row[CUE]:.2f} of its weight in this head to"
    says = f"“{name}” {reads} “{cue}”, and the translation {chosen}. {_met(name, senses, cue)}"
    n_heads = translator.model.config.n_heads
    title = f"encoder layer {head[0] + 1}, head {head[1] + 1} of {n_heads}: what “{name}” reads"
    decided = [] if noun is None else [noun]
    tokens = SENTENCE.format(name, cue).split()
    return deciding_picture(tokens, row, READER, CUE, written, decided, cut=cut, title=title, says=says)


def _sentence(name: str, cue: str) -> str:
    return SENTENCE.format(name, cue).replace(" .", ".")


def _met(name: str, senses: tuple[Sense, ...], cue: str) -> str:
    """Say which words stood beside this one in training, and whether the typed one did."""
    known = "; ".join(f"{', '.join(sense.cues)} ({sense.noun})" for sense in senses)
    new = "" if any(cue in sense.cues for sense in senses) else f"“{cue}” never stood beside it there. "
    return f"{new}In training it met {known}."


def _known(translator: Translator, typed: str) -> tuple[str, str]:
    """Return the typed word as the translator writes it, and what is wrong with it; an empty text when nothing is."""
    tokenizer = translator.src_tokenizer
    words = {each.lower(): each for each in getattr(tokenizer, "words", ()) if each.isalpha()}
    cue = typed.strip(" .,!?\"'“”‘’").lower()
    if not cue:
        return "", "Type a word, such as river or money, and press Enter."
    if len(cue.split()) > 1:
        return "", f"Type a single word, not {len(cue.split())}."
    if cue in words:
        return words[cue], ""
    close = get_close_matches(cue, words, 3)
    hint = f" Close to it: {', '.join(words[each] for each in close)}." if close else " Try river, money, swan or loan."
    short = cue if len(cue) <= _LONGEST else f"{cue[:_LONGEST]}…"
    return "", f"“{short}” is not among the {len(words)} words that this small translator has learned.{hint}"


def _refused(name: str, problem: str) -> Picture:
    tokens = SENTENCE.format(name, "?").split()
    nothing = np.zeros(len(tokens))
    return deciding_picture(tokens, nothing, READER, CUE, ["?"], (), cut=False, title="", says=problem)


@torch.no_grad()
def reading_head(translator: Translator, name: str, senses: tuple[Sense, ...]) -> tuple[int, int]:
    """Return the layer and the head, from 0, in which the word in question reads its cues most, on average."""
    cues = [cue for sense in senses for cue in sense.cues]
    rows = _rows(translator, [_sentence(name, cue) for cue in cues])[..., CUE].mean(axis=0)
    layer, head = np.unravel_index(int(rows.argmax()), rows.shape)
    return int(layer), int(head)


def _rows(translator: Translator, sentences: list[str]) -> np.ndarray:
    """Return what the word in question reads in each sentence, [len(sentences), n_layers, n_heads, src_len]."""
    with record_attention(translator.model) as record:
        translator.model.encode(translator.src_tokenizer.encode_batch(sentences))
    return np.stack([grid[:, :, READER].double().numpy() for grid in record.values()], axis=1)
