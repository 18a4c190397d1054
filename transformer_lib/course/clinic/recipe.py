"""How a patient is trained: two or three seconds, with at most one fault, and a log of what its script writes down."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from functools import lru_cache

import torch

from ...model.config import TransformerConfig
from ...model.transformer import Transformer
from .faults import BY_NAME, HEALTHY, Fault
from .task import BATCH_SIZE, CONFIG, LEARNING_RATE, PAD_ID, STEPS, reversals


@dataclass(frozen=True)
class Recipe:
    """How a patient is trained: the model's sizes, Adam's largest rate, and the number of steps."""

    config: TransformerConfig = CONFIG
    rate: float = LEARNING_RATE
    steps: int = STEPS


@dataclass
class Log:
    """What the training script wrote down after each step, with its own loss and its own labels."""

    loss: list[float] = field(default_factory=list)
    accuracy: list[float] = field(default_factory=list)  # share of right real tokens in the batch

    def at_the_end(self) -> tuple[float, float]:
        """Return loss and accuracy, each the mean of the last 20 steps."""
        return sum(self.loss[-20:]) / 20, sum(self.accuracy[-20:]) / 20


@lru_cache(maxsize=64)
def trained(name: str, seed: int, recipe: Recipe = Recipe()) -> tuple[Transformer, Log]:
    """Train a model with the named fault and return it with its log; the global random numbers are left alone."""
    case = BY_NAME[name]
    if case.late:
        model, log = copy.deepcopy(trained(HEALTHY.name, seed, recipe))
        case.change(model)
        return model, log
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Transformer(recipe.config)
        case.change(model)
        log = train(model, case, torch.Generator().manual_seed(seed), recipe)
    return model.eval(), log


def train(model: Transformer, case: Fault, generator: torch.Generator, recipe: Recipe) -> Log:
    """Train in place with Adam and a rate that rises and falls once; return what the script of this case writes."""
    optimizer = torch.optim.Adam(model.parameters(), lr=recipe.rate, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, recipe.rate, total_steps=recipe.steps)
    log = Log()
    for _ in range(recipe.steps):
        src, tgt = reversals(BATCH_SIZE, generator)
        tgt_in, tgt_out = case.feed(tgt)
        logits = model(src, tgt_in)
        loss = case.loss(logits, tgt_out)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        log.loss.append(loss.item())
        log.accuracy.append((logits.argmax(dim=-1) == tgt_out)[tgt_out != PAD_ID].double().mean().item())
    return log
