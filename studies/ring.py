"""What can attention without weights point at, and what can it answer? Models of a ring of symbols (notebook 02)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lib.course.lab.ring import KINDS

from .engine import Step, Steps, Study, rounded

SYMBOLS, COLOURS, FEATURES, HIDDEN = 8, 4, 32, 64
BATCH_SIZE, RATE, BUDGETS = 64, 3e-3, (100, 400, 3000)
RACED, RATES, EARLY = ("others only", "two matrices"), (1e-3, 3e-3, 1e-2, 3e-2), (50, 100, 200)
RETRAINED, RETRAINING_STEPS = "others only", 1500
VERSIONS = ("as it is", "equal", "usual", "varying")  # of the weights: see `Weights`


class Ring:
    """Models side by side. Each token must name the colour that another one carries, and is told nothing of positions.

    A sequence holds each of 8 symbols once, in random order, and each token also carries one of 4 colours. Its vector
    is the sum of two learned ones, for symbol and colour. Its target is the colour of the symbol after its own; after
    the last comes the first. A small network sees the token and its context vector and gives a logit for each colour.

    Args:
        kind: a key of KINDS. seeds: one for each model, which decides its first parameters and its batches.
    """

    def __init__(self, kind: str, seeds: Sequence[int]) -> None:
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}, got {kind!r}")
        self.kind = kind
        self.generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        tables = {"symbols": (SYMBOLS, FEATURES), "colours": (COLOURS, FEATURES)}
        matrices = {"w_1": (2 * FEATURES, HIDDEN), "w_2": (HIDDEN, COLOURS)}
        if kind == "two matrices":
            matrices |= {"w_q": (FEATURES, FEATURES), "w_k": (FEATURES, FEATURES)}
        self.parameters = {name: KINDS[kind] * self._draw(*shape) for name, shape in tables.items()}
        self.parameters |= {name: self._draw(*shape) / shape[0] ** 0.5 for name, shape in matrices.items()}
        for parameter in self.parameters.values():
            parameter.requires_grad_()

    def _draw(self, *shape: int) -> Tensor:
        """Return normal numbers [models, *shape], each model's from its own generator."""
        return torch.stack([torch.randn(shape, generator=generator) for generator in self.generators])

    def weights(self, x: Tensor) -> Tensor:
        """Return attention weights [models, batch, 8, 8] for tokens x [models, batch, 8, FEATURES]."""
        query, key = x, x
        if self.kind == "two matrices":
            query, key = x @ self.parameters["w_q"][:, None], x @ self.parameters["w_k"][:, None]
        scores = query @ key.mT / math.sqrt(FEATURES)
        if self.kind == "even":
            scores = torch.zeros_like(scores)
        if self.kind.startswith("others only"):
            scores = scores.masked_fill(torch.eye(SYMBOLS, dtype=torch.bool), -math.inf)
        return scores.softmax(dim=-1)

    def tokens(self, symbol: Tensor, colour: Tensor) -> Tensor:
        """Return the vectors [models, batch, 8, FEATURES] of these tokens."""
        model = torch.arange(len(self.generators))[:, None, None]
        return self.parameters["symbols"][model, symbol] + self.parameters["colours"][model, colour]

    def logits(self, x: Tensor, weights: Tensor) -> Tensor:
        """Return logits [models, batch, 8, COLOURS] from tokens and attention weights."""
        hidden = torch.cat([x, weights @ x], dim=-1) @ self.parameters["w_1"][:, None]
        return hidden.relu() @ self.parameters["w_2"][:, None]

    def train(self, steps: int, changed: Weights | None = None, rate: float = RATE) -> Ring:
        """Take steps of Adam on new batches; returns the models themselves.

        With `changed` weights in place of the models' own, only the small network is trained.
        """
        trained = [self.parameters[name] for name in (("w_1", "w_2") if changed else self.parameters)]
        optimizer = torch.optim.Adam(trained, lr=rate)
        for _ in range(steps):
            symbol, colour, target = batch(self.generators, BATCH_SIZE)
            x = self.tokens(symbol, colour)
            weights = changed(self.weights(x), symbol) if changed else self.weights(x)
            loss = F.cross_entropy(self.logits(x, weights).flatten(0, 2), target.flatten())
            optimizer.zero_grad()
            # no parameter is shared: times their number, each model gets the gradient of its own mean loss
            (loss * len(self.generators)).backward()
            optimizer.step()
        return self

    @torch.no_grad()
    def examine(self, questions: int = 1000, changed: Weights | None = None) -> dict[str, Any]:
        """Return what the models do on new sequences, for each model; with `changed` weights in place of their own.

        "right": the share of right answers. "own", "next", "previous": the mean weight on the token itself, on the one
        it must read, and on the one before. "own of each" and so on [models, 8]: the same weights, symbol by symbol.
        """
        symbol, colour, target = batch([torch.Generator().manual_seed(99) for _ in self.generators], questions)
        x = self.tokens(symbol, colour)
        weights = changed(self.weights(x), symbol) if changed else self.weights(x)
        right = (self.logits(x, weights).argmax(dim=-1) == target).double().mean(dim=(1, 2))
        result: dict[str, Any] = {"right": right.tolist()}
        by_symbol = mean_by_symbol(weights, symbol)
        for name, steps in (("own", 0), ("next", 1), ("previous", -1)):
            of_each = by_symbol.roll(-steps, dims=-1).diagonal(dim1=-2, dim2=-1)  # [models, 8]
            result |= {name: of_each.mean(dim=-1).tolist(), f"{name} of each": of_each.tolist()}
        return result


