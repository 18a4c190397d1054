"""The course's longer runs on the context corpus: our model beside its baselines, over several seeds.

Writes data/context/results.json and the trained weights of the first seed.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from transformer_lib.baselines import DictionaryBaseline, count_parameters
from transformer_lib.course.lab import translators as lab
from transformer_lib.data import metrics
from transformer_lib.data.corpora import Corpus, Pair, load_corpus
from transformer_lib.decoding.translator import TRAINED, Translator, load_trained
from transformer_lib.fast.eligibility import fastest_path

from .engine import Step, Steps, Study

SHORT_PAIRS = 640  # 20 steps

# What is trained and reported: the name, the kind of model, and how its training differs from TRAINING.
RUNS = {kind: (kind, {}) for kind in lab.MODELS} | {"GRU, 12 passes": ("GRU", {"epochs": 12})}


def evaluate(translate: Callable[[list[str]], list[str]], pairs: Sequence[Pair]) -> dict[str, metrics.Score]:
    """Return exact match, sense accuracy and sense choice (0–1), BLEU and chrF (0–100) of `translate` on `pairs`.

    There is no sense choice if no translation names exactly one sense, as with an untrained model.
    """
    translations = translate([pair.src for pair in pairs])
    scores = {
        "exact match": metrics.bootstrap(metrics.exact_matches(translations, pairs)),
        "sense accuracy": metrics.bootstrap(metrics.sense_matches(translations, pairs)),
        "BLEU": metrics.bleu(translations, pairs),
        "chrF": metrics.chrf(translations, pairs),
    }
    if choices := metrics.sense_choices(translations, pairs):
        scores["sense choice"] = metrics.bootstrap(choices)
    return scores


def chance(pairs: Sequence[Pair]) -> float:
    """Return the expected sense accuracy of one who knows each word's senses and picks one at random."""
    ambiguous = [pair for pair in pairs if pair.expected]
    return sum(1 / (1 + len(set(metrics.other_forms(pair)))) for pair in ambiguous) / len(ambiguous)


def trained(corpus: Corpus, seed: int, *, config: dict[str, Any] | None = None, **training: Any) -> Translator:
    """Return a new translator, trained by the course's recipe but for what `config` and `training` change."""
    translator = lab.new_translator(corpus["train"], seed=seed, **(config or {}))
    lab.train_translator(translator, corpus["train"], seed=seed, progress=False, **training)
    return translator


def each_training(
    measure: Callable[[Translator], Any], seeds: Sequence[int], of_seed: Callable[[int], Translator] | None = None
) -> Steps:
    """Measure the course's translator, and one of each seed, which is trained unless `of_seed` has it."""
    of_seed = of_seed or functools.partial(trained, load_corpus("context"))
    yield Step(("models", "course"), lambda: measure(load_trained()))
    for seed in seeds:
        yield Step(("models", f"seed {seed}"), lambda seed: measure(of_seed(seed)), seed)


def run_seed(corpus: Corpus, kind: str, seed: int, *, progress: bool = False, **changes) -> tuple[Translator, dict]:
    """Train one model and return it with its scores, its loss (every tenth step) and that on the validation split."""
    translator = lab.new_translator(corpus["train"], seed=seed, kind=kind)
    validation = lab.Watched(translator, corpus["validation"])
    history = lab.train_translator(
        translator, corpus["train"], seed=seed, progress=progress, on_step=validation.look, **changes
    )
    translate = functools.partial(translator.translate, path=fastest_path(translator.model))
    scores = {split: scores_of(translate, corpus[split]) for split in lab.TEST_SPLITS}
    curve = {"steps": history.steps[::10], "loss": [round(loss, 4) for loss in history.loss[::10]]}
    parameters = count_parameters(translator.model)
    outcome = {"seed": seed, "scores": scores, "curve": curve, "validation": validation.curve}
    return translator, {**outcome, "parameters": parameters}


def scores_of(translate: Callable[[list[str]], list[str]], pairs: Sequence[Pair]) -> dict[str, list[float]]:
    """Return what `evaluate` does, rounded, and the sense choice of the ambiguous nouns and of "it" apart."""
    numbers = as_numbers(evaluate(translate, pairs))
    for kind, wanted in (("nouns", False), ("it", True)):
        some = [pair for pair in pairs if pair.word and (pair.word == "it") == wanted]
        if choices := metrics.sense_choices(translate([pair.src for pair in some]), some):
            numbers |= as_numbers({f"sense choice, {kind}": metrics.bootstrap(choices)})
    return numbers


def as_numbers(scores: dict[str, metrics.Score]) -> dict[str, list[float]]:
    """Return [mean, low, high] per metric, rounded, for JSON."""
    return {name: [round(value, 4) for value in (s.mean, s.low, s.high)] for name, s in scores.items()}


def short_run(corpus: Corpus, kind: str, **changes) -> list[float]:
    """Return the losses of the first SHORT_PAIRS pairs' single epoch, seed 0: quick to repeat, for a test."""
    pairs = corpus["train"][:SHORT_PAIRS]
    translator = lab.new_translator(pairs, seed=0, kind=kind)
    history = lab.train_translator(translator, pairs, seed=0, epochs=1, warmup_steps=10, progress=False, **changes)
    return [round(loss, 4) for loss in history.loss]


def run_dictionary(corpus: Corpus) -> dict:
    """Return the dictionary baseline's scores; it has no seed."""
    dictionary = DictionaryBaseline(corpus["train"])
    return {"scores": {split: scores_of(dictionary.translate, corpus[split]) for split in lab.TEST_SPLITS}}


def run_one(corpus: Corpus, name: str, seed: int, saving: tuple[Path, str] | None = None) -> dict[str, Any]:
    """Return the outcome of one of RUNS; `saving` says where the model is saved and which command has made it."""
    kind, changes = RUNS[name]
    translator, outcome = run_seed(corpus, kind, seed, **changes)
    if saving:
        translator.save(saving[0], command=saving[1], seed=seed, scores=outcome["scores"])
    return outcome


def steps(seeds: Sequence[int], weights: Path) -> Steps:
    """Run every model with every seed; the first seed's Transformer goes to `weights`."""
    corpus = load_corpus("context")
    for split in lab.TEST_SPLITS:
        yield Step(("chance", split), lambda pairs: round(chance(pairs), 4), corpus[split])
    for kind in lab.MODELS:
        yield Step(("short", kind), short_run, corpus, kind)
    yield Step("dictionary", lambda: [run_dictionary(corpus)])
    for name, seed in itertools.product(RUNS, seeds):
        saving = (weights, STUDY.head(seeds)["command"]) if (name, seed) == ("transformer", seeds[0]) else None
        yield Step((name, {"seed": seed}), run_one, corpus, name, seed, saving)


STUDY = Study(
    "translators",
    __doc__,
    steps,
    "context/results.json",
    by_seed=True,
    constants={"threads": 1},
    options={"weights": {"type": Path, "default": TRAINED["context"]}},
    says_seeds=False,
    indent=1,
)


if __name__ == "__main__":
    STUDY.command()
