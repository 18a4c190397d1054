"""Fill the gaps of a sentence all at once, or one after the other? Three small BERTs, two budgets (notebook 19)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lib.course.lab import one_stack
from transformer_lib.course.lab import speakers as lab
from transformer_lib.model.masks import padding_mask
from transformer_lib.model.one_stack import LanguageModel, MaskedLanguageModel

from .engine import Step, Steps, Study, rounded

BUDGETS = (1000, 3000)
SHORT = 12  # steps of a run that a test repeats
HIDDEN = 0.3  # the share of words that are hidden in training
RATES = (0.3, 0.5)  # of gaps in the test
SENTENCES = 300


@dataclass(frozen=True)
class Setup:
    """One BERT: its steps, and the seed of weights, order and hidden words."""

    steps: int
    seed: int


def new_bert(seed: int) -> MaskedLanguageModel:
    """Return an untrained BERT; its words begin as long as those of the other models of the notebook."""
    torch.manual_seed(seed)
    model = MaskedLanguageModel(len(one_stack.tokenizer()), *lab.SIZES, max_len=lab.PLACES)
    torch.nn.init.normal_(model.embedding.weight, std=lab.SIZES[1] ** -0.5)
    return model


def new_gpt2(seed: int) -> LanguageModel:
    """Return an untrained GPT-2."""
    torch.manual_seed(seed)
    options: dict[str, Any] = {"norm_first": True, "attention_bias": True, "activation": "gelu_tanh"}
    places: dict[str, Any] = {"position": "learned", "max_len": lab.PLACES, "scale": 1.0}
    return LanguageModel(len(one_stack.tokenizer()), *lab.SIZES, **places, **options)


def trained_bert(setup: Setup) -> tuple[MaskedLanguageModel, list[float]]:
    """Train a BERT on hidden words; return it and the loss of each step."""
    model, generator = new_bert(setup.seed), torch.Generator().manual_seed(setup.seed)

    def loss_of(model: MaskedLanguageModel, ids: Tensor) -> Tensor:
        hidden = (torch.rand(ids.shape, generator=generator) < HIDDEN) & (ids > 2)
        logits = model(ids.masked_fill(hidden, lab.UNK), padding_mask(ids, lab.PAD))
        return F.cross_entropy(logits.mT, ids.masked_fill(~hidden, lab.PAD), ignore_index=lab.PAD)

    losses = one_stack.fit(model, loss_of, setup.steps, setup.seed)
    return model.eval(), losses


def trained_gpt2(setup: Setup) -> LanguageModel:
    """Train a GPT-2 on the next word."""
    model = new_gpt2(setup.seed)

    def loss_of(model: LanguageModel, ids: Tensor) -> Tensor:
        return F.cross_entropy(model(ids[:, :-1]).mT, ids[:, 1:], ignore_index=lab.PAD)

    one_stack.fit(model, loss_of, setup.steps, setup.seed)
    return model.eval()


@torch.no_grad()
def one_gap(model: MaskedLanguageModel) -> dict[str, float]:
    """Hide one word of each held-out sentence: how often the likeliest is right, and the perplexity."""
    seen, where, words = one_stack.one_hidden()
    logits = lab.logits_of(model)(seen)[torch.arange(len(seen)), where]
    right = (logits.argmax(dim=-1) == words).float().mean()
    return {"right": float(right), "perplexity": float(F.cross_entropy(logits, words).exp())}


def gaps(model: MaskedLanguageModel) -> dict[str, dict[str, dict[str, float]]]:
    """Return for each rate and order what share of the filled sentences is grammatical, and of the words right."""
    result: dict[str, dict[str, dict[str, float]]] = {}
    for rate in RATES:
        ids, truth = lab.with_gaps(rate, SENTENCES), one_stack.heldout()[:SENTENCES]
        hidden = ids == lab.UNK
        each = {order: lab.filled(ids, lab.logits_of(model), order) for order in lab.ORDERS}
        result[f"{rate:g}"] = {
            order: {
                "grammatical": lab.grammatical(filled),
                "words right": float((filled == truth)[hidden].float().mean()),
            }
            for order, filled in each.items()
        }
    return result


def run_setup(setup: Setup) -> dict[str, Any]:
    """Train one BERT, and return what is measured of it."""
    model, losses = trained_bert(setup)
    return rounded({"loss": sum(losses[-20:]) / len(losses[-20:]), "one gap": one_gap(model), "gaps": gaps(model)})


def steps(seeds: Sequence[int]) -> Steps:
    """Train each with both budgets, the shorter first."""
    yield Step(("short",), lambda: rounded(trained_bert(Setup(SHORT, 0))[1]))
    for number in BUDGETS:
        for seed in seeds:
            setup = Setup(number, seed)
            yield Step(("runs", setup), run_setup, setup)


STUDY = Study("speakers", __doc__, steps, by_seed=True, indent=1)


if __name__ == "__main__":
    STUDY.command()
