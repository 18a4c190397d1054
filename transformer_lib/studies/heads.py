"""Which heads, entries and memory rows decide a translation? Five translators, the same interventions (notebook 15).

`python -m transformer_lib.studies.heads` trains a translator for each seed as the course does, and one with a single
pass over the corpus; measures them and the one that comes with the course, and writes data/heads.json.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .. import experiments
from ..corpus import DATA, Corpus, load_corpus
from ..multihead import MultiHeadAttention
from ..transformer import Transformer
from ..translator import Translator, load_trained
from . import stored
from .interventions import (
    Questions,
    attention_layers,
    cut,
    donors,
    flipped,
    hidden,
    margins,
    nouns,
    pronoun_rows,
    share,
    silenced,
    weights_between,
)

RESULTS = DATA / "heads.json"
PASSES = {"": experiments.TRAINING["epochs"], ", one pass": 1}  # over the corpus, by the ending of the model's name
EVERY = 8  # every eighth held-out sentence with an ambiguous noun; the "it" sentences are all used


def head_effects(model: Transformer, asked: Questions) -> dict[str, list[float]]:
    """Return {layer: share of right decisions with each of its heads silenced in turn}."""
    return {
        name: [_share_silenced(model, asked, layer, head) for head in range(layer.n_heads)]
        for name, layer in attention_layers(model).items()
    }


def _share_silenced(model: Transformer, asked: Questions, layer: MultiHeadAttention, head: int) -> float:
    with silenced(layer, head):
        return share(margins(model, asked))


def measure(translator: Translator, corpus: Corpus) -> dict[str, Any]:
    """Return everything that is stored about one model; shares of right decisions unless named otherwise."""
    model = translator.model.eval()
    noun = Questions(translator, [pair for pair in corpus["heldout"] if pair.word not in ("", "it")][::EVERY])
    it = Questions(translator, [pair for pair in corpus["heldout"] if pair.word == "it"])
    meant, other = nouns(it)
    before = noun.word - 1
    result: dict[str, Any] = {"right": {"noun": share(margins(model, noun)), "it": share(margins(model, it))}}
    result["head silenced"] = {"noun": head_effects(model, noun), "it": head_effects(model, it)}
    cuts = {
        "noun reads cue": (noun, noun.word, noun.cue), "noun reads the word before": (noun, noun.word, before),
        "cue reads noun": (noun, noun.cue, noun.word), "it reads the noun meant": (it, it.word, meant),
        "it reads both nouns and the adjective": (it, it.word, meant, other, it.cue),
    }
    result["cut"] = {name: _share_inside(cut, model, *edge) for name, edge in cuts.items()}
    rows = {"it": it.word, "the noun meant": meant, "the other noun": other, "the adjective": it.cue}
    result["hidden"] = {name: _share_inside(hidden, model, it, place) for name, place in rows.items()}
    donor = donors(translator, it, corpus["train"])
    result["flipped, it"] = {name: flipped(model, it, donor, place) for name, place in rows.items()}
    result["flipped, it"]["all rows"] = flipped(model, it, donor)
    donor, rows = donors(translator, noun, corpus["train"]), {"the noun": noun.word, "the cue": noun.cue}
    result["flipped, noun"] = {name: flipped(model, noun, donor, place) for name, place in rows.items()}
    result["flipped, noun"]["all rows"] = flipped(model, noun, donor)
    here = torch.arange(len(it))
    of_pronoun = pronoun_rows(translator, it)
    result["weight on the noun meant"] = _rounded({name: g[here, :, meant].mean(0) for name, g in of_pronoun.items()})
    result["more on the noun meant"] = _rounded({
        name: (g[here, :, meant] > g[here, :, other]).double().mean(0) for name, g in of_pronoun.items()
    })
    between = weights_between(model, noun, noun.word, noun.cue)
    result["weight on the cue"] = _rounded({name: grid.mean(dim=0) for name, grid in between.items()})
    return result


def _rounded(found: dict[str, Tensor]) -> dict[str, list[float]]:
    return {name: [round(value, 3) for value in row.tolist()] for name, row in found.items()}


def _share_inside(change: Any, model: Transformer, asked: Questions, *places: Tensor) -> float:
    with change(model, asked, *places):
        return share(margins(model, asked))


def run(seeds: Sequence[int]) -> dict[str, Any]:
    """Return what is stored: the measures of the course's translator and of those trained anew with each seed."""
    corpus = load_corpus("context")
    models = {"course": measure(load_trained(), corpus)}
    for ending, epochs in PASSES.items():
        for seed in seeds:
            translator = experiments.new_translator(corpus["train"], seed=seed)
            experiments.train_translator(translator, corpus["train"], seed=seed, epochs=epochs, progress=False)
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
