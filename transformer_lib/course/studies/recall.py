"""Who still knows the first token at the end? Recurrent nets beside attention, over length and seeds (notebook 01).

`python -m transformer_lib.course.studies.recall` trains every kind at every length and writes data/recall.json.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..._files import DATA
from ...model.multihead import MultiHeadAttention
from ...model.positional import SinusoidalPosition
from . import stored

RESULTS = DATA / "recall.json"
KINDS = (
    "RNN",
    "LSTM",
    "RNN + positions",
    "LSTM + positions",
    "LSTM, open gate",
    "RNN + attention",
    "attention",
)
LENGTHS = (5, 10, 20, 40, 80)
SYMBOLS, WIDTH, BATCH_SIZE, LEARNING_RATE = 8, 32, 64, 3e-3
BUDGETS = (500, 2500)  # steps: accuracy is measured after each
RADII, RADIUS_LENGTH = (1.1, 1.4, 1.7, 2.0, 3.0, 5.0), 20  # spectral radii at which an RNN starts, and its rows
CHANCE = 1 / SYMBOLS


class Reader(nn.Module):
    """Reads a row of symbols and says, at the last position, which symbol came first.

    Args:
        kind: one of KINDS. "LSTM, open gate" starts with a forget bias of 3 instead of about 0, so that it keeps
            its state (Jozefowicz et al. 2015). "RNN + attention" attends from its last state to all its states,
            "attention" from the last embedding to all embeddings. Both add positions: attention alone cannot know
            without them which token is the first. "+ positions" adds them to what the RNN or LSTM reads.
        radius: scales the recurrent matrix to this spectral radius, the size of its largest eigenvalue.
    """

    def __init__(self, kind: str, *, radius: float | None = None) -> None:
        super().__init__()
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}, got {kind!r}")
        self.reads_positions = "positions" in kind
        self.embedding = nn.Embedding(SYMBOLS, WIDTH)
        self.recurrent = _recurrent(kind, radius)
        self.attention = MultiHeadAttention(WIDTH, 1) if "attention" in kind else None
        self.positions = SinusoidalPosition(max(LENGTHS), WIDTH)
        self.head = nn.Linear(WIDTH, SYMBOLS)

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits [batch, SYMBOLS] for ids [batch, length]."""
        return self.head(self.read(self.embedding(ids))[0])

    def read(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the last position's result [batch, WIDTH] and its attention weights [batch, length], if it has any."""
        x = self.positions(x) if self.reads_positions else x
        states = x if self.recurrent is None else self.recurrent(x)[0]  # [batch, length, WIDTH]
        if self.attention is None:
            return states[:, -1], None
        states = self.positions(states)
        output, weights = self.attention(states[:, -1:], states, states, return_weights=True)
        return output[:, 0], weights[:, 0, 0]


def _recurrent(kind: str, radius: float | None) -> nn.Module | None:
    if kind == "attention":
        return None
    recurrent = (nn.LSTM if "LSTM" in kind else nn.RNN)(WIDTH, WIDTH, batch_first=True)
    if kind == "LSTM, open gate":
        nn.init.constant_(recurrent.bias_hh_l0[WIDTH : 2 * WIDTH], 3.0)  # torch's gates: input, forget, cell, output
    if radius is not None:
        matrix = recurrent.weight_hh_l0.data
        matrix *= radius / torch.linalg.eigvals(matrix).abs().max()
    return recurrent


def train_reader(kind: str, length: int, seed: int, steps: int = BUDGETS[0]) -> Reader:
    """Train a new reader on random rows of `length` symbols, a fresh batch at every step."""
    *_, reader = _training(kind, length, seed, (steps,))
    return reader


def _training(
    kind: str, length: int, seed: int, budgets: Sequence[int], radius: float | None = None
) -> Iterator[Reader]:
    """Yield the same reader after each of these numbers of steps, which must rise."""
    torch.manual_seed(seed)
    reader = Reader(kind, radius=radius)
    optimizer = torch.optim.Adam(reader.parameters(), LEARNING_RATE)
    for before, budget in pairwise((0, *budgets)):
        for _ in range(budget - before):
            ids = torch.randint(SYMBOLS, (BATCH_SIZE, length))
            loss = F.cross_entropy(reader(ids), ids[:, 0])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        yield reader


@torch.no_grad()
def accuracy(reader: Reader, length: int, examples: int = 2000) -> float:
    """Return the share of new rows whose first symbol the reader names."""
    ids = torch.randint(SYMBOLS, (examples, length), generator=torch.Generator().manual_seed(length))
    return (reader(ids).argmax(dim=-1) == ids[:, 0]).double().mean().item()


def gradient_ratio(kind: str, length: int, seed: int, *, radius: float | None = None) -> float:
    """Return |∂ output / ∂ first input| / |∂ output / ∂ last input| of an untrained reader, in float64.

    The output is the sum of the last position's result; inputs are normal. 1 means that the first token counts
    as much as the last.
    """
    torch.manual_seed(seed)
    reader = Reader(kind, radius=radius).double()
    x = torch.randn(1, length, WIDTH, dtype=torch.float64, requires_grad=True)
    (grad,) = torch.autograd.grad(reader.read(x)[0].sum(), x)
    return (grad[0, 0].norm() / grad[0, -1].norm()).item()


def run(
    seeds: Sequence[int],
    kinds: Sequence[str] = KINDS,
    lengths: Sequence[int] = LENGTHS,
    budgets: Sequence[int] = BUDGETS,
) -> dict[str, list[list[list[float]]]]:
    """Return {kind: accuracy [budgets, seeds, lengths]}: each kind is trained at each length with each seed."""
    found = {}
    for kind in kinds:
        by_seed = [[_accuracies(kind, length, seed, budgets) for length in lengths] for seed in seeds]
        found[kind] = [[[row[b] for row in rows] for rows in by_seed] for b in range(len(budgets))]
    return found


def run_radii(
    seeds: Sequence[int], radii: Sequence[float] = RADII, budgets: Sequence[int] = BUDGETS
) -> dict[str, list[list[float]]]:
    """Return {spectral radius: accuracy [budgets, seeds]} of RNNs that start there, on rows of RADIUS_LENGTH."""
    found = {}
    for radius in radii:
        by_seed = [_accuracies("RNN", RADIUS_LENGTH, seed, budgets, radius) for seed in seeds]
        found[f"{radius:g}"] = [list(column) for column in zip(*by_seed, strict=True)]
    return found


def _accuracies(kind: str, length: int, seed: int, budgets: Sequence[int], radius: float | None = None) -> list[float]:
    return [accuracy(reader, length) for reader in _training(kind, length, seed, budgets, radius)]


def measured(seeds: Sequence[int]) -> dict:
    """Return what is stored: lengths, budgets in steps, the accuracy of every kind, and of every spectral radius."""
    return {"lengths": LENGTHS, "steps": BUDGETS, "accuracy": run(seeds), "radii": run_radii(seeds)}


def load_results(path: Path = RESULTS) -> dict:
    """Return what the command of this module wrote: command, date, seeds, lengths, steps, accuracy and radii."""
    return stored.read(path)


def main() -> None:
    """Run the command line."""
    seeds, path = stored.arguments(__doc__, RESULTS)
    stored.measure_and_save("recall", seeds, path, measured, indent=1)


if __name__ == "__main__":
    main()
