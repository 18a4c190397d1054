"""The ladder: the translator with only the parts learned so far, from notebook 02 to notebook 14.

`python -m studies.ladder` chooses a learning rate for every rung by two sweeps, trains each rung
with every seed, and writes data/ladder.json after each run; what the file already has is not run again. All is measured
on the validation split: no test split is looked at here. `tl.course.ladder` shows the results; `run_rung` trains one
rung for as many steps as one cares to wait.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from operator import itemgetter
from pathlib import Path
from statistics import mean
from typing import Any

import torch

from transformer_lib._files import DATA
from transformer_lib._streams import run_command
from transformer_lib._validate import check_int
from transformer_lib.baselines import DictionaryBaseline
from transformer_lib.course.lab import translators
from transformer_lib.course.lab.ladder import CONTROLS, KINDS, ORDER, PASSES, RESULTS, RUNGS, find, load_results
from transformer_lib.data.corpora import Corpus, Pair, load_corpus
from transformer_lib.data.metrics import exact_matches, sense_matches
from transformer_lib.decoding.translator import Translator
from transformer_lib.fast.eligibility import fastest_path
from transformer_lib.training.evaluation import loss_per_token
from transformer_lib.training.loop import train
from transformer_lib.training.options import History

from . import stored
from . import translators as translators_study
from .ladder_models import Reader

RATES = (3e-4, 1e-3, 3e-3, 1e-2)  # the learning rates that every rung tries for one pass, with the seed 100
HIGHER = (3e-2, 1e-1)  # tried, one after the other, only where the highest so far is the best
SWEPT = ((1, 100), (4, 0))  # passes and seed: of all rates, then of the best and the next lower one
TRAINED = tuple(rung.id for rung in (*RUNGS, *CONTROLS) if not rung.trained_as)
SWEPT_ONCE = tuple(rung.id for rung in ORDER)


def new_translator(corpus: Corpus, name: str, seed: int) -> Translator:
    """Return the untrained translator of a rung, with the vocabularies of the corpus."""
    rung = find(name)
    # Nothing drops out on any rung, so that a rung differs from the one before in its own part alone.
    found = translators.new_translator(corpus["train"], seed=seed, n_layers=rung.n_layers, dropout=0.0)
    if rung.parts is not None:
        torch.manual_seed(seed)
        model = Reader(found.model.config, rung.parts)
        found = Translator(model, found.src_tokenizer, found.tgt_tokenizer)
    rung.change(found.model)
    return found


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
        """Measure after so many passes, if it is time."""
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
    names = [name, *(rung.id for rung in RUNGS if rung.trained_as == name)]
    outcome: dict[str, dict[str, Any]] = {each: {"seed": seed, "scores": {}, "curves": {}} for each in names}
    on_the_way = find(name).training["schedule"] == "constant"
    for budgets in [PASSES] if on_the_way else [(passes,) for passes in PASSES]:
        translator = new_translator(corpus, name, seed)
        climbing = Climb(translator, corpus["validation"], names, budgets)
        climb(translator, name, corpus["train"], seed, epochs=budgets[-1], on_epoch=climbing.look, **options)
        for each, scores in climbing.scores.items():
            outcome[each]["scores"] |= {str(passes): found for passes, found in scores.items()}
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
    found = {float(rate): loss for rate, loss in losses.items() if loss is not None}
    return sorted(found, key=found.__getitem__)


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


def run(seeds: Sequence[int], path: Path = RESULTS) -> dict[str, Any]:
    """Run what `path` does not have yet, and write it after each run."""
    corpus = load_corpus("context")
    content: dict[str, Any] = load_results(path) if path.exists() else {"short": {}, "sweep": {}, "runs": {}}
    content |= {
        "command": stored.command("ladder", seeds),
        "date": date.today().isoformat(),
        "seeds": list(seeds),
        "threads": torch.get_num_threads(),
        "passes": list(PASSES),
        "steps": -(-len(corpus["train"]) // translators.BATCH_SIZE),
    }
    content["chance"] = {kind: chance(corpus["validation"], kind) for kind in KINDS}
    if "dictionary" not in content:
        content["dictionary"] = scores_of(DictionaryBaseline(corpus["train"]).translate, corpus["validation"])
    parts = (_short_runs(corpus, content), _sweep(corpus, content))
    parts += (_climb_all(corpus, seeds, content), _order(corpus, seeds, content))
    for said in itertools.chain(*parts):
        stored.save(path, content)
        print(*said, flush=True)
    stored.save(path, content)
    return content


def _short_runs(corpus: Corpus, content: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Add the short runs that `content` lacks; yield what is to be said of each."""
    for name in (*TRAINED, *SWEPT_ONCE):
        if name not in content["short"]:
            content["short"][name] = short_run(corpus, name)
            yield "short", name, content["short"][name][-1]


