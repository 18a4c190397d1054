"""What a wider beam finds, and what label smoothing does to samples, over several trainings (notebook 14)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor

from transformer_lib.course.lab.decoding import FILTERS
from transformer_lib.data.corpora import Corpus, Pair, load_corpus
from transformer_lib.data.metrics import exact_matches
from transformer_lib.decoding.sampling import sample_decode
from transformer_lib.decoding.translator import Translator
from transformer_lib.model.base import TranslationModel

from .engine import Step, Steps, Study
from .translators import trained

TRAININGS = ((0.1, 1), (0.1, 4), (0.0, 1))  # label smoothing ε, and passes over the corpus
BEAMS = (1, 2, 4, 8)
TEMPERATURES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5)
SAMPLED = 200  # held-out sentences
LIMIT = 25  # tokens: the longest right translation has 18
CHUNK = 2000  # prefixes that are continued together
SAME = 1e-4  # sums of log-probabilities that differ by less are equal


@dataclass(frozen=True)
class Training:
    """One training of the translator: the label smoothing ε, passes over the corpus, and the seed."""

    smoothing: float
    passes: int
    seed: int


def search(translator: Translator, pairs: Sequence[Pair], beams: Sequence[int] = BEAMS) -> dict[str, Any]:
    """Return what searches of growing width find, without a length penalty, and what an exhaustive one does.

    For each of `beams`: how many translations are right, and how many are errors of the search, which returned less
    than the most probable sentence. Then how many of the most probable sentences are right, and how many are wrong and
    shorter than the right one.
    """
    texts = [pair.src for pair in pairs]
    right, scores = [], []
    for beam_size in beams:
        said = translator.translate(texts, beam_size=beam_size, length_penalty=0.0, max_new_tokens=LIMIT, path="fast")
        right.append(sum(exact_matches(said, pairs)))
        scores.append(translator.log_probabilities(texts, said).sum(dim=-1))
    best = most_probable(translator, texts, said)
    reached = translator.log_probabilities(texts, best).sum(dim=-1)
    exact = exact_matches(best, pairs)
    shorter = [len(text.split()) < len(pair.tgt.split()) for text, pair in zip(best, pairs, strict=True)]
    return {
        "right": right,
        "search errors": [int((reached > found + SAME).sum()) for found in scores],
        "exhaustive": {"right": sum(exact), "shorter": sum(s and not e for s, e in zip(shorter, exact, strict=True))},
    }


@torch.no_grad()
def most_probable(translator: Translator, texts: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the most probable translation of each text, of at most LIMIT tokens, for certain.

    A prefix is given up as soon as it is less probable than a whole sentence, for tokens can only make it less so.

    Args:
        known: a translation of each text, to begin with: the more probable, the less there is to search.
    """
    model, eos_id = translator.model, translator.model.config.eos_id
    src = translator.src_tokenizer.encode_batch(texts)
    memory, best = model.encode(src), list(known)
    bound = translator.log_probabilities(texts, known).sum(dim=-1) + SAME
    # The open prefixes of all sentences: whose, which, and their summed log-probabilities.
    whose, ids, scores = (
        torch.arange(len(texts)),
        torch.full((len(texts), 1), model.config.bos_id),
        torch.zeros(len(texts)),
    )
    for _ in range(LIMIT):
        parts = [
            _continued(model, memory[rows], src[rows], prefixes, found)
            for rows, prefixes, found in zip(whose.split(CHUNK), ids.split(CHUNK), scores.split(CHUNK), strict=True)
        ]
        table = torch.cat(parts)  # [open prefixes, vocabulary]
        for row in (table[:, eos_id] > bound[whose]).nonzero()[:, 0].tolist():
            if table[row, eos_id] > bound[whose[row]]:  # an earlier row may have raised it
                bound[whose[row]] = table[row, eos_id]
                best[whose[row]] = translator.tgt_tokenizer.decode(ids[row])
        table[:, eos_id] = -math.inf
        rows, tokens = (table > bound[whose][:, None]).nonzero(as_tuple=True)
        whose, scores = whose[rows], table[rows, tokens]
        ids = torch.cat([ids[rows], tokens[:, None]], dim=1)
        if not len(rows):
            break
    return best


def _continued(model: TranslationModel, memory: Tensor, src: Tensor, ids: Tensor, scores: Tensor) -> Tensor:
    """Return the summed log-probability of each prefix with each token appended, [prefixes, vocab_size]."""
    return model.decode(ids, memory, src)[:, -1].log_softmax(dim=-1) + scores[:, None]


def sampled(translator: Translator, pairs: Sequence[Pair], temperature: float, **options: Any) -> float:
    """Return the share of samples, one for each pair, that are exactly right; `options` are of `tl.filter_logits`."""
    src = translator.src_tokenizer.encode_batch([pair.src for pair in pairs])
    drawing = {"generator": torch.Generator().manual_seed(0), "path": "fast", **options}
    ids = sample_decode(translator.model, src, max_new_tokens=LIMIT, temperature=temperature, **drawing)
    right = exact_matches([translator.tgt_tokenizer.decode(row) for row in ids], pairs)
    return sum(right) / len(pairs)


def certainty(translator: Translator, pairs: Sequence[Pair]) -> dict[str, float]:
    """Return the mean probability of a right token, that of a right sentence, and the mean length in tokens."""
    log_probs = translator.log_probabilities([pair.src for pair in pairs], [pair.tgt for pair in pairs])
    real = log_probs < 0  # padding has 0
    numbers = log_probs[real].exp().mean(), log_probs.sum(dim=-1).exp().mean(), real.sum(dim=-1).float().mean()
    return dict(zip(("token", "sentence", "length"), (round(number.item(), 4) for number in numbers), strict=True))


def run_setup(corpus: Corpus, setup: Training) -> dict[str, Any]:
    """Train a translator, and return what is stored of it; the searches for the course's recipe only."""
    translator = trained(corpus, setup.seed, epochs=setup.passes, label_smoothing=setup.smoothing)
    some = corpus["heldout"][:SAMPLED]
    result: dict[str, Any] = {
        "sampled": {
            name: [sampled(translator, some, temperature, **options) for temperature in TEMPERATURES]
            for name, options in FILTERS.items()
        },
        "certainty": certainty(translator, some),
        "greedy": sampled(translator, some, 1.0, top_k=1),
    }
    if setup.smoothing:
        result["search"] = search(translator, corpus["hard"])
    return result


def steps(seeds: Sequence[int]) -> Steps:
    """Train every way with every seed."""
    corpus = load_corpus("context")
    for how, seed in product(TRAININGS, seeds):
        setup = Training(*how, seed)
        yield Step(("runs", setup), run_setup, corpus, setup)


GIVEN = {"beams": list(BEAMS), "temperatures": list(TEMPERATURES)}
STUDY = Study("decoding", __doc__, steps, by_seed=True, constants=GIVEN, indent=1)


if __name__ == "__main__":
    STUDY.command()
