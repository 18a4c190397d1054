"""The ladder: the translator with only the parts learned so far, from notebook 02 to notebook 14.

Two sweeps choose the learning rate of each rung. All is measured on the validation split: no test split is looked at
here. `tl.course.ladder` shows the results; `run_rung` trains one rung for a few steps.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Generator, Sequence
from functools import lru_cache
from statistics import mean
from typing import Any

import torch

from transformer_lib._files import DATA
from transformer_lib._validate import check_int
from transformer_lib.baselines import DictionaryBaseline
from transformer_lib.course.lab import translators
from transformer_lib.course.lab.ladder import CONTROLS, KINDS, ORDER, PASSES, RUNGS, find, load_results
from transformer_lib.data.corpora import Corpus, Pair, load_corpus
from transformer_lib.data.metrics import exact_matches, sense_matches
from transformer_lib.decoding.translator import Translator
from transformer_lib.fast.eligibility import fastest_path
from transformer_lib.training.evaluation import loss_per_token
from transformer_lib.training.loop import train
from transformer_lib.training.options import History

from . import translators as translators_study
from .engine import Step, Steps, Study
from .ladder_models import Reader
from .pages import write_between

RATES = (3e-4, 1e-3, 3e-3, 1e-2)  # the learning rates that every rung tries for one pass, with the seed 100
HIGHER = (3e-2, 1e-1)  # tried, one after the other, only where the highest so far is the best
SWEPT = ((1, 100), (4, 0))  # passes and seed: of all rates, then of the best and the next lower one
TRAINED = tuple(rung.id for rung in (*RUNGS, *CONTROLS) if not rung.trained_as)
SWEPT_ONCE = tuple(rung.id for rung in ORDER)


def new_translator(corpus: Corpus, name: str, seed: int) -> Translator:
    """Return the untrained translator of a rung, with the vocabularies of the corpus."""
    rung = find(name)
    # Nothing drops out on any rung, so that a rung differs from the one before in its own part alone.
    translator = translators.new_translator(corpus["train"], seed=seed, n_layers=rung.n_layers, dropout=0.0)
    if rung.parts is not None:
        torch.manual_seed(seed)
        model = Reader(translator.model.config, rung.parts)
        translator = Translator(model, translator.src_tokenizer, translator.tgt_tokenizer)
    rung.change(translator.model)
    return translator


def climb(translator: Translator, name: str, pairs: Sequence[Pair], seed: int, **options: Any) -> History:
    """Train the translator of a rung as that rung is trained; `options` of `train` come before its own.

    Without a learning rate among them it is the one that the study chose.
    """
    path = fastest_path(translator.model)
    chosen = {**find(name).training, "progress": False, "path": path, **options}
    if "learning_rate" not in chosen:
        chosen["learning_rate"] = chosen_rate(load_results(), name)
    return train(translator.model, translator.batches(pairs, translators.BATCH_SIZE, seed=seed), **chosen)


def loss_of(translator: Translator, pairs: Sequence[Pair]) -> float:
    """Return the cross-entropy per token without smoothing, in nats, the right earlier words given."""
    path = fastest_path(translator.model)
    return round(loss_per_token(translator.model, translator.batches(pairs, 64), path=path), 4)


def scores_of(translate: Callable[[list[str]], list[str]], pairs: Sequence[Pair]) -> dict[str, float]:
    """Return the share of translations that are exactly right, and of nouns and of "it" in the right sense."""
    said = translate([pair.src for pair in pairs])
    scores = {"exact match": mean(map(float, exact_matches(said, pairs)))}
    for kind in KINDS:
        some = [(text, pair) for text, pair in zip(said, pairs, strict=True) if kind_of(pair) == kind]
        right = sense_matches([text for text, _ in some], [pair for _, pair in some])
        scores[kind] = mean(map(float, right)) if right else math.nan
    return {measure: round(score, 4) for measure, score in scores.items()}


def kind_of(pair: Pair) -> str:
    """Return which of KINDS the ambiguous word of a pair is; "" if there is none."""
    return {"": "", "it": "it"}.get(pair.word, "nouns")


def chance(pairs: Sequence[Pair], kind: str) -> float:
    """Return the share in the right sense of one who knows each word's senses and picks one at random."""
    some = [pair for pair in pairs if kind_of(pair) == kind]
    return round(translators_study.chance(some), 4) if some else math.nan


def measure(translator: Translator, pairs: Sequence[Pair], *, beam_size: int = 1) -> dict[str, float]:
    """Return the four MEASURES of a translator on `pairs`."""
    path = fastest_path(translator.model)

    def translate(texts: list[str]) -> list[str]:
        return translator.translate(texts, beam_size=beam_size, path=path)

    return {"loss": loss_of(translator, pairs), **scores_of(translate, pairs)}


