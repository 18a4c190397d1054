"""Which heads, entries and memory rows decide a translation? Five translators, the same interventions (notebook 15).

`python -m transformer_lib.course.studies.heads` trains a translator for each seed as the course does, and one with a
single pass over the corpus; measures them and the one that comes with the course, and writes data/heads.json.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..._files import DATA
from ...data.corpora import Corpus, Pair, load_corpus
from ...decoding.translator import Translator, load_trained
from ...model.evaluating import evaluating
from ...model.multihead import MultiHeadAttention
from ...model.transformer import Transformer
from . import entries, stored, translators
from .cuts import (
    attention_layers,
    cut_rows,
    evened,
    flipped,
    hidden,
    lent,
    pronoun_rows,
    rows_at,
    silenced,
    unread,
    weights_between,
)
from .questions import Questions, articles, donors, margins, nouns, share

RESULTS = DATA / "heads.json"
PASSES = {"": translators.TRAINING["epochs"], ", one pass": 1}  # over the corpus, by the ending of the model's name
EVERY = 8  # heads are changed on every eighth held-out sentence with an ambiguous noun; all else is asked of all
LAYERS = {"": None, ", layer 1": (0,), ", layer 2": (1,)}  # by the ending of the intervention's name
ROWS = ("the noun", "the cue", "the articles", "noun and cue", "all rows")  # lent by the twin sentence
Change = Callable[[MultiHeadAttention, int], AbstractContextManager]


def head_effects(model: Transformer, asked: Questions, change: Change) -> dict[str, list[float]]:
    """Return {layer: share of right decisions with `change` applied to each of its heads in turn}."""
    return {
        name: [_share_inside(change(layer, head), model, asked) for head in range(layer.n_heads)]
        for name, layer in attention_layers(model).items()
    }


def _share_inside(context: AbstractContextManager, model: Transformer, asked: Questions) -> float:
    with context:
        return share(margins(model, asked))


def questions(translator: Translator, pairs: Sequence[Pair]) -> tuple[Questions, Questions]:
    """Return the sentences with an ambiguous noun, and those with "it"."""
    return (
        Questions(translator, [pair for pair in pairs if pair.word not in ("", "it")]),
        Questions(translator, [pair for pair in pairs if pair.word == "it"]),
    )


def measure(translator: Translator, corpus: Corpus) -> dict[str, Any]:
    """Return everything that is stored about one model; shares of right decisions unless named otherwise."""
    with evaluating(translator.model):
        return _measured(translator, corpus)


def _measured(translator: Translator, corpus: Corpus) -> dict[str, Any]:
    model = translator.model
    noun, it = questions(translator, corpus["heldout"])
    some = Questions(translator, noun.pairs[::EVERY])
    result: dict[str, Any] = {"right": {"noun": share(margins(model, noun)), "it": share(margins(model, it))}}
    for name, change in (("head silenced", silenced), ("head evened", evened)):
        result[name] = {"noun": head_effects(model, some, change), "it": head_effects(model, it, change)}
    result |= of_nouns(translator, noun, corpus) | of_pronouns(translator, it, corpus)
    found = entries.of_sentences(translator, entries.short_sentences(corpus["heldout"]))
    result["entries"] = {"noun": found.summary(found.of_noun), "others": found.summary(~found.of_noun)}
    return result


def of_nouns(translator: Translator, noun: Questions, corpus: Corpus) -> dict[str, Any]:
    """Return what decides the sense of an ambiguous noun: entries cut, rows of the memory lent."""
    model, cuts = translator.model, {}
    edges = {
        "noun reads cue": (noun.word, noun.cue),
        "noun reads the word before": (noun.word, noun.word - 1),
        "cue reads noun": (noun.cue, noun.word),
    }
    for name, edge in edges.items():
        for ending, layers in LAYERS.items():
            cuts[name + ending] = _share_inside(cut_rows(model, noun, *edge, layers=layers), model, noun)
    cuts["others read cue"] = _share_inside(unread(model, noun, noun.cue), model, noun)
    between = weights_between(model, noun, noun.word, noun.cue)
    found = decisions(translator, noun, corpus)
    return {
        "cut, noun": cuts,
        "flipped, noun": {name: round(1 - share(margin), 3) for name, margin in found.items() if name in ROWS},
        "by noun": {
            word: {name: share(margin[of_word]) for name, margin in found.items()}
            for word, of_word in by_word(noun).items()
        },
        "weight on the cue": _rounded({name: grid.mean(dim=0) for name, grid in between.items()}),
    }


def decisions(translator: Translator, noun: Questions, corpus: Corpus) -> dict[str, Tensor]:
    """Return the margins [n] with the cue cut from the noun, with it cut from all, and with each of ROWS lent."""
    model, donor = translator.model, donors(translator, noun, corpus["heldout"])
    found = {}
    for name, context in {
        "noun reads cue": cut_rows(model, noun, noun.word, noun.cue),
        "others read cue": unread(model, noun, noun.cue),
    }.items():
        with context:
            found[name] = margins(model, noun)
    at_noun, at_cue = (rows_at(noun, place) for place in (noun.word, noun.cue))
    rows = (at_noun, at_cue, articles(noun), at_noun | at_cue, torch.ones_like(at_noun))
    return found | {name: lent(model, noun, donor, mask) for name, mask in zip(ROWS, rows, strict=True)}


def by_word(asked: Questions) -> dict[str, Tensor]:
    """Return {ambiguous word: which of the sentences asked have it, [n]}."""
    words = [pair.word for pair in asked.pairs]
    return {word: torch.tensor([other == word for other in words]) for word in sorted(set(words))}


def of_pronouns(translator: Translator, it: Questions, corpus: Corpus) -> dict[str, Any]:
    """Return what decides er, sie or es: entries cut, rows of the memory hidden or lent, and the weights."""
    model, (meant, other) = translator.model, nouns(it)
    first, second = torch.minimum(meant, other), torch.maximum(meant, other)
    rows = {"it": it.word, "the noun meant": meant, "the other noun": other, "the adjective": it.cue}
    read = {"first noun": first, "second noun": second, "adjective": it.cue}
    donor, here = donors(translator, it, corpus["heldout"]), torch.arange(len(it))
    of_pronoun = pronoun_rows(translator, it)
    cuts = {
        "it reads the noun meant": cut_rows(model, it, it.word, meant),
        "it reads both nouns and the adjective": cut_rows(model, it, it.word, meant, other, it.cue),
        "others read both nouns and the adjective": unread(model, it, meant, other, it.cue),
    }
    return {
        "cut, it": {name: _share_inside(context, model, it) for name, context in cuts.items()},
        "hidden": {
            name + ending: _share_inside(hidden(model, it, place, layers=layers), model, it)
            for name, place in rows.items()
            for ending, layers in LAYERS.items()
        },
        "flipped, it": {name: flipped(model, it, donor, place) for name, place in rows.items()}
        | {"all rows": flipped(model, it, donor)},
        "weight on the noun meant": _rounded({name: g[here, :, meant].mean(0) for name, g in of_pronoun.items()}),
        "more on the noun meant": _rounded(
            {name: (g[here, :, meant] > g[here, :, other]).double().mean(0) for name, g in of_pronoun.items()}
        ),
        "weights": {
            f"{which} meant": {
                name: _rounded({word: g[here, :, place][noun == meant].mean(0) for word, place in read.items()})
                for name, g in of_pronoun.items()
            }
            for which, noun in (("first", first), ("second", second))
        },
    }


def _rounded(found: dict[str, Tensor]) -> dict[str, list[float]]:
    return {name: [round(value, 3) for value in row.tolist()] for name, row in found.items()}


def run(seeds: Sequence[int]) -> dict[str, Any]:
    """Return what is stored: the measures of the course's translator and of those trained anew with each seed."""
    corpus = load_corpus("context")
    models = {"course": measure(load_trained(), corpus)}
    for ending, epochs in PASSES.items():
        for seed in seeds:
            translator = translators.new_translator(corpus["train"], seed=seed)
            translators.train_translator(translator, corpus["train"], seed=seed, epochs=epochs, progress=False)
            models[f"seed {seed}{ending}"] = measure(translator, corpus)
            print(seed, epochs, models[f"seed {seed}{ending}"]["right"], flush=True)
    return {"every": EVERY, "models": models}


def load_results(path: Path = RESULTS) -> dict[str, Any]:
    """Return what the command of this module wrote: command, date, seeds, every, models."""
    return stored.read(path)


def main() -> None:
    """Run the command line."""
    seeds, path = stored.arguments(__doc__, RESULTS, seeds=(1, 2))
    stored.measure_and_save("heads", seeds, path, run, indent=1)


if __name__ == "__main__":
    main()
