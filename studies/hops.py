"""What does a second encoder layer buy? Tokens follow pointers, one or several hops (notebook 10).

`python -m studies.hops` counts the steps that each encoder needs, and writes data/hops.json.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib._streams import run_command
from transformer_lib.course.lab.hops import HOPS
from transformer_lib.model.encoder import Encoder

from .engine import Study, at_once

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
    found = names
    for _ in range(hops):
        found = pointers.gather(1, found)
    parts = names, pointers.gather(1, names), colours.gather(1, names)
    return torch.cat([F.one_hot(part, NAMES) for part in parts], dim=-1).float(), colours.gather(1, found)


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


def last_share(right: Sequence[float]) -> float:
    """Return the share of right answers in the last WINDOW steps of a run."""
    return round(sum(right[-WINDOW:]) / len(right[-WINDOW:]), 3)


def measured(seeds: Sequence[int], cap: int = CAP) -> dict:
    """Return what is stored: the cap, the number of parameters, and the steps needed by shape and hops, per seed.

    "unreached" has the share of right answers in the last WINDOW steps of the runs without; "other rates" has the
    steps for two hops at other learning rates, by rate and shape.
    """
    sizes = {shape: sum(each.numel() for each in Follower(shape).parameters()) for shape in SHAPES}
    found: dict[str, dict] = {shape: {} for shape in SHAPES}
    unreached: dict[str, dict] = {}
    for shape, hops in itertools.product(SHAPES, HOPS):
        runs = [train(shape, hops, seed, cap) for seed in seeds]
        found[shape][str(hops)] = [steps_of(right) for right in runs]
        if None in found[shape][str(hops)]:
            unreached.setdefault(shape, {})[str(hops)] = [last_share(right) for right in runs]
    other = {
        str(rate): {
            shape: [steps_of(train(shape, 2, seed, cap, rate)) for seed in seeds]
            for shape in ("one layer", "two layers")
        }
        for rate in OTHER_RATES
    }
    return {"cap": cap, "parameters": sizes, "steps": found, "unreached": unreached, "other rates": other}


STUDY = Study("hops", __doc__, at_once(measured))


if __name__ == "__main__":
    run_command(STUDY.main)
