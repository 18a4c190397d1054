"""What do residuals and norms do for a deep stack? Before training, and in training (notebook 09).

`python -m transformer_lib.course.studies.depth` trains every set-up of SETUPS and writes data/depth.json.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..._files import DATA
from ...model.layers import FeedForward, LayerNorm
from ...model.multihead import MultiHeadAttention
from ...model.positional import sinusoidal_encoding
from ...model.recording import record_attention
from . import stored

RESULTS = DATA / "depth.json"
NORMS = ("none", "post", "pre")
SMALL = 1 / math.sqrt(3)  # the spread of PyTorch's own initialisation of a linear layer: uniform in ± 1/√fan_in
WIDTH, HEADS = 32, 4
SYMBOLS, TOKENS, BATCH_SIZE, STEPS, GOAL = 10, 10, 32, 300, 0.95
CHANCE = 1 / SYMBOLS


class Block(nn.Module):
    """Attention, then a feed-forward layer, each with or without a residual connection and a LayerNorm.

    Args:
        residual: whether x is added to what a sub-layer makes of it.
        norm: "none"; "post", after the addition; "pre", before the sub-layer.
        gain: weights start as N(0, gain² / fan_in), biases as 0.
        feed_forward: without it, attention is the only sub-layer.
    """

    def __init__(self, residual: bool, norm: str, *, gain: float = 1.0, feed_forward: bool = True) -> None:
        super().__init__()
        if norm not in NORMS:
            raise ValueError(f"norm must be one of {', '.join(map(repr, NORMS))}, got {norm!r}")
        self.residual, self.norm = residual, norm
        self.attention = MultiHeadAttention(WIDTH, HEADS)
        self.feed_forward = FeedForward(WIDTH, 4 * WIDTH) if feed_forward else None
        self.norms = nn.ModuleList(nn.Identity() if norm == "none" else LayerNorm(WIDTH) for _ in range(2))
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=gain / math.sqrt(module.in_features))
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Return x [batch, tokens, WIDTH] after the sub-layers."""
        x = self._around(lambda y: self.attention(y, y, y), x, self.norms[0])
        return x if self.feed_forward is None else self._around(self.feed_forward, x, self.norms[1])

    def _around(self, sublayer: Callable[[Tensor], Tensor], x: Tensor, norm: nn.Module) -> Tensor:
        y = sublayer(norm(x) if self.norm == "pre" else x)
        y = x + y if self.residual else y
        return norm(y) if self.norm == "post" else y


@dataclass(frozen=True)
class Signals:
    """What `signals` measured before the first block and after each: n_blocks + 1 numbers each.

    Args:
        activation: root mean square of the entries of x.
        gradient: root mean square of the gradient with respect to x; that of the last x is drawn from N(0, 1).
        spread: share of x that the mean of its rows does not explain, ‖x − row mean‖ / ‖x‖; 0: all rows are equal.
        own: share of rows whose most similar row of the input, by cosine, is their own.
        own_centred: the same after the mean of the rows is taken off.
    """

    activation: tuple[float, ...]
    gradient: tuple[float, ...]
    spread: tuple[float, ...]
    own: tuple[float, ...]
    own_centred: tuple[float, ...]


