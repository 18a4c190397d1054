"""A stack of layers alone, on the German sentences of the corpus: data, training, and n-grams beside it (notebook 19).

Nothing is stored: the notebook trains its models while one waits.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache

import torch
from torch import Tensor, nn

from ...data.batches import Batches
from ...data.corpora import load_corpus
from ...data.tokenizers import UNK_ID, WordTokenizer, pad_batch

STEPS, WARM_UP, RATE, BATCH_SIZE = 400, 40, 3e-3, 32
LossOf = Callable[[nn.Module, Tensor], Tensor]


@cache
def tokenizer() -> WordTokenizer:
    """Return the tokenizer of the German training sentences."""
    return WordTokenizer.from_texts(pair.tgt for pair in load_corpus("context")["train"])


@cache
def sentences(split: str) -> list[list[int]]:
    """Return the ids of each German sentence of a split of the corpus, from bos to eos."""
    return [tokenizer().encode(pair.tgt, bos=True, eos=True) for pair in load_corpus("context")[split]]


def padded(split: str) -> Tensor:
    """Return the sentences of a split as ids [sentences, longest]."""
    return pad_batch(sentences(split))


def one_hidden(split: str, seed: int = 99) -> tuple[Tensor, Tensor, Tensor]:
    """Hide one word of each sentence of a split: ids [sentences, longest] with one UNK_ID in each, where, which word."""
    ids = padded(split)
    where = torch.multinomial((ids > UNK_ID).float(), 1, generator=torch.Generator().manual_seed(seed))
    return ids.scatter(1, where, UNK_ID), where[:, 0], ids.gather(1, where)[:, 0]


def batches(seed: int, size: int = BATCH_SIZE) -> Iterator[Tensor]:
    """Yield batches of ids [size, longest] from the training sentences, epoch after epoch."""
    train, epoch = sentences("train"), 0
    source = Batches(train, train, size, seed=seed)
    while True:
        for ids, _ in source.epoch(epoch):
            yield ids
        epoch += 1


def fit(model: nn.Module, loss_of: LossOf, steps: int = STEPS, seed: int = 0) -> list[float]:
    """Train a model by Adam, with warm-up, a cosine to zero and clipped gradients, and return the loss of each step.

    loss_of(model, ids) returns the loss of a batch of sentences, ids [batch, longest].
    """
    adam = torch.optim.Adam(model.parameters(), lr=RATE, betas=(0.9, 0.98))
    rates = torch.optim.lr_scheduler.LambdaLR(adam, lambda step: _rate(step, steps))
    losses = []
    for _, ids in zip(range(steps), batches(seed), strict=False):
        loss = loss_of(model, ids)
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        rates.step()
        losses.append(loss.item())
    return losses


def _rate(step: int, steps: int) -> float:
    """Return the share of the learning rate that step 0, 1, … takes."""
    return min(1.0, (step + 1) / WARM_UP) * (0.5 + 0.5 * math.cos(math.pi * step / steps))


def ngram_perplexity(order: int, split: str = "heldout") -> float:
    """Return the perplexity of n-grams, counted in the training sentences, on another split.

    A word's share after the last order − 1 words is blended with its share after one word less, and so on down to
    equal shares. A context seen c times has c / (c + 2) of the say.
    """
    after: list[Counter[tuple[int, ...]]] = [Counter() for _ in range(order)]
    grams: list[Counter[tuple[int, ...]]] = [Counter() for _ in range(order)]
    for ids in sentences("train"):
        for end in range(1, len(ids)):
            for n in range(min(order, end + 1)):
                after[n][tuple(ids[end - n : end])] += 1
                grams[n][tuple(ids[end - n : end + 1])] += 1
    surprises = []
    for ids in sentences(split):
        for end in range(1, len(ids)):
            share = 1 / len(tokenizer())
            for n in range(min(order, end + 1)):
                times = after[n][tuple(ids[end - n : end])]
                share = (2 * share + grams[n][tuple(ids[end - n : end + 1])]) / (times + 2)
            surprises.append(-math.log(share))
    return math.exp(math.fsum(surprises) / len(surprises))
