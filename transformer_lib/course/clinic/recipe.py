"""How a patient is trained: two or three seconds, with at most one fault, and a log of what its script writes down."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from functools import lru_cache

import torch
from torch import Tensor

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


class Training:
    """The training of one patient, step by step: Adam, with a rate that rises and falls once.

    The model is new; its weights and the dropout come from the global random numbers, the rows from a generator.

    Args:
        case: the fault. seed: of the rows. recipe: sizes, rate and steps.
    """

    def __init__(self, case: Fault, seed: int = 0, recipe: Recipe = Recipe()) -> None:
        self.model = Transformer(recipe.config)
        if not case.late:
            case.change(self.model)
        rate = recipe.rate * case.rate
        self.optimizer = torch.optim.Adam(case.trains(self.model), lr=rate, fused=True)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, rate, total_steps=recipe.steps)
        self.log = Log()
        self._case, self._generator = case, torch.Generator().manual_seed(seed)
        self._start = self._generator.get_state()

    def batch(self) -> tuple[Tensor, Tensor]:
        """Return the rows of the next step, src and tgt."""
        if not self._case.draws:
            self._generator.set_state(self._start)
        return reversals(BATCH_SIZE, self._generator)

    def feed(self, tgt: Tensor) -> tuple[Tensor, Tensor]:
        """Return what the decoder reads and what it must say, as the script of this case makes them of the target."""
        return self._case.feed(tgt)

    def loss(self, src: Tensor, tgt: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the loss, the logits and the labels, as the script of this case makes them."""
        tgt_in, tgt_out = self.feed(tgt)
        logits = self.model(src, tgt_in)
        return self._case.loss(logits, tgt_out), logits, tgt_out

    def step(self, rows: tuple[Tensor, Tensor] | None = None) -> float:
        """Take one step, on the next rows or on these; write the log, and return the loss."""
        loss, logits, tgt_out = self.loss(*(rows or self.batch()))
        if self._case.clears:
            self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        self.log.loss.append(loss.item())
        self.log.accuracy.append((logits.argmax(dim=-1) == tgt_out)[tgt_out != PAD_ID].double().mean().item())
        return self.log.loss[-1]


@lru_cache(maxsize=64)
def trained(name: str, seed: int, recipe: Recipe = Recipe()) -> tuple[Transformer, Log]:
    """Train a model with the named fault and return it with its log; the global random numbers are left alone."""
    return train(BY_NAME[name], seed, recipe)


def train(case: Fault, seed: int, recipe: Recipe = Recipe()) -> tuple[Transformer, Log]:
    """Train a model with this fault and return it in evaluation mode, with its log."""
    if case.late:
        model, log = copy.deepcopy(trained(HEALTHY.name, seed, recipe))
        case.change(model)
        return model, log
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        training = Training(case, seed, recipe)
        for _ in range(recipe.steps):
            training.step()
    return training.model.eval(), training.log