@contextmanager
def _single_precision() -> Iterator[None]:
    """Draw in float32 whatever the default is, so that the same seed gives the same numbers everywhere."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@lru_cache(maxsize=256)
def signals(
    n_blocks: int, residual: bool, norm: str, *, gain: float = 1.0, feed_forward: bool = True, seed: int = 0
) -> Signals:
    """Send 8 × 12 random rows through an untrained stack, and a random gradient back; float64, no final norm."""
    with torch.random.fork_rng(devices=[]), _single_precision():
        torch.manual_seed(seed)
        blocks = [Block(residual, norm, gain=gain, feed_forward=feed_forward).double() for _ in range(n_blocks)]
        x, last = torch.randn(2, 8, 12, WIDTH, dtype=torch.float64)
    states = [x.requires_grad_()]
    # Recording makes attention take the readable path. The fused kernel recomputes the weights for the backward pass
    # from rounded scores; where these grow to 10¹⁶, as they do without norms, its gradients are all wrong.
    with record_attention(nn.ModuleList(blocks)):
        for block in blocks:
            states.append(block(states[-1]))
    gradients = torch.autograd.grad(states[-1], states, last)
    own = tuple(_own(state, x) for state in states)
    centred = tuple(_own(state - state.mean(dim=1, keepdim=True), x) for state in states)
    return Signals(tuple(map(_rms, states)), tuple(map(_rms, gradients)), tuple(map(_spread, states)), own, centred)


def _rms(x: Tensor) -> float:
    return x.detach().square().mean().sqrt().item()


def _spread(x: Tensor) -> float:
    x = x.detach()
    return ((x - x.mean(dim=1, keepdim=True)).norm() / x.norm()).item()


def _own(x: Tensor, start: Tensor) -> float:
    """Return the share of rows i of x [batch, tokens, WIDTH] more similar to start's row i than to any other row."""
    cosines = F.normalize(x.detach(), dim=-1, eps=1e-300) @ F.normalize(start.detach(), dim=-1).mT
    return (cosines.argmax(dim=-1) == torch.arange(x.shape[1])).double().mean().item()


@dataclass(frozen=True)
class Setup:
    """One set-up to be trained: its depth, what surrounds the sub-layers, the initial weights, the learning rate."""

    n_blocks: int
    residual: bool
    norm: str
    gain: float
    rate: float


AROUND = ((True, "none"), (True, "post"), (True, "pre"), (False, "post"))
SETUPS = tuple(
    Setup(n_blocks, residual, norm, gain, rate)
    for n_blocks, rates in ((2, (1e-3, 3e-3, 1e-2)), (12, (1e-3, 3e-3)))
    for (residual, norm), gain, rate in product(AROUND, (SMALL, 1.0), rates)
)


class Reverser(nn.Module):
    """Reads a row of symbols and writes it backwards: embeddings and positions, blocks, a readout.

    A pre-norm stack ends with a LayerNorm.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS, WIDTH)
        self.register_buffer("positions", sinusoidal_encoding(TOKENS, WIDTH), persistent=False)
        blocks = (Block(setup.residual, setup.norm, gain=setup.gain) for _ in range(setup.n_blocks))
        self.blocks = nn.Sequential(*blocks, LayerNorm(WIDTH) if setup.norm == "pre" else nn.Identity())
        self.readout = nn.Linear(WIDTH, SYMBOLS)

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits [batch, TOKENS, SYMBOLS] for ids [batch, TOKENS]."""
        return self.readout(self.blocks(self.embedding(ids) + self.positions))


@_single_precision()
def train_reverser(setup: Setup, seed: int, steps: int = STEPS) -> dict:
    """Train until GOAL of a fresh batch's tokens are right, at most `steps` steps.

    Returns steps (None: not reached), first_loss, and accuracy: the share of right tokens on 200 new rows at the end.
    """
    torch.manual_seed(seed)
    model = Reverser(setup)
    optimizer = torch.optim.Adam(model.parameters(), setup.rate, fused=True)
    first_loss, reached = None, None
    for step in range(steps):
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


def run(seeds: Sequence[int], setups: Sequence[Setup] = SETUPS) -> list[dict]:
    """Return one record per set-up: its fields, and steps, first_loss and accuracy as lists over the seeds."""
    records = []
    for setup in setups:
        found = [train_reverser(setup, seed) for seed in seeds]
        records.append(asdict(setup) | {name: [one[name] for one in found] for name in found[0]})
    return records


def measured(seeds: Sequence[int]) -> dict:
    """Return what is stored: the limit of steps, and the runs."""
    return {"steps": STEPS, "runs": run(seeds)}


def load_results(path: Path = RESULTS) -> dict:
    """Return what the command of this module wrote: command, date, seeds, steps (the limit), runs."""
    return stored.read(path)


def main() -> None:
    """Run the command line."""
    seeds, path = stored.arguments(__doc__, RESULTS)
    stored.measure_and_save("depth", seeds, path, measured, indent=1)


if __name__ == "__main__":
    main()
