"""What a decoder writes when a row of the memory is hidden or replaced: verbs, "into", "it" (notebook 11).

`load_results()["models"]["seed 1"]` has what `studies.hiding` measures of one training of the translator.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ...decoding.translator import Translator
from ...model.evaluating import evaluating
from ...model.interventions import cut, patch
from ...model.recording import record_attention
from . import stored

load_results = stored.loader("hiding.json")

VERB, PREPOSITION = 4, 5  # rows of the memory, from 0, in the sentences of `tired` and `boxes`
BANK = 6  # in these two
RIVER, MONEY = (f"The man wanted to see the bank near the {cue}." for cue in ("river", "money"))
ANIMALS = ("dog", "cat", "horse", "camel", "bear", "sheep")
THINGS = {"cross": ("street", "bridge", "field"), "eat": ("apple", "bread", "fish")}
MOVED, BOXES = ("chair", "sword", "lamp"), ("box", "suitcase", "car")
FITTING = ("fit into", "fit near", "cross into", "cross near")
SWAPS = (
    ("fit into", PREPOSITION, "fit near"),
    ("fit near", PREPOSITION, "fit into"),
    ("fit into", PREPOSITION, "cross into"),
    ("fit into", VERB, "cross into"),
)
PRONOUN_ROWS = ("it", "noun meant", "other noun", "adjective", "all but adjective")


def tired(verb: str) -> list[str]:
    """Return 18 sentences such as "The dog did not cross the street because it was too tired."; "cross" or "eat".

    The sentences of both verbs belong together in pairs, with the same animal.
    """
    if verb not in THINGS:
        raise ValueError(f"verb must be one of {', '.join(map(repr, THINGS))}, got {verb!r}")
    return [
        f"The {animal} did not {verb} the {thing} because it was too tired."
        for animal, thing in itertools.product(ANIMALS, THINGS[verb])
    ]


def boxes(words: str) -> list[str]:
    """Return 9 sentences such as "The chair did not fit into the box because it was too big."; `words` is "fit into".

    Raises ValueError when `words` is not a verb and a preposition.
    """
    if len(words.split()) != 2:
        raise ValueError(f"words must be a verb and a preposition, such as 'fit into', got {words!r}")
    return [
        f"The {thing} did not {words} the {box} because it was too big."
        for thing, box in itertools.product(MOVED, BOXES)
    ]


def verbs(german: Sequence[str]) -> dict[str, int]:
    """Return how many of these translations have which word in the place of the verb, their third: the commonest first.

    "Der Hund fraß die Straße nicht, …" has "fraß". A translation with fewer words counts as "".
    """
    third = [(text.split() + ["", "", ""])[2] for text in german]
    return dict(Counter(third).most_common())


def lent(translator: Translator, texts: Sequence[str], others: Sequence[str], row: int) -> list[str]:
    """Translate `texts` with one row of each memory, from 0, replaced by that of its other sentence.

    Raises ValueError when texts and others are not equally many.
    """
    if len(texts) != len(others):
        raise ValueError(f"each text needs one other, got {len(texts)} and {len(others)}")
    with evaluating(translator.model):
        memory = translator.model.encode(translator.src_tokenizer.encode_batch(list(others)))
    with patch(translator.model, "encoder", memory, positions=row):
        return translator.translate(list(texts))


def hidden_verbs(translator: Translator) -> dict[str, dict[str, int]]:
    """Return the German verbs of the sentences with "cross" and with "eat", the verb's row hidden from the decoder."""
    with cut(translator.model, key=VERB, attention="cross"):
        return {verb: verbs(translator.translate(tired(verb))) for verb in THINGS}


def replaced_verbs(translator: Translator) -> dict[str, dict[str, int]]:
    """Return the German verbs for each verb's row among the other rows of each: {"eat among cross": {verb: count}}."""
    return {
        f"{own} among {rest}": verbs(lent(translator, tired(rest), tired(own), VERB))
        for own, rest in itertools.product(THINGS, THINGS)
    }


def fitted(translator: Translator) -> dict[str, int]:
    """Return in how many of 9 sentences the translation has "passte", for FITTING as it is and for each of SWAPS."""
    found = {words: translator.translate(boxes(words)) for words in FITTING}
    for words, row, others in SWAPS:
        found[f"{words}, row {row} of {others}"] = lent(translator, boxes(words), boxes(others), row)
    return {name: sum("passte" in text for text in german) for name, german in found.items()}


@torch.no_grad()
def read_for_passte(translator: Translator) -> dict[str, float]:
    """Return the weights of "fit" and "into" in the row that writes "passte", mean over heads and sentences.

    They are those of the last layer.
    The decoder has read "Der Stuhl", so that each model is about to write the verb.
    """
    texts = boxes("fit into")
    src = translator.src_tokenizer.encode_batch(texts)
    begun = translator.tgt_tokenizer.encode_batch([_subject(text) for text in texts], bos=True)
    with evaluating(translator.model), record_attention(translator.model) as record:
        translator.model(src, begun)
    last = [grid for name, grid in record.items() if "cross" in name][-1]  # [9, n_heads, 3, src_len]
    rows = last[:, :, -1].mean(dim=(0, 1))
    return {"fit": round(float(rows[VERB]), 4), "into": round(float(rows[PREPOSITION]), 4)}


def _subject(text: str) -> str:
    return {"chair": "Der Stuhl", "sword": "Das Schwert", "lamp": "Die Lampe"}[text.split()[1]]


def measure(translator: Translator) -> dict[str, Any]:
    """Return all that is stored of one translator but its alignments and its pronouns."""
    return {
        "hidden": hidden_verbs(translator),
        "replaced": replaced_verbs(translator),
        "passte": fitted(translator),
        "read for passte": read_for_passte(translator),
        "bank of money": lent(translator, [RIVER], [MONEY], BANK)[0],
    }


def aligned(models: Mapping[str, Any], layer: int) -> dict[str, list[float]]:
    """Return {kind of word: share aligned, of each of the stored models}; the layer counts from 1."""
    kinds = next(iter(models.values()))["aligned"]
    return {kind: [model["aligned"][kind][layer - 1] for model in models.values()] for kind in kinds}


def pronouns(models: Mapping[str, Any]) -> dict[str, dict[str, list[int]]]:
    """Return {what is counted: {row: sentences of 144, of each of the stored models}}, as `pronoun_counts` has them.

    What was not counted is an empty list.
    """
    return {
        what: {row: _sums(models, row, k) for row in PRONOUN_ROWS}
        for k, what in enumerate(("read most", "flips if hidden", "flips if replaced"))
    }


def _sums(models: Mapping[str, Any], row: str, k: int) -> list[int]:
    both = [[side[k] for side in model["pronouns"][row].values()] for model in models.values()]
    return [sum(sides) for sides in both if None not in sides]
