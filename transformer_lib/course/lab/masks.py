"""What does the mask of one stack change? The same model under a full, a prefix and a causal mask (notebook 19)."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from ...data.batches import Batches
from ...data.corpora import load_corpus
from ...data.tokenizers import WordTokenizer
from . import stored
from .german_grammar import check_german

load_results = stored.loader("masks.json")
SIZES = (2, 96, 4, 192)  # layers, d_model, heads, d_ff
STEPS = (400, 2000)
BATCH_SIZE, RATE, WARMUP = 32, 3e-3, 40
PAD, BOS, MASK = 0, 1, 3  # `<unk>`, which no sentence has, is what stands for a hidden word
SAMPLES, LONGEST = 200, 32


@functools.lru_cache(maxsize=1)
def german() -> tuple[WordTokenizer, dict[str, list[list[int]]]]:
    """Return the tokenizer of the German words, and the ids of the training and the held-out sentences."""
    corpus = load_corpus("context")
    tokenizer = WordTokenizer.from_texts(pair.tgt for pair in corpus["train"])
    splits = ("train", "heldout")
    return tokenizer, {
        split: [tokenizer.encode(pair.tgt, bos=True, eos=True) for pair in corpus[split]] for split in splits
    }


def summed(logits: Tensor, labels: Tensor) -> tuple[Tensor, int]:
    """Return the summed cross-entropy of the labels [batch, n] that are not padding, and how many these are."""
    loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=PAD, reduction="sum")
    return loss, int((labels != PAD).sum())


def batches(seed: int) -> Iterator[Tensor]:
    """Yield batches of training sentences [batch, n], epoch after epoch."""
    sentences = german()[1]["train"]
    source, epoch = Batches(sentences, sentences, BATCH_SIZE, seed=seed), 0
    while True:
        for ids, _ in source.epoch(epoch):
            yield ids
        epoch += 1


def heldout() -> Iterator[Tensor]:
    """Yield the held-out sentences in batches [batch, n], always the same."""
    sentences = german()[1]["heldout"]
    return (ids for ids, _ in Batches(sentences, sentences, 133).epoch(0))


def is_grammatical(sentence: str) -> bool:
    """Return whether the grammar of the corpus, which parses all of its sentences, parses this one."""
    try:
        check_german(sentence)
    except (AssertionError, IndexError, KeyError):
        return False
    return True


class NGram:
    """How often each word followed each of its contexts, and a mixture of all shorter ones.

    P(w | c) is that of the next shorter context, mixed with the share of w after c: the share has the weight
    n / (n + 2) where c was seen n times.

    Args:
        order: words that count, the predicted one included. sentences: ids. vocab_size: of the uniform beginning.
    """

    def __init__(self, order: int, sentences: Sequence[Sequence[int]], vocab_size: int) -> None:
        self.order, self.vocab_size = order, vocab_size
        self.after: Counter[tuple[tuple[int, ...], int]] = Counter()
        self.seen: Counter[tuple[int, ...]] = Counter()
        for ids in sentences:
            for at in range(1, len(ids)):
                for context in self.contexts(ids, at):
                    self.after[context, ids[at]] += 1
                    self.seen[context] += 1

    def contexts(self, ids: Sequence[int], at: int) -> list[tuple[int, ...]]:
        """Return the words before place `at` that each order looks at, the shortest first."""
        return [tuple(ids[at - length : at]) for length in range(min(self.order, at + 1))]

    def probability(self, ids: Sequence[int], at: int) -> float:
        """Return P(ids[at] | the words before it)."""
        share = 1 / self.vocab_size
        for context in self.contexts(ids, at):
            if times := self.seen[context]:
                share = (2 * share + self.after[context, ids[at]]) / (times + 2)
        return share

    def perplexity(self, sentences: Sequence[Sequence[int]]) -> float:
        """Return the perplexity of sentences, bos given."""
        logs = [math.log(self.probability(ids, at)) for ids in sentences for at in range(1, len(ids))]
        return math.exp(-sum(logs) / len(logs))


def runs_of(results: dict[str, Any], row: str, steps: int) -> list[dict[str, Any]]:
    """Return the stored runs of one row and budget, one for each seed."""
    return [run for run in results["runs"] if (run["row"], run["steps"]) == (row, steps)]
