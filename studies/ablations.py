"""What is each part of the Transformer for? Trained without it, or taken out of the trained model (notebook 13).

Every variant is trained for one pass over the corpus and for four; `--passes 4` runs only those.
"""

from __future__ import annotations

import copy
import functools
import itertools
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from transformer_lib.course.lab import translators
from transformer_lib.course.lab.ablations import PASSES, SAMPLES
from transformer_lib.course.lab.parts import without_residual
from transformer_lib.data.corpora import Corpus, Pair, load_corpus
from transformer_lib.data.metrics import exact_matches, sense_matches
from transformer_lib.decoding.sampling import greedy_decode
from transformer_lib.decoding.translator import Translator, load_trained
from transformer_lib.fast.eligibility import fastest_path
from transformer_lib.model.transformer import Transformer
from transformer_lib.training.evaluation import loss_per_token
from transformer_lib.training.options import History

from . import parts
from .engine import Step, Steps, Study, rounded

EVERY = 4  # every fourth sentence of a split is tested
SAMPLED = (1, 32, 64, 128, 192, 256, 384, 512)  # steps at which the samples are translated, beside the last
SHORT_PAIRS = 640  # 20 steps


@dataclass(frozen=True)
class Variant:
    """How one run differs from the baseline: fields of the configuration, a change to the model, training options."""

    config: dict[str, Any] = field(default_factory=dict)
    change: Callable[[Transformer], None] = lambda model: None
    training: dict[str, Any] = field(default_factory=dict)


VARIANTS = {
    "baseline": Variant(),
    "no positions": Variant(config={"position": "none"}),
    "no causal mask": Variant(change=parts.without_mask),
    "no residual": Variant(change=without_residual),
    "one head": Variant(config={"n_heads": 1}),
    "no scaling": Variant(change=parts.without_scaling),
    "no scaling, small queries": Variant(change=parts.without_scaling_but_small_queries),
    "no layer norm": Variant(change=parts.without_layer_norm),
    "no feed-forward": Variant(change=parts.without_feed_forward),
    "no embedding scale": Variant(change=parts.without_embedding_scale),
    "no embedding scale, unit tables": Variant(change=parts.without_embedding_scale_but_unit_tables),
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
    for name, (remove, options) in parts.TEST_PARTS.items():
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


def first_losses(translator: Translator, name: str, pairs: Sequence[Pair]) -> list[float]:
    """Return the losses of a short run of a new translator that is trained as the variant `name`."""
    return rounded(train_variant(translator, name, pairs[:SHORT_PAIRS], seed=0, epochs=1, warmup_steps=10).loss)


@functools.lru_cache(maxsize=1)
def last_run(name: str, seed: int) -> tuple[Translator, dict[str, Any]]:
    """Return what `run_variant` does, once for the run itself and for what is taken out of its model."""
    return run_variant(load_corpus("context"), name, seed)


def off_again(corpus: Corpus, seed: int) -> dict[str, Any]:
    """Return the scores of the baseline with this seed with each part taken out."""
    return {"scores": off_at_test(last_run("baseline", seed)[0], corpus)}


def steps(seeds: Sequence[int], passes: Sequence[int]) -> Steps:
    """Run what takes one pass or less, then the longer runs; seed by seed, so that what there is, is whole."""
    corpus = load_corpus("context")
    yield Step("references", lambda: [next(p.tgt for p in corpus["heldout"] if p.src == text) for text in SAMPLES])
    if PASSES[0] in passes:
        yield from _shorter(corpus, seeds)
    if PASSES[1] in passes:
        for seed, name in itertools.product(seeds, VARIANTS):
            where = ("trained longer", name, {"seed": seed})
            yield Step(where, lambda *run: run_variant(*run)[1], corpus, name, seed, PASSES[1])


def _shorter(corpus: Corpus, seeds: Sequence[int]) -> Steps:
    """The variants, and the trained models without a part."""
    for name in VARIANTS:
        yield Step(
            ("short", name), lambda name: first_losses(new_variant(corpus, name, 0), name, corpus["train"]), name
        )
    for seed, name in itertools.product(seeds, VARIANTS):
        yield Step(("trained", name, {"seed": seed}), lambda *run: last_run(*run)[1], name, seed)
        if name == "baseline":
            yield Step(("off at test", name, {"seed": seed}), off_again, corpus, seed)
    yield Step(("off at test", "full recipe"), lambda: off_at_test(load_trained(), corpus))


STUDY = Study(
    "ablations",
    __doc__,
    steps,
    by_seed=True,
    constants={"threads": 1, "passes": list(PASSES), "every": EVERY, "sentences": list(SAMPLES)},
    options={"passes": {"type": int, "nargs": "+", "choices": PASSES, "default": PASSES}},
    says_seeds=False,
)


if __name__ == "__main__":
    STUDY.command()
