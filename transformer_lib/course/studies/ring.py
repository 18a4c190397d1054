"""What can attention without weights point at, and what can it answer? Models of a ring of symbols (notebook 02).

`python -m transformer_lib.course.studies.ring` trains every kind twice, briefly and for long, and writes data/ring.json
after each; what the file already has is not run again. It takes some minutes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..._files import DATA
from . import stored

RESULTS = DATA / "ring.json"
SYMBOLS, COLOURS, FEATURES, HIDDEN = 8, 4, 32, 64
BATCH_SIZE, RATE, BUDGETS = 64, 3e-3, (400, 3000)
KINDS = {  # length of the first vectors, as a multiple of that of normal numbers
    "even": 0.2,  # every weight is 1/8, whatever the scores
    "long vectors": 1.0,  # the scores are X Xᵀ
    "similarity": 0.2,  # likewise, and the vectors start a fifth as long
    "others only": 0.2,  # likewise, and no token may read itself
    "weighted": 0.2,  # the scores are (X W_Q) (X W_K)ᵀ
}


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
        if kind == "weighted":
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
        if self.kind == "weighted":
            query, key = x @ self.parameters["w_q"][:, None], x @ self.parameters["w_k"][:, None]
        scores = query @ key.mT / math.sqrt(FEATURES)
        if self.kind == "even":
            scores = torch.zeros_like(scores)
        if self.kind == "others only":
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

    def train(self, steps: int) -> Ring:
        """Take steps of Adam on new batches; returns the models themselves."""
        optimizer = torch.optim.Adam(self.parameters.values(), lr=RATE)
        for _ in range(steps):
            symbol, colour, target = batch(self.generators, BATCH_SIZE)
            x = self.tokens(symbol, colour)
            loss = F.cross_entropy(self.logits(x, self.weights(x)).flatten(0, 2), target.flatten())
            optimizer.zero_grad()
            # no parameter is shared: times their number, each model gets the gradient of its own mean loss
            (loss * len(self.generators)).backward()
            optimizer.step()
        return self

    @torch.no_grad()
    def examine(self, questions: int = 1000) -> dict[str, Any]:
        """Return what the models do on new sequences, for each model.

        "right": the share of right answers; "equal": likewise, once the weights on next and previous are made equal and
        their sum is kept; "usual": once a symbol gives to each other one, in every sequence, what it gives on average.
        "own", "next", "previous": the mean weight on the token itself, on the one it must read, and on the one before.
        "own of each" and so on [models, 8]: the same weights, symbol by symbol.
        """
        symbol, colour, target = batch([torch.Generator().manual_seed(99) for _ in self.generators], questions)
        x = self.tokens(symbol, colour)
        weights = self.weights(x)
        by_symbol = _mean_by_symbol(weights, symbol)
        model = torch.arange(len(self.generators))[:, None, None, None]
        versions = {
            "right": weights,
            "equal": _without_lean(weights, symbol),
            "usual": by_symbol[model, symbol[..., :, None], symbol[..., None, :]],
        }
        found: dict[str, Any] = {
            name: (self.logits(x, some).argmax(dim=-1) == target).double().mean(dim=(1, 2)).tolist()
            for name, some in versions.items()
        }
        for name, steps in (("own", 0), ("next", 1), ("previous", -1)):
            of_each = by_symbol.roll(-steps, dims=-1).diagonal(dim1=-2, dim2=-1)  # [models, 8]
            found |= {name: of_each.mean(dim=-1).tolist(), f"{name} of each": of_each.tolist()}
        return found


def batch(generators: Sequence[torch.Generator], size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return symbols, colours and targets, [models, size, 8] each: a shuffled ring and its colours in each row."""
    symbol = torch.stack([torch.rand(size, SYMBOLS, generator=one).argsort(dim=-1) for one in generators])
    colour = torch.stack([torch.randint(COLOURS, (size, SYMBOLS), generator=one) for one in generators])
    position = symbol.argsort(dim=-1)  # where each symbol stands
    return symbol, colour, colour.gather(-1, position.gather(-1, (symbol + 1) % SYMBOLS))


def _mean_by_symbol(weights: Tensor, symbol: Tensor) -> Tensor:
    """Return the mean weight that each symbol gives to each other, [models, 8, 8]."""
    position = symbol.argsort(dim=-1)  # where each symbol stands
    rows = weights.gather(-2, position[..., :, None].expand_as(weights))
    return rows.gather(-1, position[..., None, :].expand_as(weights)).mean(dim=1)


def _without_lean(weights: Tensor, symbol: Tensor) -> Tensor:
    """Return weights whose shares for the next and the previous symbol are equal, with the same sum."""
    ahead = (symbol[..., None, :] - symbol[..., :, None]) % SYMBOLS  # 1: the key is the one to read
    neighbour = (ahead == 1) | (ahead == SYMBOLS - 1)
    both = (weights * neighbour).sum(dim=-1, keepdim=True)
    return torch.where(neighbour, both / 2, weights)


def run(seeds: Sequence[int], path: Path = RESULTS) -> dict[str, Any]:
    """Run what `path` does not have yet, and write it after each kind and budget."""
    content = load_results(path) if path.exists() else {"found": {}}
    content |= {"command": stored.command("ring", seeds), "date": date.today().isoformat(), "seeds": list(seeds)}
    for kind in KINDS:
        of_kind = content["found"].setdefault(kind, {})
        for steps in BUDGETS:
            if str(steps) not in of_kind:
                of_kind[str(steps)] = _rounded(Ring(kind, seeds).train(steps).examine())
                stored.save(path, content)
                print(kind, steps, of_kind[str(steps)]["right"], flush=True)
    return content


def _rounded(found: Any) -> Any:
    """Return numbers in nested lists and dictionaries with four digits behind the point."""
    if isinstance(found, dict):
        return {name: _rounded(value) for name, value in found.items()}
    return [_rounded(value) for value in found] if isinstance(found, list) else round(found, 4)


def load_results(path: Path = RESULTS) -> dict[str, Any]:
    """Return what the command wrote; `["found"]["similarity"]["3000"]["right"]` has a number for each seed."""
    return stored.read(path)


def main() -> None:
    """Run the command line."""
    run(*stored.arguments(__doc__, RESULTS, seeds=(0, 1, 2, 3, 4)))


if __name__ == "__main__":
    main()