class Weights:
    """The weights of trained models, changed in one way, to see what an answer needs.

    "as it is" changes nothing. "equal": the next and the previous symbol get equal weights, whose sum is kept. "usual":
    a symbol gives to each other one, in every sequence, what it gives on average. "varying": the lean of a symbol, the
    logarithm of the ratio of next to previous, has its mean over all sequences taken off, and varies around 0.

    Args:
        version: one of VERSIONS. models: their means are taken once, from many sequences.
    """

    @torch.no_grad()
    def __init__(self, version: str, models: Ring, questions: int = 1000) -> None:
        if version not in VERSIONS:
            raise ValueError(f"version must be one of {', '.join(map(repr, VERSIONS))}, got {version!r}")
        self.version = version
        symbol, colour, _ = batch([torch.Generator().manual_seed(98) for _ in models.generators], questions)
        weights = models.weights(models.tokens(symbol, colour))
        self.by_symbol = mean_by_symbol(weights, symbol)
        lean = _lean(weights, symbol)
        self.lean = lean.gather(-1, symbol.argsort(dim=-1)).mean(dim=1)  # [models, 8], by symbol

    @torch.no_grad()
    def __call__(self, weights: Tensor, symbol: Tensor) -> Tensor:
        """Return weights [models, batch, 8, 8] for the models' own, changed."""
        if self.version == "as it is":
            return weights
        model = torch.arange(len(self.by_symbol))[:, None, None]
        if self.version == "usual":
            return self.by_symbol[model[..., None], symbol[..., :, None], symbol[..., None, :]]
        lean = torch.zeros_like(weights[..., 0])
        if self.version == "varying":
            lean = _lean(weights, symbol) - self.lean[model, symbol]
        following, before = neighbours(symbol)
        both = (weights * (following | before)).sum(dim=-1)
        share = lean.sigmoid()
        changed = torch.where(following, (both * share)[..., None], weights)
        return torch.where(before, (both * (1 - share))[..., None], changed)


def neighbours(symbol: Tensor) -> tuple[Tensor, Tensor]:
    """Return for symbols [..., 8] which key is the next and which the previous symbol of a query, [..., 8, 8] each."""
    ahead = (symbol[..., None, :] - symbol[..., :, None]) % SYMBOLS
    return ahead == 1, ahead == SYMBOLS - 1


def _lean(weights: Tensor, symbol: Tensor) -> Tensor:
    """Return ln(weight on the next symbol / weight on the previous one), [models, batch, 8]."""
    following, before = neighbours(symbol)
    return ((weights * following).sum(dim=-1) / (weights * before).sum(dim=-1)).log()


def mean_by_symbol(weights: Tensor, symbol: Tensor) -> Tensor:
    """Return the mean weight that each symbol gives to each other, [models, 8, 8]."""
    position = symbol.argsort(dim=-1)  # of each symbol
    rows = weights.gather(-2, position[..., :, None].expand_as(weights))
    return rows.gather(-1, position[..., None, :].expand_as(weights)).mean(dim=1)


def retrain(seeds: Sequence[int], version: str, models: Ring) -> list[float]:
    """Return the share of right answers once the small network has been trained for weights changed in this way."""
    changed = Weights(version, models)
    copy = Ring(models.kind, seeds)
    for name, parameter in models.parameters.items():
        copy.parameters[name].data.copy_(parameter.data)
    right: list[float] = copy.train(RETRAINING_STEPS, changed).examine(changed=changed)["right"]
    return right


def batch(generators: Sequence[torch.Generator], size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return symbols, colours and targets, [models, size, 8] each: a shuffled ring and its colours in each row."""
    symbol = torch.stack([torch.rand(size, SYMBOLS, generator=one).argsort(dim=-1) for one in generators])
    colour = torch.stack([torch.randint(COLOURS, (size, SYMBOLS), generator=one) for one in generators])
    position = symbol.argsort(dim=-1)  # of each symbol
    return symbol, colour, colour.gather(-1, position.gather(-1, (symbol + 1) % SYMBOLS))


@cache
def longest_trained(kind: str, seeds: tuple[int, ...]) -> Ring:
    """Return models trained with the larger budget."""
    return Ring(kind, seeds).train(BUDGETS[-1])


def examined(kind: str, steps: int, seeds: Sequence[int]) -> dict[str, Any]:
    """Return what newly trained models do."""
    return rounded(Ring(kind, seeds).train(steps).examine())


def raced(kind: str, rate: float, seeds: Sequence[int]) -> dict[str, list[float]]:
    """Return the rounded shares of right answers of new models after few steps at this rate, {steps: [models]}."""
    return {str(number): rounded(Ring(kind, seeds).train(number, rate=rate).examine()["right"]) for number in EARLY}


def retrained(version: str, seeds: Sequence[int]) -> list[float]:
    """Return the rounded shares of `retrain`."""
    return rounded(retrain(seeds, version, longest_trained(RETRAINED, tuple(seeds))))


def steps(seeds: Sequence[int]) -> Steps:
    """Train every kind with all budgets, two at several rates, and one of them with changed weights."""
    for kind, number in itertools.product(KINDS, BUDGETS):
        yield Step(("found", kind, str(number)), examined, kind, number, seeds)
    for kind, rate in itertools.product(RACED, RATES):
        yield Step(("rates", kind, f"{rate:g}"), raced, kind, rate, seeds)
    for version in VERSIONS:
        yield Step(("retrained", version), retrained, version, seeds)


STUDY = Study("ring", __doc__, steps, seeds=range(5))


if __name__ == "__main__":
    STUDY.command()