def _sweep(corpus: Corpus, content: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Add the sweeps of the learning rate that `content` lacks; yield what is to be said of each."""
    for name in (*TRAINED, *SWEPT_ONCE):
        if "learning_rate" in find(name).training:
            continue
        sweeps = content["sweep"].setdefault(name, {})
        times = 1 if name in SWEPT_ONCE else 2
        for (passes, seed), rates in list(zip(SWEPT, (_first_rates, _best_and_lower), strict=True))[:times]:
            losses = sweeps.setdefault(str(passes), {})
            for rate in rates(sweeps[str(SWEPT[0][0])]):
                if f"{rate:g}" not in losses:
                    losses[f"{rate:g}"] = sweep_loss(corpus, name, rate, passes, seed)
                    yield "sweep", name, passes, rate, losses[f"{rate:g}"]


def _first_rates(losses: dict[str, float | None]) -> Iterator[float]:
    """Yield RATES, and then higher ones as long as the highest in `losses` is the best."""
    yield from RATES
    for lower, rate in itertools.pairwise((RATES[-1], *HIGHER)):
        if best_rates(losses)[0] == lower:
            yield rate


def _best_and_lower(losses: dict[str, float | None]) -> list[float]:
    """Return the best rate and the next lower one, to be run for longer: one pass flatters high rates."""
    tried = sorted(map(float, losses))
    best = tried.index(best_rates(losses)[0])
    return tried[max(0, best - 1) : best + 1]


def _climb_all(corpus: Corpus, seeds: Sequence[int], content: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Add the runs that `content` lacks, the controls last: what is there if the clock runs out is whole."""
    controls = {rung.id for rung in CONTROLS}
    for control, seed, name in itertools.product((False, True), seeds, TRAINED):
        rate = chosen_rate(content, name)
        done = [
            (one["seed"], one["rate"])
            for one in content["runs"].get(name, [])
            if all(str(passes) in one["scores"] for passes in PASSES)
        ]
        if (name in controls) != control or (seed, rate) in done:
            continue
        outcomes = run_seed(corpus, name, seed, learning_rate=rate)
        for each, outcome in outcomes.items():
            others = [one for one in content["runs"].get(each, []) if one["seed"] != seed]
            content["runs"][each] = sorted([*others, {"rate": rate, **outcome}], key=itemgetter("seed"))
        yield from ((each, seed, outcome["scores"]) for each, outcome in outcomes.items())


def _order(corpus: Corpus, seeds: Sequence[int], content: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Add the validation losses of ORDER after one pass, seed by seed, that `content` lacks."""
    for seed, name in itertools.product(seeds, SWEPT_ONCE):
        losses = content.setdefault("order", {}).setdefault(name, {})
        if str(seed) not in losses:
            losses[str(seed)] = sweep_loss(corpus, name, chosen_rate(content, name), 1, seed)
            yield name, seed, losses[str(seed)]


def passes_table(content: dict[str, Any]) -> str:
    """Return, as Markdown, the mean share exactly right of every rung after each number of passes."""
    lines = [f"| rung | {' | '.join(f'{passes} passes' for passes in PASSES)} |", "|---|" + "---:|" * len(PASSES)]
    for rung in RUNGS:
        runs = [run["scores"] for run in content["runs"][rung.id]]
        cells = (f"{mean(scores[str(passes)]['exact match'] for scores in runs):.3f}" for passes in PASSES)
        lines.append(f"| {rung.id} {rung.part} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Run the command line."""
    seeds, path = stored.arguments(__doc__, RESULTS)
    content = run(seeds, path)
    if path == RESULTS:
        stored.write_between(DATA / "README.md", "ladder", passes_table(content))


if __name__ == "__main__":
    run_command(main)
