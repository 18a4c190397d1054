"""What do residuals and norms do for a deep stack? Before training, and in training (notebook 09)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.course.lab import depth as lab
from transformer_lib.model.layers import LayerNorm
from transformer_lib.model.positional import sinusoidal_encoding

from .engine import Step, Steps, Study

SYMBOLS, TOKENS, BATCH_SIZE, GOAL = 10, 10, 32, 0.95
CHANCE = 1 / SYMBOLS
AROUND = ((True, "none"), (True, "post"), (True, "pre"), (False, "post"))
SETUPS = (
    *(lab.Setup(2, *around, *start) for around in AROUND[:3] for start in product(lab.GAINS, lab.ALL_RATES)),
    *(lab.Setup(2, *AROUND[3], *start) for start in product(lab.GAINS, lab.ALL_RATES[:3])),
    *(
        lab.Setup(2, True, norm, *start, detached=True)
        for norm in ("post", "pre")
        for start in product(lab.GAINS, lab.ALL_RATES)
    ),
    *(lab.Setup(12, *around, *start) for around in AROUND[1:3] for start in product(lab.GAINS, lab.RATES)),
    *(lab.Setup(12, True, "post", *start, warmup=lab.WARMUP) for start in product(lab.GAINS, lab.RATES)),
    *(lab.Setup(12, *around, *start) for around in (AROUND[0], AROUND[3]) for start in product(lab.GAINS, lab.RATES)),
)


class Reverser(nn.Module):
    """Reads a row of symbols and writes it backwards: embeddings and positions, blocks, a readout.

    A pre-norm stack ends with a LayerNorm.
    """

    def __init__(self, setup: lab.Setup) -> None:
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS, lab.WIDTH)
        self.register_buffer("positions", sinusoidal_encoding(TOKENS, lab.WIDTH), persistent=False)
        norms = {"gain": setup.gain, "detached": setup.detached}
        blocks = (lab.Block(setup.residual, setup.norm, **norms) for _ in range(setup.n_blocks))
        last = lab.DetachedNorm if setup.detached else LayerNorm
        self.blocks = nn.Sequential(*blocks, last(lab.WIDTH) if setup.norm == "pre" else nn.Identity())
        self.readout = nn.Linear(lab.WIDTH, SYMBOLS)

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits [batch, TOKENS, SYMBOLS] for ids [batch, TOKENS]."""
        return self.readout(self.blocks(self.embedding(ids) + self.positions))


@lab._single_precision()
def train_reverser(setup: lab.Setup, seed: int, steps: int = lab.STEPS) -> dict:
    """Train until GOAL of a fresh batch's tokens are right, at most `steps` steps.

    Returns steps (None: not reached), first_loss, and accuracy: the share of right tokens on 200 new rows at the end.
    """
    torch.manual_seed(seed)
    model = Reverser(setup)
    optimizer = torch.optim.Adam(model.parameters(), setup.rate, fused=True)
    first_loss, reached = None, None
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = setup.rate * min(1, (step + 1) / (setup.warmup + 1))
        ids = torch.randint(SYMBOLS, (BATCH_SIZE, TOKENS))
        logits = model(ids)
        loss = F.cross_entropy(logits.flatten(0, 1), ids.flip(1).flatten())
        first_loss = loss.item() if first_loss is None else first_loss
        if _right(logits, ids) >= GOAL:
            reached = step
            break
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    test = torch.randint(SYMBOLS, (200, TOKENS), generator=torch.Generator().manual_seed(SYMBOLS))
    with torch.no_grad():
        accuracy = _right(model(test), test)
    return {"steps": reached, "first_loss": round(first_loss, 2), "accuracy": round(accuracy, 3)}


def _right(logits: Tensor, ids: Tensor) -> float:
    return (logits.argmax(dim=-1) == ids.flip(1)).double().mean().item()


def run_setup(setup: lab.Setup, seeds: Sequence[int]) -> dict[str, list[Any]]:
    """Return steps, first loss and accuracy of a set-up, each a list over the seeds."""
    each = [train_reverser(setup, seed) for seed in seeds]
    return {name: [one[name] for one in each] for name in each[0]}


def steps(seeds: Sequence[int]) -> Steps:
    """Train every set-up with all seeds."""
    for setup in SETUPS:
        yield Step(("runs", setup), run_setup, setup, seeds)


STUDY = Study("depth", __doc__, steps, constants={"steps": lab.STEPS}, indent=1)


if __name__ == "__main__":
    STUDY.command()