class Climb:
    """What is measured of one rung while it is trained: the loss after 1, 2, 4, 8, … passes, and all after each budget.

    Args:
        names: of the rungs that this translator is: the trained one, and those that only decode it otherwise.
        budgets: passes after which all is measured.
    """

    def __init__(
        self, translator: Translator, pairs: Sequence[Pair], names: Sequence[str], budgets: Sequence[int]
    ) -> None:
        self.translator, self.pairs, self.budgets = translator, pairs, budgets
        self.curve: dict[int, float] = {}
        self.scores: dict[str, dict[int, dict[str, float]]] = {name: {} for name in names}

    def look(self, passes: int) -> None:
        """Measure after this number of passes, if it is one of those."""
        if passes.bit_count() == 1:  # a power of two
            self.curve[passes] = loss_of(self.translator, self.pairs)
        if passes in self.budgets:
            for name, scores in self.scores.items():
                scores[passes] = measure(self.translator, self.pairs, beam_size=find(name).beam_size)


def run_seed(corpus: Corpus, name: str, seed: int, **options: Any) -> dict[str, dict[str, Any]]:
    """Train one rung with one seed; return what was measured for it and for the rungs that only decode it otherwise.

    At a constant rate the smaller budgets are met on the way to the largest; a schedule that ends with the budget is
    run once for each.
    """
    names = decoded_from(name)
    outcome: dict[str, dict[str, Any]] = {each: {"seed": seed, "scores": {}, "curves": {}} for each in names}
    on_the_way = find(name).training["schedule"] == "constant"
    for budgets in [PASSES] if on_the_way else [(passes,) for passes in PASSES]:
        translator = new_translator(corpus, name, seed)
        climbing = Climb(translator, corpus["validation"], names, budgets)
        climb(translator, name, corpus["train"], seed, epochs=budgets[-1], on_epoch=climbing.look, **options)
        for each, scores in climbing.scores.items():
            outcome[each]["scores"] |= {str(passes): measured for passes, measured in scores.items()}
            outcome[each]["curves"][str(budgets[-1])] = {str(passes): loss for passes, loss in climbing.curve.items()}
    return outcome


def sweep_loss(corpus: Corpus, name: str, rate: float, passes: int, seed: int) -> float | None:
    """Return the validation loss at the end of a run at this learning rate; None if it is not a number."""
    translator = new_translator(corpus, name, seed)
    climb(translator, name, corpus["train"], seed, learning_rate=rate, epochs=passes)
    loss = loss_of(translator, corpus["validation"])
    return loss if math.isfinite(loss) else None


def best_rates(losses: dict[str, float | None]) -> list[float]:
    """Return the learning rates of a sweep, {rate: loss}, the lowest loss first; those without one are left out."""
    loss_of_rate = {float(rate): loss for rate, loss in losses.items() if loss is not None}
    return sorted(loss_of_rate, key=loss_of_rate.__getitem__)


def chosen_rate(content: dict[str, Any], name: str) -> float:
    """Return the learning rate of a rung: that of its recipe, or of the lowest loss in the longer stored sweep."""
    training = find(name).training
    if "learning_rate" in training:
        return float(training["learning_rate"])
    sweeps = content["sweep"][name]
    return best_rates(sweeps[max(sweeps, key=int)])[0]


def short_run(corpus: Corpus, name: str) -> list[float]:
    """Return the losses of the first `translators_study.SHORT_PAIRS` pairs' single epoch, seed 0: quick to repeat."""
    translator = new_translator(corpus, name, 0)
    options = {"learning_rate": 1e-3, "warmup_steps": 10} if name == "13" else {"learning_rate": 1e-3}
    history = climb(translator, name, corpus["train"][: translators_study.SHORT_PAIRS], 0, **options)
    return [round(loss, 4) for loss in history.loss]


