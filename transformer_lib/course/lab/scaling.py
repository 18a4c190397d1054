"""What is the division by √d_k for? One lookup learned with it and without, at many learning rates (notebook 04).

`load_results()["steps"]["Adam"]["256"]["not divided"]` has a list of steps for each rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ..._validate import check_int
from . import stored

load_results = stored.loader("scaling.json")
SYMBOLS, FEATURES, BATCH_SIZE = 8, 32, 32
WIDTHS = (16, 64, 256)
STEPS = 1250  # the limit: a run that has not learned by then is stored as null
OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {"Adam": torch.optim.Adam, "SGD": torch.optim.SGD}


@dataclass(frozen=True)
class Version:
    """How the scores are made and trained, as powers of d_k.

    Args:
        power: multiplies q · k. start: multiplies the first W_Q.
        query_rate: multiplies the learning rate of W_Q.
    """

    power: float
    start: float = 0.0
    query_rate: float = 0.0


VERSIONS = {
    "divided by √d_k": Version(-0.5),
    "not divided": Version(0.0),
    "small start": Version(0.0, start=-0.5),
    "divided by d_k": Version(-1.0),
}

# For Adam: the small start with steps as small as the divided model's, which makes it that, and the other start.
CONTROLS = {
    "small start, small steps": Version(0.0, start=-0.5, query_rate=-0.5),
    "not divided, small steps": Version(0.0, query_rate=-0.5),
}


class Lookup:
    """Models side by side, each one attention and a readout; every token must fetch what another one carries.

    A sequence holds each of 8 symbols once, shuffled, and each token also carries one of 8 payloads. A token is the sum
    of two random vectors, one for each. The target of a token is the payload of the token whose symbol comes next, and
    after the last comes the first. So a query has to say "my symbol plus one", and a key "my symbol".

    Args:
        d_k: width of queries and keys. version: a key of VERSIONS or CONTROLS. seeds: one for each model, which decides
            its first weights, its vectors and its batches; models of one seed differ in nothing but the version.
        features: width of a token.

    Raises:
        ValueError: the version is unknown, or a width is not positive.
    """

    def __init__(self, d_k: int, version: str, seeds: Sequence[int], features: int = FEATURES) -> None:
        check_int("d_k", d_k)
        check_int("features", features)
        known = VERSIONS | CONTROLS
        if version not in known:
            raise ValueError(f"version must be one of {', '.join(map(repr, known))}, got {version!r}")
        self.generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        self.symbols = self._draw(SYMBOLS, features)
        self.payloads = self._draw(SYMBOLS, features)
        shapes = {"w_q": d_k, "w_k": d_k, "w_v": features, "readout": SYMBOLS}
        # [models, 1, features, width]: the 1 is broadcast over a batch
        weights = {name: self._draw(1, features, width) / math.sqrt(features) for name, width in shapes.items()}
        weights["w_q"] *= d_k ** known[version].start
        self.weights = {name: weight.requires_grad_() for name, weight in weights.items()}
        self.factor = d_k ** known[version].power
        self.speed = {"w_q": d_k ** known[version].query_rate}

    def _draw(self, *shape: int) -> Tensor:
        """Return normal numbers [models, *shape], each model's from its own generator."""
        return torch.stack([torch.randn(shape, generator=generator) for generator in self.generators])

    def batch(self) -> tuple[Tensor, Tensor]:
        """Return new tokens [models, batch, 8, features] and their targets [models, batch, 8], numbers of payloads."""
        size = (BATCH_SIZE, SYMBOLS)
        symbol = torch.stack([torch.rand(size, generator=one).argsort(dim=-1) for one in self.generators])
        payload = torch.stack([torch.randint(SYMBOLS, size, generator=one) for one in self.generators])
        position = symbol.argsort(dim=-1)  # of each symbol
        target = payload.gather(-1, position.gather(-1, (symbol + 1) % SYMBOLS))
        model = torch.arange(len(self.generators))[:, None, None]
        return self.symbols[model, symbol] + self.payloads[model, payload], target

    def scores(self, tokens: Tensor) -> Tensor:
        """Return the scores [models, batch, 8, 8] of all pairs of tokens."""
        query, key = tokens @ self.weights["w_q"], tokens @ self.weights["w_k"]
        return self.factor * query @ key.mT

    def logits(self, tokens: Tensor) -> Tensor:
        """Return a logit for each payload, [models, batch, 8, 8]."""
        value = tokens @ self.weights["w_v"]
        return self.scores(tokens).softmax(dim=-1) @ value @ self.weights["readout"]

    def losses(self, tokens: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean cross-entropy and the accuracy of each model, [models] each."""
        logits = self.logits(tokens)  # [models, batch, 8, 8]
        loss = F.cross_entropy(logits.movedim(-1, 1), target, reduction="none").mean(dim=(1, 2))
        return loss, (logits.argmax(dim=-1) == target).float().mean(dim=(1, 2))

    def train(self, optimizer: str, rate: float, steps: int = STEPS) -> Iterator[tuple[Tensor, Tensor]]:
        """Take one step after another; yields loss and accuracy [models] before each, on a batch never seen."""
        groups = [{"params": [weight], "lr": rate * self.speed.get(name, 1)} for name, weight in self.weights.items()]
        chosen = OPTIMIZERS[optimizer](groups)
        for _ in range(steps):
            loss, accuracy = self.losses(*self.batch())
            yield loss.detach(), accuracy
            chosen.zero_grad()
            loss.sum().backward()  # no weight is shared, so each model gets the gradient of its own loss
            chosen.step()


def curves(d_k: int, version: str, optimizer: str, rate: float, seeds: Sequence[int], steps: int) -> tuple[Tensor, ...]:
    """Return losses and accuracies [models, steps] of a training."""
    before_each_step = list(Lookup(d_k, version, seeds).train(optimizer, rate, steps))
    return torch.stack([loss for loss, _ in before_each_step], dim=1), torch.stack(
        [right for _, right in before_each_step], dim=1
    )


def score_change(
    d_k: int, version: str, optimizer: str, seeds: Sequence[int], rate: float = 1e-6, features: int = FEATURES
) -> list[float]:
    """Return how far the scores of a batch move in the first step, per unit of the learning rate, for each model.

    The root of the mean square over all pairs of tokens. The rate is so small that twice as large a step would move
    them twice as far. In float64, in which such small changes are not lost to rounding.
    """
    models = Lookup(d_k, version, seeds, features)
    models.symbols, models.payloads = models.symbols.double(), models.payloads.double()
    models.weights = {name: weight.detach().double().requires_grad_() for name, weight in models.weights.items()}
    chosen = OPTIMIZERS[optimizer](models.weights.values(), lr=rate)
    tokens, target = models.batch()
    before = models.scores(tokens).detach()
    models.losses(tokens, target)[0].sum().backward()
    chosen.step()
    change = models.scores(tokens).detach() - before
    return (change.square().mean(dim=(1, 2, 3)).sqrt() / rate).tolist()
