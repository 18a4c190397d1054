"""Which positions work, and which beyond the trained length? Copying the token two back (notebook 06)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...model.masks import causal_mask
from ...model.multihead import MultiHeadAttention
from ...model.positional import RelativeBias, RotaryPosition, make_position
from . import stored

load_results = stored.loader("extrapolation.json")
TRAINED, TESTED, BACK = 16, 64, 2  # tokens in a row: in training, in the test; how far back the answer is
SYMBOLS, WIDTH, HEADS, BATCH_SIZE, LEARNING_RATE = 12, 64, 2, 64, 3e-3
BUDGETS = (500, 2500)  # steps
SCHEMES = (
    "none",
    "one number",
    "sinusoidal in degrees",
    "sinusoidal",
    "learned",
    "rotary",
    "relative, clipped at 8",
    "relative, clipped at 16",
    "one number, one head",
    "sinusoidal, one head",
)


class Copier(nn.Module):
    """One layer of causal attention that says, at every position, which symbol was `BACK` positions before.

    Args:
        scheme: one of SCHEMES. In training no token is more than 15 positions back, so "relative, clipped at 16"
            has an entry for "16 and more" that is never trained; the one clipped at 8 trains all its entries.
    """

    def __init__(self, scheme: str) -> None:
        super().__init__()
        if scheme not in SCHEMES:
            raise ValueError(f"scheme must be one of {', '.join(map(repr, SCHEMES))}, got {scheme!r}")
        self.embedding = nn.Embedding(SYMBOLS, WIDTH)
        self.positions = _added(scheme.partition(",")[0])
        heads = 1 if scheme.endswith("one head") else HEADS
        self.attention = MultiHeadAttention(WIDTH, heads, position=_inside(scheme))
        self.head = nn.Linear(WIDTH, SYMBOLS)

    def forward(self, ids: Tensor, window: int = TESTED) -> Tensor:
        """Return logits [batch, length, SYMBOLS] for ids [batch, length], length at most TESTED.

        Every token sees itself and the window − 1 tokens before it.
        """
        x = self.positions(self.embedding(ids))
        return self.head(self.attention(x, x, x, _window_mask(ids.shape[1], window)))

    def weights(self, ids: Tensor) -> Tensor:
        """Return the weights [batch, n_heads, length, length] for ids [batch, length]."""
        x = self.positions(self.embedding(ids))
        return self.attention(x, x, x, causal_mask(ids.shape[1]), return_weights=True)[1]

    def hands(self, head: int) -> Tensor:
        """Return the waves of which this head's scores are made, a row (cosine, sine) for each pair: [d_k / 2, 2].

        With rotary positions the score of the mean query with the mean key k positions back is the sum over the pairs
        of cosine · cos(k ω_j) + sine · sin(k ω_j), divided by √d_k as every score.
        """
        x = self.embedding.weight
        query, key = (layer(x).mean(dim=0).chunk(HEADS)[head] for layer in (self.attention.w_q, self.attention.w_k))
        (q_even, q_odd), (k_even, k_odd) = query.view(-1, 2).T, key.view(-1, 2).T
        waves = torch.stack((q_even * k_even + q_odd * k_odd, q_even * k_odd - q_odd * k_even), dim=-1)
        return waves / len(query) ** 0.5


class _OneNumber(nn.Module):
    """Adds position / TRAINED, times one learned vector."""

    def __init__(self) -> None:
        super().__init__()
        self.direction = nn.Parameter(torch.randn(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.arange(x.shape[1])[:, None] / TRAINED * self.direction


class _InDegrees(nn.Module):
    """Adds sines and cosines whose angles p · ω_j are taken as degrees."""

    def forward(self, x: Tensor) -> Tensor:
        frequencies = 10000.0 ** (-torch.arange(0, WIDTH, 2) / WIDTH)
        angles = torch.deg2rad(torch.arange(x.shape[1])[:, None] * frequencies)
        return x + torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)


def _added(kind: str) -> nn.Module:
    """Return what is applied to the embeddings."""
    ours = {"one number": _OneNumber, "sinusoidal in degrees": _InDegrees}
    return ours[kind]() if kind in ours else make_position(kind, TESTED, WIDTH)


def _inside(scheme: str) -> RotaryPosition | RelativeBias | None:
    if scheme.startswith("relative"):
        return RelativeBias(HEADS, max_offset=int(scheme.split()[-1]))
    return RotaryPosition() if scheme == "rotary" else None


def _window_mask(length: int, window: int) -> Tensor:
    causal = causal_mask(length)
    return causal & ~causal.tril(-window)


def train_copier(scheme: str, seed: int, budgets: Sequence[int] = BUDGETS) -> Iterator[Copier]:
    """Train a new copier on random rows of TRAINED symbols, a fresh batch at every step; yield it at every budget.

    It is the same copier every time, so measure it before you ask for the next.
    """
    torch.manual_seed(seed)
    copier, generator = Copier(scheme), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(copier.parameters(), LEARNING_RATE)
    for step in range(1, max(budgets) + 1):
        ids = torch.randint(SYMBOLS, (BATCH_SIZE, TRAINED), generator=generator)
        loss = F.cross_entropy(copier(ids)[:, BACK:].flatten(0, 1), ids[:, :-BACK].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step in budgets:
            yield copier


def measured(name: str, scheme: str, steps: int) -> Tensor:
    """Return one of the stored MEASURES for all seeds: [seeds, positions from BACK on], or [seeds, offsets from 0]."""
    chosen = [run[name] for run in load_results()["runs"] if (run["scheme"], run["steps"]) == (scheme, steps)]
    return torch.tensor(chosen, dtype=torch.float64)


def hands(steps: int) -> Tensor:
    """Return the waves of which the scores of the rotary copiers' looking heads are made: [seeds, pairs, TESTED].

    Their sum over the pairs is the mean score of a letter so many positions back; `Copier.hands` says of what they are.
    """
    found = [run["waves"] for run in load_results()["hands"] if run["steps"] == steps]
    waves = torch.tensor(found, dtype=torch.float64)  # [seeds, pairs, cosine and sine]
    frequencies = 10000.0 ** (-torch.arange(waves.shape[1], dtype=torch.float64) / waves.shape[1])
    angles = torch.arange(TESTED) * frequencies[:, None]  # [pairs, TESTED]
    return waves[..., :1] * angles.cos() + waves[..., 1:] * angles.sin()
