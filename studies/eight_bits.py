"""What does a translator lose with weights in eight bits, or fewer? (notebook 22)

Weights are rounded with a scale for each row or one for each matrix. The translator of seed 0 is the included one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from transformer_lib.data.corpora import Corpus, Pair, load_corpus
from transformer_lib.data.metrics import exact_matches
from transformer_lib.decoding.translator import Translator, load_trained
from transformer_lib.model import int8
from transformer_lib.training.evaluation import loss_per_token

from .engine import Step, Steps, Study
from .translators import trained

SPLITS = ("validation", "heldout", "compositional", "hard")
FEWER = (8, 7, 6, 5, 4, 3, 2)  # bits, on the held-out sentences
BATCH_SIZE = 64


def run_seed(seed: int, corpus: Corpus) -> dict[str, Any]:
    """Measure the translator of a seed: the included one, or one that is trained here by its recipe."""
    return measure(trained(corpus, seed) if seed else load_trained(), corpus)


def with_rounded_weights(translator: Translator, per: str, bits: int = 8) -> Translator:
    """Return the translator with its weights rounded to this number of bits."""
    model = int8.rounded(translator.model, per=per, bits=bits)
    return Translator(model, translator.src_tokenizer, translator.tgt_tokenizer)


def loss(translator: Translator, pairs: Sequence[Pair]) -> float:
    """Return the loss in nats per token."""
    return loss_per_token(translator.model, translator.batches(pairs, BATCH_SIZE), path="fast")


def compare(translator: Translator, pairs: Sequence[Pair], others: dict[str, Translator]) -> dict[str, Any]:
    """Return loss and right sentences of a translator ("float32") and of others, and how many sentences they change."""
    texts = [pair.src for pair in pairs]
    before = translator.translate(texts, path="fast")
    result: dict[str, Any] = {"sentences": len(pairs), "changed": {}}
    result["float32"] = {"loss": round(loss(translator, pairs), 5), "right": sum(exact_matches(before, pairs))}
    for name, other in others.items():
        said = other.translate(texts, path="fast")
        result[name] = {"loss": round(loss(other, pairs), 5), "right": sum(exact_matches(said, pairs))}
        result["changed"][name] = sum(one != two for one, two in zip(before, said, strict=True))
    return result


def measure(translator: Translator, corpus: Corpus) -> dict[str, Any]:
    """Return eight bits by row and by tensor on every split, and fewer bits on the held-out sentences."""
    eight = {per: with_rounded_weights(translator, per) for per in int8.PER}
    fewer = []
    for bits in FEWER:
        others = {per: with_rounded_weights(translator, per, bits) for per in int8.PER}
        fewer.append({"bits": bits, **compare(translator, corpus["heldout"], others)})
    return {"splits": {split: compare(translator, corpus[split], eight) for split in SPLITS}, "fewer": fewer}


def sizes() -> dict[str, int]:
    """Return the bytes of the translator's weights: in floats, and in eight bits by row and by tensor."""
    model = load_trained().model
    return {"float32": int8.stored_bytes(model)} | {
        per: int8.stored_bytes(int8.quantized(model, per=per)) for per in int8.PER
    }


def short_run(corpus: Corpus) -> dict[str, Any]:
    """Return what 60 hard sentences of the included translator lose: quick to repeat."""
    translator = load_trained()
    return compare(translator, corpus["hard"][:60], {"row": with_rounded_weights(translator, "row")})


def steps(seeds: Sequence[int]) -> Steps:
    """Measure the translator of each seed."""
    corpus = load_corpus("context")
    yield Step("bytes", sizes)
    yield Step("short", short_run, corpus)
    for seed in seeds:
        yield Step(("runs", {"seed": seed}), run_seed, seed, corpus)


STUDY = Study("eight_bits", __doc__, steps, by_seed=True, indent=1)


if __name__ == "__main__":
    STUDY.command()
