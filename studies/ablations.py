"""What is each part of the Transformer for? Trained without it, or taken out of the trained model (notebook 13).

`python -m studies.ablations` trains every variant with every seed, with one pass over the corpus
and with four, and writes data/ablations.json after each run; what the file already has is not run again. `--passes 4`
runs only those.
"""

from __future__ import annotations

import copy
import functools
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import torch

from transformer_lib._streams import run_command
from transformer_lib.course.lab import translators
from transformer_lib.course.lab.ablations import PASSES, RESULTS, SAMPLES, load_results
from transformer_lib.course.lab.parts import without_residual
from transformer_lib.data.corpora import Corpus, Pair, load_corpus
from transformer_lib.data.metrics import exact_matches, sense_matches
from transformer_lib.decoding.sampling import greedy_decode
from transformer_lib.decoding.translator import Translator, load_trained
from transformer_lib.fast.eligibility import fastest_path
from transformer_lib.model.transformer import Transformer
from transformer_lib.training.evaluation import loss_per_token
from transformer_lib.training.options import History

from . import stored, warmup
from .parts import (
    TEST_PARTS,
    without_embedding_scale,
    without_embedding_scale_but_unit_tables,
    without_feed_forward,
    without_layer_norm,
    without_mask,
    without_scaling,
    without_scaling_but_small_queries,
)

EVERY = 4  # every fourth sentence of a split is tested
SAMPLED = (1, 32, 64, 128, 192, 256, 384, 512)  # steps at which the samples are translated, beside the last
SHORT_PAIRS = 640  # 20 steps
PARTS_OF_RESULTS = ("short", "trained", "off at test", "warm-up", "no warm-up", "trained longer")


@dataclass(frozen=True)
class Variant:
    """How one run differs from the baseline: fields of the configuration, a change to the model, training options."""

    config: dict[str, Any] = field(default_factory=dict)
    change: Callable[[Transformer], None] = lambda model: None
    training: dict[str, Any] = field(default_factory=dict)


VARIANTS = {
    "baseline": Variant(),
    "no positions": Variant(config={"position": "none"}),
    "no causal mask": Variant(change=without_mask),
    "no residual": Variant(change=without_residual),
    "one head": Variant(config={"n_heads": 1}),
    "no scaling": Variant(change=without_scaling),
    "no scaling, small queries": Variant(change=without_scaling_but_small_queries),
    "no layer norm": Variant(change=without_layer_norm),
    "no feed-forward": Variant(change=without_feed_forward),
    "no embedding scale": Variant(change=without_embedding_scale),
    "no embedding scale, unit tables": Variant(change=without_embedding_scale_but_unit_tables),
    "no label smoothing": Variant(training={"label_smoothing": 0.0}),
}


def new_variant(corpus: Corpus, name: str, seed: int) -> Translator:
    """Return an untrained translator of the variant `name`; parts that both have begin with the baseline's weights."""
    if name not in VARIANTS:
        raise ValueError(f"name must be one of {', '.join(map(repr, VARIANTS))}, got {name!r}")
    translator = translators.new_translator(corpus["train"], seed=seed, **VARIANTS[name].config)
    VARIANTS[name].change(translator.model)
    return translator


def train_variant(translator: Translator, name: str, pairs: Sequence[Pair], seed: int, **options) -> History:
    """Train as the course does, but for what the variant `name` changes in it."""
    chosen = {"epochs": PASSES[0], "progress": False, **VARIANTS[name].training, **options}
    return translators.train_translator(translator, pairs, seed=seed, **chosen)


def teacher_forced_loss(translator: Translator, pairs: Sequence[Pair]) -> float:
    """Return the mean cross-entropy per target token without smoothing, in nats, the right earlier words given."""
    return loss_per_token(translator.model, translator.batches(pairs, 64))


def scores(translate: Callable[[list[str]], list[str]], corpus: Corpus) -> dict[str, dict[str, float]]:
    """Return exact match and sense accuracy on every fourth held-out and compositional sentence."""
    result = {}
    for split in ("heldout", "compositional"):
        pairs = corpus[split][::EVERY]
        said = translate([pair.src for pair in pairs])
        exact, sense = exact_matches(said, pairs), sense_matches(said, pairs)
        result[split] = {
            "exact match": round(statistics.mean(map(float, exact)), 4),
            "sense accuracy": round(statistics.mean(map(float, sense)), 4),
        }
    return result


