"""Which positions work, and which beyond the trained length? Copying the token two back (notebook 06).

`python -m transformer_lib.course.studies.extrapolation` trains every scheme, measures it after 500 and 2,500 steps,
and writes data/extrapolation.json after each training; what the file already has is not trained again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..._files import DATA
from ..._streams import run_command
from ...model.masks import causal_mask
from ...model.multihead import MultiHeadAttention
from ...model.positional import RelativeBias, RotaryPosition, make_position
from . import stored

RESULTS = DATA / "extrapolation.json"
TRAINED, TESTED, BACK = 16, 64, 2  # tokens in a row: in training, in the test; how far back the answer is
SYMBOLS, WIDTH, HEADS, BATCH_SIZE, LEARNING_RATE = 12, 64, 2, 64, 3e-3
BUDGETS = (500, 2500)  # steps
CHANCE = 1 / SYMBOLS
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
MEASURES = ("accuracy", "windowed", "weight", "score")


class Copier(nn.Module):
    """One layer of causal attention that says, at every position, which symbol stood `BACK` positions before.

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


def _test_ids(examples: int) -> Tensor:
    return torch.randint(SYMBOLS, (examples, TESTED), generator=torch.Generator().manual_seed(TESTED))


@torch.no_grad()
def accuracy(copier: Copier, examples: int = 500, window: int = TESTED) -> list[float]:
    """Return the share of right answers at each position from BACK to TESTED − 1, on new rows of TESTED symbols.

    Attention is causal, so the answers up to position TRAINED − 1 are those to rows of the trained length. With
    window=TRAINED no token is farther back than in training.
    """
    ids = _test_ids(examples)
    right = copier(ids, window)[:, BACK:].argmax(dim=-1) == ids[:, :-BACK]
    return [round(share, 3) for share in right.double().mean(dim=0).tolist()]


def _looking_head(weights: Tensor) -> int:
    """Return the head of weights [batch, n_heads, length, length] that looks `BACK` positions back most."""
    return int(weights.mean(dim=0).diagonal(-BACK, dim1=-2, dim2=-1).mean(dim=-1).argmax())


@torch.no_grad()
def weight_on_answer(copier: Copier, examples: int = 500) -> list[float]:
    """Return the mean weight on the token BACK positions before, in the head that looks there most, by position.

    The positions are those of `accuracy`.
    """
    weights = copier.weights(_test_ids(examples))
    looked = weights[:, _looking_head(weights)].mean(dim=0).diagonal(-BACK)  # [positions from BACK on]
    return [round(weight, 3) for weight in looked.tolist()]


@torch.no_grad()
def score_by_offset(copier: Copier, examples: int = 500) -> list[float]:
    """Return how far the last position's score for the token k back is above that for BACK, for k from 0 to TESTED − 1.

    Means over the examples, in the head of `weight_on_answer`. The logarithms of two weights of a row differ by their
    scores' difference; a weight that rounds to 0 counts as the smallest number of its type.
    """
    weights = copier.weights(_test_ids(examples))
    last = weights[:, _looking_head(weights), -1].clamp_min(torch.finfo(weights.dtype).tiny)
    last = last.double().log().flip(-1)  # [examples, positions back]
    return [round(score, 2) for score in (last - last[:, BACK, None]).mean(dim=0).tolist()]


def measure(copier: Copier) -> dict[str, list[float]]:
    """Return {one of MEASURES: its list}."""
    found = (accuracy(copier), accuracy(copier, window=TRAINED), weight_on_answer(copier), score_by_offset(copier))
    return dict(zip(MEASURES, found, strict=True))


def run(seeds: Sequence[int], path: Path = RESULTS, schemes: Sequence[str] = SCHEMES) -> dict[str, Any]:
    """Train what `path` does not have yet, and write it after each training."""
    content = load_results(path) if path.exists() else {"runs": []}
    done = {(run["scheme"], run["seed"]) for run in content["runs"]}
    content |= {"command": stored.command("extrapolation", seeds), "date": date.today().isoformat()}
    content |= {"seeds": list(seeds), "trained": TRAINED, "tested": TESTED, "budgets": list(BUDGETS)}
    for seed, scheme in itertools.product(seeds, schemes):
        if (scheme, seed) in done:
            continue
        for steps, copier in zip(BUDGETS, train_copier(scheme, seed, BUDGETS), strict=True):
            content["runs"].append({"scheme": scheme, "seed": seed, "steps": steps} | measure(copier))
        stored.save(path, content)
        print(scheme, "seed", seed, flush=True)
    return content


def load_results(path: Path = RESULTS) -> dict[str, Any]:
    """Return what the command wrote: `["runs"]` has an entry for every scheme, seed and number of steps."""
    return stored.read(path)


def measured(name: str, scheme: str, steps: int, path: Path = RESULTS) -> Tensor:
    """Return one of the stored MEASURES for all seeds: [seeds, positions from BACK on], or [seeds, offsets from 0]."""
    chosen = [run[name] for run in load_results(path)["runs"] if (run["scheme"], run["steps"]) == (scheme, steps)]
    return torch.tensor(chosen, dtype=torch.float64)


def main() -> None:
    """Run the command line."""
    run(*stored.arguments(__doc__, RESULTS))


if __name__ == "__main__":
    run_command(main)