def run_rung(name: str, *, steps: int = 200, seed: int = 0) -> Translator:
    """Train the rung `name` ("02" to "14", or one of CONTROLS) for some steps, and return the translator.

    It learns from `steps` batches of the training pairs, drawn with `seed`, at the rate that the study chose.
    `measure(translator, pairs)` says how well it does.

    Raises:
        ValueError: there is no such rung; steps is not positive, or more than a pass over the corpus has.
    """
    corpus, trained = load_corpus("context"), find(name).trained_as or find(name).id
    most = len(corpus["train"]) // translators.BATCH_SIZE
    if check_int("steps", steps) > most:
        raise ValueError(f"steps must be at most {most}, one pass over the corpus, got {steps}")
    pairs = random.Random(seed).sample(list(corpus["train"]), steps * translators.BATCH_SIZE)
    translator = new_translator(corpus, trained, seed)
    warmup = min(find(trained).training["warmup_steps"], 1 + steps // 4)  # a short run, a short warm-up
    climb(translator, trained, pairs, seed, progress=True, warmup_steps=warmup)
    return translator


def steps(seeds: Sequence[int]) -> Steps:
    """Choose the rates, then train every rung, the controls last: what is there if the clock runs out is whole."""
    corpus = load_corpus("context")
    validation, swept = corpus["validation"], (*TRAINED, *SWEPT_ONCE)
    yield Step("steps", lambda: -(-len(corpus["train"]) // translators.BATCH_SIZE))
    yield Step("chance", lambda: {kind: chance(validation, kind) for kind in KINDS})
    yield Step("dictionary", lambda: scores_of(DictionaryBaseline(corpus["train"]).translate, validation))
    for name in swept:
        yield Step(("short", name), short_run, corpus, name)
    rates = {}
    for name in swept:
        rates[name] = yield from sweep(corpus, name)
    controls = {rung.id for rung in CONTROLS}
    for control, seed, name in itertools.product((False, True), seeds, TRAINED):
        for each in decoded_from(name) if (name in controls) == control else ():
            yield Step(("runs", each, {"seed": seed}), climbed, name, seed, rates[name], each)
    for seed, name in itertools.product(seeds, SWEPT_ONCE):
        yield Step(("order", name, str(seed)), sweep_loss, corpus, name, rates[name], 1, seed)


def sweep(corpus: Corpus, name: str) -> Generator[Step, Any, float]:
    """Try the learning rates of a rung that has none of its own, and return the best.

    All of RATES are run, and higher ones as long as the highest is the best; then, for longer, the best rate and the
    next lower one: one pass flatters high rates.
    """
    if "learning_rate" in find(name).training:
        return float(find(name).training["learning_rate"])
    (short, long), losses = SWEPT, {}
    for lower, rate in itertools.pairwise((None, *RATES, *HIGHER)):
        if rate in RATES or best_rates(losses)[0] == lower:
            losses[f"{rate:g}"] = yield _swept(corpus, name, rate, *short)
    best = best_rates(losses)[0]
    if name in SWEPT_ONCE:
        return best
    tried = sorted(map(float, losses))
    last, at = {}, tried.index(best)
    for rate in tried[max(0, at - 1) : at + 1]:
        last[f"{rate:g}"] = yield _swept(corpus, name, rate, *long)
    return best_rates(last)[0]


def _swept(corpus: Corpus, name: str, rate: float, passes: int, seed: int) -> Step:
    return Step(("sweep", name, str(passes), f"{rate:g}"), sweep_loss, corpus, name, rate, passes, seed)


def decoded_from(name: str) -> list[str]:
    """Return the rungs that the trained translator of a rung is: that rung, and those that only decode it otherwise."""
    return [name, *(rung.id for rung in RUNGS if rung.trained_as == name)]


def climbed(name: str, seed: int, rate: float, each: str) -> dict[str, Any]:
    """Train a rung, and return what was measured of `each`, one of `decoded_from`."""
    return {"rate": rate, **_last_seed(name, seed, rate)[each]}


@lru_cache(maxsize=1)
def _last_seed(name: str, seed: int, rate: float) -> dict[str, dict[str, Any]]:
    return run_seed(load_corpus("context"), name, seed, learning_rate=rate)


def passes_table(content: dict[str, Any]) -> str:
    """Return, as Markdown, the mean share exactly right of every rung after each number of passes."""
    lines = [f"| rung | {' | '.join(f'{passes} passes' for passes in PASSES)} |", "|---|" + "---:|" * len(PASSES)]
    for rung in RUNGS:
        runs = [run["scores"] for run in content["runs"][rung.id]]
        cells = (f"{mean(scores[str(passes)]['exact match'] for scores in runs):.3f}" for passes in PASSES)
        lines.append(f"| {rung.id} {rung.part} | {' | '.join(cells)} |")
    return "\n".join(lines)


def write_pages(content: dict[str, Any]) -> None:
    """Write the table into data/README.md."""
    write_between(DATA / "README.md", "ladder", passes_table(content))


GIVEN = {"threads": 1, "passes": list(PASSES)}
STUDY = Study("ladder", __doc__, steps, by_seed=True, constants=GIVEN, write_pages=write_pages)


if __name__ == "__main__":
    STUDY.command()