def run_variant(corpus: Corpus, name: str, seed: int, passes: int = PASSES[0]) -> tuple[Translator, dict]:
    """Train one variant and return it with its curve, its samples and its scores."""
    translator, samples = new_variant(corpus, name, seed), {}
    batches = -(-len(corpus["train"]) // translators.BATCH_SIZE)

    def sample(step: int, loss: float) -> None:
        if step in (*SAMPLED, PASSES[0] * batches):
            samples[step] = translator.translate(SAMPLES)

    looking = {"on_step": sample} if passes == PASSES[0] else {}
    history = train_variant(translator, name, corpus["train"], seed, epochs=passes, **looking)
    kept = sorted({*range(0, len(history.steps), 10 * passes), len(history.steps) - 1})
    curve = {
        "steps": [history.steps[i] for i in kept],
        "loss": [round(history.loss[i], 4) for i in kept],
        "rate": [round(history.rate[i], 8) for i in kept],
    }
    loss = round(teacher_forced_loss(translator, corpus["heldout"][::EVERY]), 4)
    return translator, {
        "seed": seed,
        "loss": loss,
        "scores": scores(functools.partial(translator.translate, path=fastest_path(translator.model)), corpus),
        "curve": curve,
        **({"samples": samples} if samples else {}),
    }


def off_at_test(translator: Translator, corpus: Corpus) -> dict[str, dict]:
    """Return the scores of a trained model with each part taken out afterwards, the weights as they are."""
    outcome = {}
    for name, (remove, options) in TEST_PARTS.items():
        changed = copy.deepcopy(translator)
        remove(changed.model)
        outcome[name] = scores(functools.partial(greedy, changed, **options), corpus)
    return outcome


def greedy(translator: Translator, texts: Sequence[str], *, use_cache: bool = True) -> list[str]:
    """Translate as `Translator.translate` does, here with the choice to re-read the whole target at each step."""
    translations = []
    for start in range(0, len(texts), 100):
        src = translator.src_tokenizer.encode_batch(list(texts[start : start + 100]))
        ids = greedy_decode(translator.model, src, max_new_tokens=40, use_cache=use_cache)
        translations += [translator.tgt_tokenizer.decode(row) for row in ids]
    return translations


def short_run(corpus: Corpus, name: str) -> list[float]:
    """Return the losses of the first SHORT_PAIRS pairs' single epoch, seed 0: quick to repeat, for a test."""
    translator = new_variant(corpus, name, seed=0)
    history = train_variant(translator, name, corpus["train"][:SHORT_PAIRS], seed=0, epochs=1, warmup_steps=10)
    return [round(loss, 4) for loss in history.loss]


def run(seeds: Sequence[int], path: Path = RESULTS, passes: Sequence[int] = PASSES) -> dict:
    """Run what `path` does not have yet, and write it after each run."""
    corpus = load_corpus("context")
    content = load_results(path) if path.exists() else dict.fromkeys(PARTS_OF_RESULTS)
    content = {part: content.get(part) or {} for part in PARTS_OF_RESULTS} | {
        "command": stored.command("ablations", seeds),
        "date": date.today().isoformat(),
        "threads": torch.get_num_threads(),
        "passes": list(PASSES),
        "every": EVERY,
        "sentences": list(SAMPLES),
        "references": [next(pair.tgt for pair in corpus["heldout"] if pair.src == text) for text in SAMPLES],
    }
    save = functools.partial(stored.save, path, content)
    if PASSES[0] in passes:
        _run_short(corpus, seeds, content, save)
    if PASSES[1] in passes:
        for name, seed, runs in _missing(content["trained longer"], seeds):
            runs.append(run_variant(corpus, name, seed, PASSES[1])[1])
            save()
            print(name, seed, PASSES[1], runs[-1]["loss"], runs[-1]["scores"], flush=True)
    save()
    return content


def _missing(found: dict[str, list], seeds: Sequence[int]) -> Iterator[tuple[str, int, list]]:
    """Yield each variant and seed that `found` does not have, with the list that its run goes to."""
    for seed in seeds:  # one after the other, so that what is there if the clock runs out is whole
        for name in VARIANTS:
            runs = found.setdefault(name, [])
            if seed not in [run["seed"] for run in runs]:
                yield name, seed, runs


def _run_short(corpus: Corpus, seeds: Sequence[int], content: dict, save: Callable[[], None]) -> None:
    """Run everything that takes one pass or less: the variants, the trained models without a part, then the warm-up."""
    off = content["off at test"]
    for name in VARIANTS:
        if name not in content["short"]:
            content["short"][name] = short_run(corpus, name)
    for name, seed, runs in _missing(content["trained"], seeds):
        translator, outcome = run_variant(corpus, name, seed)
        runs.append(outcome)
        if name == "baseline":
            off.setdefault("baseline", []).append({"seed": seed, "scores": off_at_test(translator, corpus)})
        save()
        print(name, seed, outcome["loss"], outcome["scores"], flush=True)
    if "full recipe" not in off:
        off["full recipe"] = off_at_test(load_trained(), corpus)
    _run_warm_up(corpus, seeds, content, save)


def _run_warm_up(corpus: Corpus, seeds: Sequence[int], content: dict, save: Callable[[], None]) -> None:
    """Run the arms of the warm-up, and a whole epoch without one."""
    for arm in warmup.ARMS:
        losses = content["warm-up"].setdefault(warmup.name_of(*arm), [])
        for seed in seeds[len(losses) :]:
            losses.append(warmup.final_loss(corpus, *arm, seed))
            save()
        print(*arm, losses, flush=True)
    for seed in seeds:
        if str(seed) not in content["no warm-up"]:
            content["no warm-up"][str(seed)] = warmup.epoch_without(corpus, seed, every=EVERY)
            save()
    print("no warm-up", content["no warm-up"], flush=True)


def main() -> None:
    """Run the command line."""
    parser = stored.parser(__doc__, RESULTS)
    parser.add_argument("--passes", type=int, nargs="+", choices=PASSES, default=PASSES)
    given = parser.parse_args()
    torch.set_num_threads(1)
    run(given.seeds, given.results, given.passes)


if __name__ == "__main__":
    run_command(main)
