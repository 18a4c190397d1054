"""What does a second encoder layer buy? Tokens follow pointers, one or several hops (notebook 10)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.baselines import count_parameters
from transformer_lib.course.lab.hops import HOPS
from transformer_lib.model.encoder import Encoder

from .engine import Step, Steps, Study

NAMES = 8  # names, pointers and colours, and tokens of a sequence
BATCH_SIZE, LEARNING_RATE, GOAL, WINDOW, CAP = 64, 3e-3, 0.95, 20, 3_000
OTHER_RATES = (1e-3, 1e-2)  # for two hops, with one and with two layers
SHAPES = {  # n_layers, d_model, n_heads, d_ff
    "one layer": (1, 32, 2, 64),
    "one wide layer": (1, 48, 4, 128),
    "two layers": (2, 32, 2, 64),
    "three layers": (3, 32, 2, 64),
}


def sequences(n: int, hops: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return n sequences [n, NAMES, 3 · NAMES] and the colours that their tokens have to name, [n, NAMES].

    Each token has a name of its own, the name of another token, its pointer, and a colour, as three one-hot vectors
    side by side. The pointers form one circle. A token has to name the colour that it finds after `hops` hops.
    """

    def shuffled() -> Tensor:
        return torch.rand(n, NAMES, generator=generator).argsort(dim=1)

    circle, names, colours = shuffled(), shuffled(), shuffled()
    pointers = torch.empty_like(circle).scatter_(1, circle, circle.roll(-1, dims=1))  # by name, as colours are
    target = names
    for _ in range(hops):
        target = pointers.gather(1, target)
    parts = names, pointers.gather(1, names), colours.gather(1, names)
    return torch.cat([F.one_hot(part, NAMES) for part in parts], dim=-1).float(), colours.gather(1, target)


class Follower(nn.Module):
    """A linear map from the features to d_model, an encoder (pre-norm), and a linear map to the scores of the colours.

    Args:
        shape: one of SHAPES.

    Raises:
        ValueError: there is no such shape.
    """

    def __init__(self, shape: str) -> None:
        super().__init__()
        if shape not in SHAPES:
            raise ValueError(f"shape must be one of {', '.join(map(repr, SHAPES))}, got {shape!r}")
        n_layers, d_model, n_heads, d_ff = SHAPES[shape]
        self.read_in = nn.Linear(3 * NAMES, d_model)
        self.encoder = Encoder(n_layers, d_model, n_heads, d_ff, norm_first=True)
        self.read_out = nn.Linear(d_model, NAMES)

    def forward(self, x: Tensor) -> Tensor:
        """Return scores [batch, NAMES, NAMES] for sequences [batch, NAMES, 3 · NAMES]; any token may read any."""
        return self.read_out(self.encoder(self.read_in(x)))


def train(shape: str, hops: int, seed: int, steps: int = CAP, rate: float = LEARNING_RATE) -> list[float]:
    """Train on fresh sequences until GOAL of the answers are right in the mean of WINDOW batches, or for `steps` steps.

    Return the share of right answers of each step, before the weights change.
    """
    torch.manual_seed(seed)
    model, generator = Follower(shape), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), rate)
    right: list[float] = []
    while len(right) < steps and not reached(right):
        x, colours = sequences(BATCH_SIZE, hops, generator)
        scores = model(x)
        loss = F.cross_entropy(scores.flatten(0, 1), colours.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right.append((scores.argmax(dim=-1) == colours).float().mean().item())
    return right


def reached(right: Sequence[float]) -> bool:
    """Return whether the mean of the last WINDOW shares is at least GOAL."""
    return len(right) >= WINDOW and sum(right[-WINDOW:]) / WINDOW >= GOAL


def steps_of(right: Sequence[float]) -> int | None:
    """Return after how many steps a run reached GOAL, or None if it was stopped before."""
    return len(right) if reached(right) else None


@cache
def trained(shape: str, hops: int, seed: int, rate: float = LEARNING_RATE) -> list[float]:
    """Return what `train` does, once for the steps needed and for what a run without end had reached."""
    return train(shape, hops, seed, rate=rate)


def steps_needed(shape: str, hops: int, seeds: Sequence[int], *rate: float) -> list[int | None]:
    """Return `steps_of` of each seed."""
    return [steps_of(trained(shape, hops, seed, *rate)) for seed in seeds]


def unreached(seeds: Sequence[int]) -> dict[str, dict[str, list[float]]]:
    """Return, where a run did not reach GOAL, the shares right in the last WINDOW steps, {shape: {hops: shares}}."""
    shares: dict[str, dict[str, list[float]]] = {}
    for shape, hops in itertools.product(SHAPES, HOPS):
        ends = [trained(shape, hops, seed)[-WINDOW:] for seed in seeds]
        if None in steps_needed(shape, hops, seeds):
            shares.setdefault(shape, {})[str(hops)] = [round(sum(end) / len(end), 3) for end in ends]
    return shares


def steps(seeds: Sequence[int]) -> Steps:
    """Train every shape for every number of hops, and two of them at other rates for two hops."""
    for shape in SHAPES:
        yield Step(("parameters", shape), count_parameters, Follower(shape))
    for shape, hops in itertools.product(SHAPES, HOPS):
        yield Step(("steps", shape, str(hops)), steps_needed, shape, hops, seeds)
    yield Step("unreached", unreached, seeds)
    for rate, shape in itertools.product(OTHER_RATES, ("one layer", "two layers")):
        yield Step(("other rates", str(rate), shape), steps_needed, shape, 2, seeds, rate)


STUDY = Study("hops", __doc__, steps, constants={"cap": CAP})


if __name__ == "__main__":
    STUDY.command()
