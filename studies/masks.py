"""What does the mask of one stack change? The same model under a full, a prefix and a causal mask (notebook 19)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lib.course.lab import masks as lab
from transformer_lib.course.lab import one_stack
from transformer_lib.data.corpora import load_corpus
from transformer_lib.decoding.sampling import filter_logits
from transformer_lib.model.masks import causal_mask, padding_mask, prefix_mask
from transformer_lib.model.one_stack import LanguageModel

from .engine import Step, Steps, Study, rounded

HIDDEN = 0.15  # the share of words that are hidden in training
TEMPERATURES = (0.3, 0.5, 0.7, 1.0, 1.3)
SHORT = 12  # steps of a run that a test repeats
MASKS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "causal": lambda ids, _lengths: causal_mask(ids.shape[1]),
    "prefix": lambda ids, lengths: prefix_mask(lengths, ids.shape[1]),
    "full": lambda ids, _lengths: padding_mask(ids, lab.PAD),
}


@dataclass(frozen=True)
class Row:
    """What a model learns: the "next word", the "second half" of a sentence, or a "hidden word"; how, and where."""

    objective: str
    mask: str
    position: str = "rotary"


ROWS = {
    "next word": Row("next word", "causal"),
    "next word, no positions": Row("next word", "causal", "none"),
    "hidden word": Row("hidden word", "full"),
    "hidden word, no positions": Row("hidden word", "full", "none"),
    "hidden word, causal": Row("hidden word", "causal"),
    "second half, causal": Row("second half", "causal"),
    "second half, prefix": Row("second half", "prefix"),
}


@dataclass(frozen=True)
class Setup:
    """One run: a name of ROWS, its steps, the seed of weights, order and hidden words."""

    row: str
    steps: int
    seed: int


def new_model(row: str, seed: int) -> LanguageModel:
    """Return the untrained model of a row."""
    torch.manual_seed(seed)
    options: dict[str, Any] = {"norm_first": True, "activation": "gelu", "position": ROWS[row].position}
    return LanguageModel(len(lab.german()[0]), *lab.SIZES, **options)


def halves(ids: Tensor) -> Tensor:
    """Return how many tokens of each sentence [batch, n], bos and eos included, are its first half, [batch]."""
    return (ids != lab.PAD).sum(dim=1) // 2


def half_loss(model: LanguageModel, ids: Tensor, mask: str, *, whole: bool = False) -> tuple[Tensor, int]:
    """Return the loss, summed, of each word of the second half of sentences [batch, n], and how many these are.

    Args:
        mask: a name of MASKS; the prefix is the first half. whole: count the words of the first half, too.
    """
    lengths, tgt_in, tgt_out = halves(ids), ids[:, :-1], ids[:, 1:]
    if not whole:
        tgt_out = tgt_out.masked_fill(torch.arange(tgt_out.shape[1]) < lengths[:, None] - 1, lab.PAD)
    return lab.summed(model(tgt_in, MASKS[mask](tgt_in, lengths)), tgt_out)


def hide(ids: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return sentences [batch, n] in which words are hidden, and the labels: what was hidden, padding elsewhere."""
    hidden = (torch.rand(ids.shape, generator=generator) < HIDDEN) & (ids > lab.MASK)
    return ids.masked_fill(hidden, lab.MASK), ids.masked_fill(~hidden, lab.PAD)


def loss_of(model: LanguageModel, ids: Tensor, row: Row, generator: torch.Generator) -> tuple[Tensor, int]:
    """Return what a row is trained on, summed, for a batch of sentences, and how many words count."""
    if row.objective != "hidden word":
        return half_loss(model, ids, row.mask, whole=row.objective == "next word")
    seen, labels = hide(ids, generator)
    return lab.summed(model(seen, MASKS[row.mask](seen, halves(seen))), labels)


def train(setup: Setup) -> tuple[LanguageModel, list[float]]:
    """Train the model of a set-up; return it and the loss of each step."""
    model, generator = new_model(setup.row, setup.seed), torch.Generator().manual_seed(setup.seed)

    def mean_loss(model: LanguageModel, ids: Tensor) -> Tensor:
        loss, count = loss_of(model, ids, ROWS[setup.row], generator)
        return loss / max(1, count)

    adam = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), fused=True)
    losses = one_stack.fit(model, mean_loss, setup.steps, setup.seed, optimizer=adam)
    return model.eval(), losses


@torch.no_grad()
def perplexity(model: LanguageModel, mask: str = "causal", *, whole: bool = True) -> float:
    """Return the perplexity of the held-out sentences, or of their second halves, under a mask."""
    losses = [half_loss(model, ids, mask, whole=whole) for ids in lab.heldout()]
    return math.exp(sum(float(loss) for loss, _ in losses) / sum(count for _, count in losses))


