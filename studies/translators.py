"""The course's longer runs on the context corpus: our model beside its baselines, over several seeds.

`python -m studies.translators --seeds 0 1 2` writes data/context/results.json and the trained
weights of the first seed. The notebooks load and plot what it wrote.
"""

from __future__ import annotations

import argparse
import datetime
import functools
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from transformer_lib._streams import run_command
from transformer_lib.baselines import DictionaryBaseline, count_parameters
from transformer_lib.course.lab.translators import (
    MODELS,
    RESULTS,
    TEST_SPLITS,
    Watched,
    new_translator,
    train_translator,
)
from transformer_lib.data.corpora import Corpus, Pair, load_corpus
from transformer_lib.data.metrics import (
    Score,
    bleu,
    bootstrap,
    chrf,
    exact_matches,
    other_forms,
    sense_choices,
    sense_matches,
)
from transformer_lib.decoding.translator import TRAINED, Translator
from transformer_lib.fast.eligibility import fastest_path

from . import stored

SHORT_PAIRS = 640  # 20 steps

# What is trained and reported: the name, the kind of model, and how its training differs from TRAINING.
RUNS = {kind: (kind, {}) for kind in MODELS} | {"GRU, 12 passes": ("GRU", {"epochs": 12})}


def evaluate(translate: Callable[[list[str]], list[str]], pairs: Sequence[Pair]) -> dict[str, Score]:
    """Return exact match, sense accuracy and sense choice (0–1), BLEU and chrF (0–100) of `translate` on `pairs`.

    There is no sense choice if no translation names exactly one sense, as with an untrained model.
    """
    translations = translate([pair.src for pair in pairs])
    scores = {
        "exact match": bootstrap(exact_matches(translations, pairs)),
        "sense accuracy": bootstrap(sense_matches(translations, pairs)),
        "BLEU": bleu(translations, pairs),
        "chrF": chrf(translations, pairs),
    }
    if choices := sense_choices(translations, pairs):
        scores["sense choice"] = bootstrap(choices)
    return scores


def chance(pairs: Sequence[Pair]) -> float:
    """Return the expected sense accuracy of one who knows each word's senses and picks one at random."""
    ambiguous = [pair for pair in pairs if pair.expected]
    return sum(1 / (1 + len(set(other_forms(pair)))) for pair in ambiguous) / len(ambiguous)


def run_seed(corpus: Corpus, kind: str, seed: int, *, progress: bool = False, **changes) -> tuple[Translator, dict]:
    """Train one model and return it with its scores, its loss (every tenth step) and that on the validation split."""
    translator = new_translator(corpus["train"], seed=seed, kind=kind)
    validation = Watched(translator, corpus["validation"])
    history = train_translator(
        translator, corpus["train"], seed=seed, progress=progress, on_step=validation.look, **changes
    )
    translate = functools.partial(translator.translate, path=fastest_path(translator.model))
    scores = {split: scores_of(translate, corpus[split]) for split in TEST_SPLITS}
    curve = {"steps": history.steps[::10], "loss": [round(loss, 4) for loss in history.loss[::10]]}
    parameters = count_parameters(translator.model)
    outcome = {"seed": seed, "scores": scores, "curve": curve, "validation": validation.curve}
    return translator, {**outcome, "parameters": parameters}


def scores_of(translate: Callable[[list[str]], list[str]], pairs: Sequence[Pair]) -> dict[str, list[float]]:
    """Return what `evaluate` does, rounded, and the sense choice of the ambiguous nouns and of "it" apart."""
    found = as_numbers(evaluate(translate, pairs))
    for kind, wanted in (("nouns", False), ("it", True)):
        some = [pair for pair in pairs if pair.word and (pair.word == "it") == wanted]
        if choices := sense_choices(translate([pair.src for pair in some]), some):
            found |= as_numbers({f"sense choice, {kind}": bootstrap(choices)})
    return found


def as_numbers(scores: dict[str, Score]) -> dict[str, list[float]]:
    """Return [mean, low, high] per metric, rounded, for JSON."""
    return {name: [round(value, 4) for value in (s.mean, s.low, s.high)] for name, s in scores.items()}


def short_run(corpus: Corpus, kind: str, **changes) -> list[float]:
    """Return the losses of the first SHORT_PAIRS pairs' single epoch, seed 0: quick to repeat, for a test."""
    pairs = corpus["train"][:SHORT_PAIRS]
    translator = new_translator(pairs, seed=0, kind=kind)
    history = train_translator(translator, pairs, seed=0, epochs=1, warmup_steps=10, progress=False, **changes)
    return [round(loss, 4) for loss in history.loss]


def run_dictionary(corpus: Corpus) -> dict:
    """Return the dictionary baseline's scores; it has no seed."""
    dictionary = DictionaryBaseline(corpus["train"])
    return {"scores": {split: scores_of(dictionary.translate, corpus[split]) for split in TEST_SPLITS}}


def run(seeds: Sequence[int], results: Path = RESULTS, weights: Path | None = None) -> dict:
    """Run every model with every seed, write `results` after each, and the first seed's Transformer to `weights`."""
    corpus = load_corpus("context")
    content = {
        "command": stored.command("translators", seeds),
        "date": datetime.date.today().isoformat(),
        "threads": torch.get_num_threads(),
        "chance": {split: round(chance(corpus[split]), 4) for split in TEST_SPLITS},
        "short": {kind: short_run(corpus, kind) for kind in MODELS},
        "dictionary": [run_dictionary(corpus)],
    }
    for name, (kind, changes) in RUNS.items():
        content[name] = []
        for seed in seeds:
            translator, outcome = run_seed(corpus, kind, seed, **changes)
            content[name].append(outcome)
            stored.save(results, content, indent=1)
            print(name, seed, {s: outcome["scores"][s]["exact match"][0] for s in TEST_SPLITS}, flush=True)
            if weights is not None and name == "transformer" and seed == seeds[0]:
                translator.save(weights, command=content["command"], seed=seed, scores=outcome["scores"])
    return content


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--weights", type=Path, default=TRAINED["context"])
    parser.add_argument("--threads", type=int, default=1, help="results depend on it in the last digits")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    run(arguments.seeds, arguments.results, arguments.weights)


if __name__ == "__main__":
    run_command(main)
