"""What is the feed-forward layer for? Tables of pairs learned with it and without (notebook 09)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lib.course.lab.tables import BUDGETS, NARROW, SIZES, WIDTH, Setup

from .engine import Step, Steps, Study

RATES = (3e-3, 1e-2)
SETUPS = tuple(
    setup
    for symbols in SIZES[::-1]
    for setup in (
        *(Setup(symbols, d_ff) for d_ff in (0, 4, 8, 16, 32, 64)),
        # about as many weights as 16, 32 and 64 hidden units have
        *(Setup(symbols, n_heads=n_heads) for n_heads in (3, 4, 6)),
        *(Setup(symbols, n_heads=n_heads, head=NARROW) for n_heads in (12, 16, 24)),
        Setup(symbols, 64, relu=False),
    )
)


class Layer:
    """Models side by side, each one layer that is asked for the answer to a pair of symbols.

    Three tokens come in, the first symbol, the second and "=". The row of "=" reads all three, passes the feed-forward
    network and is read out; both sub-layers have residual connections. `table` [models, pairs] has the random answers.

    Args:
        setup: the layer. seeds: one for each model, which decides its table and its first weights.
    """

    def __init__(self, setup: Setup, seeds: Sequence[int]) -> None:
        self.setup, n = setup, setup.symbols
        self.generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        self.table = torch.stack([torch.randint(n, (n * n,), generator=one) for one in self.generators])
        inside = setup.head * setup.n_heads
        shapes = {"w_q": (WIDTH, inside), "w_k": (WIDTH, inside), "w_v": (WIDTH, inside), "w_o": (inside, WIDTH)}
        weights = {"first": self._draw(n, WIDTH), "second": self._draw(n, WIDTH), "ask": self._draw(1, WIDTH)}
        shapes |= {"readout": (WIDTH, n)}
        if setup.d_ff:
            shapes |= {"w_1": (WIDTH, setup.d_ff), "w_2": (setup.d_ff, WIDTH)}
        weights |= {name: self._draw(*shape) / math.sqrt(shape[0]) for name, shape in shapes.items()}
        if setup.d_ff:
            weights["b_1"], weights["b_2"] = (torch.zeros(len(seeds), 1, width) for width in (setup.d_ff, WIDTH))
        self.weights = {name: weight.requires_grad_() for name, weight in weights.items()}

    def _draw(self, *shape: int) -> Tensor:
        """Return normal numbers [models, *shape], each model's from its own generator."""
        return torch.stack([torch.randn(shape, generator=one) for one in self.generators])

    def attended(self) -> Tensor:
        """Return the row of "=" after attention, for all pairs [models, pairs, WIDTH].

        The query is the same for all pairs, and a token's score and value depend on the token alone: they are computed
        once for each token, and combined for each pair.
        """
        w, n = self.weights, self.setup.symbols
        tokens = torch.cat([w["first"], w["second"], w["ask"]], dim=1)  # [models, 2n + 1, WIDTH]
        query, key, value = (
            (x @ w[name]).unflatten(-1, (-1, self.setup.head))
            for x, name in ((w["ask"], "w_q"), (tokens, "w_k"), (tokens, "w_v"))
        )
        scores = (query * key).sum(dim=-1, keepdim=True) / math.sqrt(self.setup.head)  # [models, 2n + 1, n_heads, 1]
        scores, values = (  # of the first symbol, the second, and "="
            (
                x[:, :n, None].expand(-1, -1, n, -1, -1),
                x[:, None, n:-1].expand(-1, n, -1, -1, -1),
                x[:, None, None, 2 * n],
            )
            for x in (scores, value)
        )
        weights = torch.stack(torch.broadcast_tensors(*scores)).softmax(dim=0)  # [3, models, n, n, n_heads, 1]
        heads = sum(weight * value for weight, value in zip(weights, values, strict=True))
        return w["ask"] + heads.flatten(3).flatten(1, 2) @ w["w_o"]

    def logits(self) -> Tensor:
        """Return a logit for each answer, [models, pairs, symbols]."""
        w, x = self.weights, self.attended()
        if self.setup.d_ff:
            hidden = x @ w["w_1"] + w["b_1"]
            x = x + (hidden.relu() if self.setup.relu else hidden) @ w["w_2"] + w["b_2"]
        return x @ w["readout"]

    def learned(self, logits: Tensor) -> list[int]:
        """Return for each model how many entries of its table it has right."""
        return (logits.argmax(dim=-1) == self.table).sum(dim=1).tolist()


def train(setup: Setup, rate: float, seeds: Sequence[int], budgets: Sequence[int] = BUDGETS) -> list[list[int]]:
    """Train by Adam on the whole table at each step; return the entries learned after each budget, for each seed.

    Stops early when all models know their tables; the later budgets then have the same numbers.
    """
    models, learned = Layer(setup, seeds), []
    optimizer = torch.optim.Adam(models.weights.values(), rate, fused=True)
    for step in range(budgets[-1] + 1):
        logits = models.logits()
        if step in budgets:
            learned.append(models.learned(logits.detach()))
            if min(learned[-1]) == setup.symbols**2:
                break
        loss = F.cross_entropy(logits.flatten(0, 1), models.table.flatten())
        optimizer.zero_grad()
        (loss * len(seeds)).backward()  # no weight is shared, so each model gets the gradient of its own loss
        optimizer.step()
    return learned + learned[-1:] * (len(budgets) - len(learned))


def at_every_rate(setup: Setup, seeds: Sequence[int]) -> dict[str, Any]:
    """Return the parameters of a set-up, and for each rate, for each budget, the entries that each seed has learned."""
    learned = {str(rate): train(setup, rate, seeds) for rate in RATES}
    return {"parameters": setup.parameters, "learned": learned}


def steps(seeds: Sequence[int]) -> Steps:
    """Train every set-up with all seeds."""
    for setup in SETUPS:
        yield Step(("runs", setup), at_every_rate, setup, seeds)


STUDY = Study("tables", __doc__, steps, constants={"budgets": list(BUDGETS)}, indent=1)


if __name__ == "__main__":
    STUDY.command()
