"""What do residuals and norms do for a deep stack? Before training, and in training (notebook 09)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache

import torch
from torch import Tensor, nn

from ...model.layers import FeedForward, LayerNorm
from ...model.multihead import MultiHeadAttention
from ...model.recording import record_attention
from . import stored

load_results = stored.loader("depth.json")
NORMS = ("none", "post", "pre")
SMALL = 1 / math.sqrt(3)  # the spread of PyTorch's own initialisation of a linear layer: uniform in ± 1/√fan_in
WIDTH, HEADS = 32, 4
STEPS = 900  # the limit: a run that has not reached GOAL by then is stored as null
WARMUP = 200


class DetachedNorm(nn.Module):
    """LayerNorm going forward; going back, mean and deviation count as constants (Xu et al. 2019, DetachNorm)."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.norm = LayerNorm(d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Return x [..., d_model] normalised token by token."""
        mean, variance = x.detach().mean(dim=-1, keepdim=True), x.detach().var(dim=-1, keepdim=True, correction=0)
        return self.norm.weight * (x - mean) / (variance + self.norm.eps).sqrt() + self.norm.bias


class Block(nn.Module):
    """Attention, then a feed-forward layer, each with or without a residual connection and a LayerNorm.

    Args:
        residual: whether x is added to what a sub-layer makes of it.
        norm: "none"; "post", after the addition; "pre", before the sub-layer.
        gain: weights start as N(0, gain² / fan_in), biases as 0.
        feed_forward: without it, attention is the only sub-layer.
        detached: whether the norms are detached ones.
    """

    def __init__(
        self, residual: bool, norm: str, *, gain: float = 1.0, feed_forward: bool = True, detached: bool = False
    ) -> None:
        super().__init__()
        if norm not in NORMS:
            raise ValueError(f"norm must be one of {', '.join(map(repr, NORMS))}, got {norm!r}")
        self.residual, self.norm = residual, norm
        self.attention = MultiHeadAttention(WIDTH, HEADS)
        self.feed_forward = FeedForward(WIDTH, 4 * WIDTH) if feed_forward else None
        kind = DetachedNorm if detached else LayerNorm
        self.norms = nn.ModuleList(nn.Identity() if norm == "none" else kind(WIDTH) for _ in range(2))
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
    """

    activation: tuple[float, ...]
    gradient: tuple[float, ...]
    spread: tuple[float, ...]


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
    return Signals(tuple(map(_rms, states)), tuple(map(_rms, gradients)), tuple(map(_spread, states)))


def _rms(x: Tensor) -> float:
    return x.detach().square().mean().sqrt().item()


def _spread(x: Tensor) -> float:
    x = x.detach()
    return ((x - x.mean(dim=1, keepdim=True)).norm() / x.norm()).item()


@dataclass(frozen=True)
class Setup:
    """One set-up to be trained: its depth, what surrounds the sub-layers, the initial weights, the learning rate.

    Args:
        detached: whether the norms are detached ones.
        warmup: number of steps over which the learning rate rises from 0 in a straight line; 0: none.
    """

    n_blocks: int
    residual: bool
    norm: str
    gain: float
    rate: float
    detached: bool = False
    warmup: int = 0


GAINS, RATES = (SMALL, 1.0), (1e-3, 3e-3)
ALL_RATES = (*RATES, 1e-2, 2e-2, 3e-2)
SHOWN = {  # what notebook 09 compares at twelve blocks: residual and norm, and the steps of warm-up
    "pre-norm": ((True, "pre"), 0),
    "post-norm": ((True, "post"), 0),
    "post-norm, warm-up": ((True, "post"), WARMUP),
    "no norm": ((True, "none"), 0),
    "post-norm, no residual": ((False, "post"), 0),
}


def steps_of(setup: Setup) -> list[int | None]:
    """Return the stored steps of each seed of a set-up; None: it had not reached GOAL after STEPS.

    Raises:
        ValueError: the set-up was not trained.
    """
    records = stored.runs_of(load_results(), **asdict(setup))
    if not records:
        raise ValueError(f"setup must be one of those stored in depth.json, got {setup}")
    return records[0]["steps"]
