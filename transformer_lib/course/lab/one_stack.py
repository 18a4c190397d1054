"""Trains a stack on the German sentences while one waits, on whatever loss it is given (notebook 19)."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable

import torch
from torch import Tensor, nn

from ...data.tokenizers import BOS_ID, EOS_ID, UNK_ID, WordTokenizer, pad_batch
from ...model.masks import causal_mask
from ...training.schedules import make_schedule
from . import masks

LossOf = Callable[[nn.Module, Tensor], Tensor]


def tokenizer() -> WordTokenizer:
    """Return the tokenizer of the German training sentences."""
    return masks.german()[0]


def heldout() -> Tensor:
    """Return the held-out sentences as ids [sentences, longest], from bos to eos, padded behind."""
    return pad_batch(masks.german()[1]["heldout"])


def one_hidden(seed: int = 99) -> tuple[Tensor, Tensor, Tensor]:
    """Hide one word of each held-out sentence: return ids [sentences, longest], where it was, and which word."""
    ids = heldout()
    where = torch.multinomial((ids > UNK_ID).float(), 1, generator=torch.Generator().manual_seed(seed))
    return ids.scatter(1, where, UNK_ID), where[:, 0], ids.gather(1, where)[:, 0]


@torch.no_grad()
def gap(text: str, position: int, *, writer: nn.Module, filler: nn.Module) -> None:
    """Print what both models would put at this position of a sentence (<bos> is 0), if they find it likelier than .12.

    The writer, called as writer(ids, mask), sees what comes before it; the filler also what comes behind it.
    """
    words = tokenizer()
    ids = words.encode_batch([text], bos=True, eos=True)
    hidden = ids.index_fill(1, torch.tensor(position), UNK_ID)
    print(*("___" if i == UNK_ID else words.words[i] for i in hidden[0, 1:-1].tolist()))
    left, both = writer(ids, causal_mask(ids.shape[1]))[0, position - 1], filler(hidden, None)[0, position]
    for name, logits in (("writer", left), ("filler", both)):
        best = logits.softmax(dim=-1).topk(4)
        print("   ", name, *(f" {words.words[i]} {p:.2f}" for p, i in zip(*best, strict=True) if p > 0.12))


def ngram_perplexity(order: int) -> float:
    """Return the perplexity of n-grams on the held-out sentences, counted in the training sentences."""
    words, ids = masks.german()
    return masks.NGram(order, ids["train"], len(words)).perplexity(ids["heldout"])


def ngram_sentences(order: int, number: int, seed: int = 0) -> list[str]:
    """Return sentences drawn word by word from the n-grams of `masks.NGram`, each cut off at its longest length.

    Their mixture is drawn from as it is defined: a context seen n times says the next word with probability
    n / (n + 2), and else the next shorter one is asked, and at last all words alike.
    """
    words, ids = masks.german()
    after: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for sentence in ids["train"]:
        for at in range(1, len(sentence)):
            for length in range(min(order, at + 1)):
                after[tuple(sentence[at - length : at])].append(sentence[at])
    rng, written = random.Random(seed), []
    for _ in range(number):
        said = [BOS_ID]
        while said[-1] != EOS_ID and len(said) < masks.LONGEST:
            contexts = [tuple(said[len(said) - length :]) for length in range(min(order, len(said) + 1))]
            asked = (after[each] for each in reversed(contexts))
            choices = next((each for each in asked if rng.random() < len(each) / (len(each) + 2)), range(len(words)))
            said.append(rng.choice(choices))
        written.append(words.decode(said[1:]))
    return written


def fit(
    model: nn.Module,
    loss_of: LossOf,
    steps: int,
    seed: int = 0,
    *,
    rate: float = masks.RATE,
    optimizer: torch.optim.Optimizer | None = None,
) -> list[float]:
    """Train a model by Adam, with warm-up, a cosine to zero and clipped gradients; return the loss of each step.

    Args:
        loss_of: loss_of(model, ids) returns the loss of a batch of sentences, ids [batch, longest].
        rate: the highest learning rate. optimizer: an Adam of another kind; where a group of its parameters has a
            "factor", their rate is multiplied by it.
    """
    adam = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98)) if optimizer is None else optimizer
    batches, losses = masks.batches(seed), []
    shape = {"learning_rate": rate, "warmup_steps": masks.WARMUP, "d_model": masks.SIZES[1]}
    rate_of = make_schedule("cosine", total_steps=steps, **shape)
    for step in range(1, steps + 1):
        for group in adam.param_groups:
            group["lr"] = rate_of(step) * group.get("factor", 1.0)
        loss = loss_of(model, next(batches))
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        losses.append(loss.item())
    return losses