@torch.no_grad()
def hidden_word(model: LanguageModel, mask: str) -> dict[str, float]:
    """Hide one word of each held-out sentence: how often the likeliest is right, and the perplexity."""
    generator = torch.Generator().manual_seed(99)
    loss = right = count = 0.0
    for ids in lab.heldout():
        place = torch.multinomial((ids > lab.MASK).float(), 1, generator=generator)
        seen, answer = ids.scatter(1, place, lab.MASK), ids.gather(1, place)
        logits = model(seen, MASKS[mask](seen, halves(seen)))[torch.arange(len(ids)), place[:, 0]]
        loss += float(F.cross_entropy(logits, answer[:, 0], reduction="sum"))
        right += int((logits.argmax(dim=-1) == answer[:, 0]).sum())
        count += len(ids)
    return {"right": right / count, "perplexity": math.exp(loss / count)}


@torch.no_grad()
def sample(model: LanguageModel, temperature: float, number: int = lab.SAMPLES, seed: int = 0) -> list[str]:
    """Return sentences drawn word by word from nothing but bos; one that does not end is cut off."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.full((number, 1), lab.BOS)
    for _ in range(lab.LONGEST):
        logits = filter_logits(model(ids)[:, -1], temperature=temperature)
        ids = torch.cat([ids, torch.multinomial(logits.softmax(dim=-1), 1, generator=generator)], dim=1)
    return [lab.german()[0].decode(row[1:].tolist()) for row in ids]


def spoilt(sentence: str, generator: torch.Generator) -> str:
    """Return a sentence with one word put in another's place, at random, which mostly leaves no German."""
    words = sentence.split()
    here, there = torch.randperm(len(words), generator=generator)[:2].tolist()
    words[here] = words[there]
    return " ".join(words)


def judged() -> dict[str, float]:
    """Return the share that the grammar passes: of the held-out sentences, and of these with one word spoilt."""
    sentences = [pair.tgt for pair in load_corpus("context")["heldout"]]
    generator = torch.Generator().manual_seed(0)
    wrong = [text for text in (spoilt(one, generator) for one in sentences) if text not in set(sentences)]
    return {
        name: round(sum(map(lab.is_grammatical, some)) / len(some), 4)
        for name, some in (("held out", sentences), ("spoilt", wrong))
    }


def write(model: LanguageModel) -> dict[str, dict[str, float]]:
    """Return for each temperature what share of the samples is grammatical, new, and different from the others."""
    trained_on = {pair.tgt for pair in load_corpus("context")["train"]}
    shares_of = {}
    for temperature in TEMPERATURES:
        said = sample(model, temperature)
        shares = {
            "grammatical": sum(map(lab.is_grammatical, said)),
            "grammatical and new": sum(lab.is_grammatical(text) and text not in trained_on for text in said),
            "different": len(set(said)),
        }
        shares_of[f"{temperature:g}"] = {name: number / len(said) for name, number in shares.items()}
    return shares_of


def ngrams(orders: Sequence[int] = (1, 2, 3, 4, 5)) -> dict[str, float]:
    """Return the perplexity of the held-out sentences for each order."""
    tokenizer, ids = lab.german()
    return {
        str(one): round(lab.NGram(one, ids["train"], len(tokenizer)).perplexity(ids["heldout"]), 3) for one in orders
    }


def run_setup(setup: Setup) -> dict[str, Any]:
    """Train one set-up, and return what is measured of it."""
    model, losses = train(setup)
    row, result = ROWS[setup.row], {"loss": round(sum(losses[-20:]) / 20, 4)}
    if row.objective == "hidden word":
        result |= rounded(hidden_word(model, row.mask))
    else:
        result["second half"] = {mask: round(perplexity(model, mask, whole=False), 4) for mask in MASKS}
    if row.objective == "next word":
        result["perplexity"] = round(perplexity(model), 4)
    if setup.row == "next word":
        result["samples"] = write(model)
    return result


def steps(seeds: Sequence[int]) -> Steps:
    """Train every set-up."""
    yield Step("ngrams", ngrams)
    yield Step("grammar", judged)
    for row in ROWS:
        yield Step(("short", row), lambda row: rounded(train(Setup(row, SHORT, 0))[1]), row)
    for number, seed, row in itertools.product(lab.STEPS, seeds, ROWS):  # the shorter budget with all seeds first
        setup = Setup(row, number, seed)
        yield Step(("runs", setup), run_setup, setup)


STUDY = Study("masks", __doc__, steps, by_seed=True, indent=1)


if __name__ == "__main__":
    STUDY.command()
