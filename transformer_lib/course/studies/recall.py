"""Who still knows the first token at the end? Recurrent nets beside attention, over length and seeds (notebook 01).

`python -m transformer_lib.course.studies.recall` trains every kind at every length and writes data/recall.json.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..._files import DATA
from ..._streams import run_command
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
OTHER_RATES, RATE_LENGTHS = (1e-3, 1e-2, 3e-2), (20, 40)  # the RNN only
RADII, RADIUS_LENGTH = (1.1, 1.4, 1.7, 2.0, 3.0, 5.0), 20  # spectral radii at which an RNN starts, and its rows
DAMPED = (1.7, 0.5)  # a start, and the factor of the gradient at each step back
ASKING, ASKED_LENGTHS = ("LSTM, open gate", "RNN + attention", "attention"), (5, 10, 20)
MORE_SEEDS = 10  # of a start that helps some seeds only
CHANCE = 1 / SYMBOLS


class Reader(nn.Module):
    """Reads a row of symbols and says, at the last position, which symbol came first.

    Args:
        kind: one of KINDS. "LSTM, open gate" starts with a forget bias of 3 instead of about 0, so that it keeps
            its state (Jozefowicz et al. 2015). "RNN + attention" attends from its last state to all its states,
            "attention" from the last embedding to all embeddings. Both add positions: attention alone cannot know
            without them which token is the first. "+ positions" adds them to what the RNN or LSTM reads.
        radius: scales the recurrent matrix to this spectral radius, the size of its largest eigenvalue.
        damping: multiplies the gradient by this at each step back through an RNN; the forward pass stays as it is.
        questions: so many ids after the symbols ask "which symbol was the first, the second, …?"
    """

    def __init__(
        self, kind: str, *, radius: float | None = None, damping: float | None = None, questions: int = 0
    ) -> None:
        super().__init__()
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}, got {kind!r}")
        self.reads_positions = "positions" in kind
        self.embedding = nn.Embedding(SYMBOLS + questions, WIDTH)
        self.recurrent = _recurrent(kind, radius, damping)
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


class _DampedRNN(nn.RNN):
    """An RNN whose gradient is multiplied by `damping` at each step back, on inputs [batch, length, WIDTH]."""

    damping = 1.0

    def forward(self, x: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return all states and the last, as nn.RNN does."""
        inputs = x @ self.weight_ih_l0.T + self.bias_ih_l0 + self.bias_hh_l0
        states = [torch.zeros_like(x[:, 0])]
        for step in inputs.unbind(dim=1):
            before = self.damping * states[-1] + (1 - self.damping) * states[-1].detach()
            states.append(torch.tanh(step + before @ self.weight_hh_l0.T))
        return torch.stack(states[1:], dim=1), states[-1][None]


def _recurrent(kind: str, radius: float | None, damping: float | None) -> nn.Module | None:
    if kind == "attention":
        return None
    module = nn.LSTM if "LSTM" in kind else nn.RNN if damping is None else _DampedRNN
    recurrent = module(WIDTH, WIDTH, batch_first=True)
    if damping is not None:
        recurrent.damping = damping
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
    kind: str, length: int, seed: int, budgets: Sequence[int], *, rate: float = LEARNING_RATE, **start: Any
) -> Iterator[Reader]:
    """Yield the same reader after each of these numbers of steps, which must rise; `start` is that of `Reader`."""
    torch.manual_seed(seed)
    reader = Reader(kind, **start)
    optimizer = torch.optim.Adam(reader.parameters(), rate)
    for before, budget in pairwise((0, *budgets)):
        for _ in range(budget - before):
            ids, answers = _rows(BATCH_SIZE, length, start.get("questions", 0))
            loss = F.cross_entropy(reader(ids), answers)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        yield reader


def _rows(count: int, length: int, questions: int, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
    """Return random rows of ids and the symbol that each asks for: the first, or with questions one anywhere."""
    ids = torch.randint(SYMBOLS, (count, length), generator=generator)
    if not questions:
        return ids, ids[:, 0]
    asked = torch.randint(questions, (count, 1), generator=generator)
    return torch.cat([ids, SYMBOLS + asked], dim=1), ids.gather(1, asked)[:, 0]


@torch.no_grad()
def accuracy(reader: Reader, length: int, examples: int = 2000, questions: int = 0) -> float:
    """Return the share of new rows whose first symbol the reader names; with questions, the one that is asked for."""
    ids, answers = _rows(examples, length, questions, torch.Generator().manual_seed(length))
    return (reader(ids).argmax(dim=-1) == answers).double().mean().item()


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
    seeds: Sequence[int], radii: Sequence[float] = RADII, budgets: Sequence[int] = BUDGETS, **start: Any
) -> dict[str, list[list[float]]]:
    """Return {spectral radius: accuracy [budgets, seeds]} of RNNs that start there, on rows of RADIUS_LENGTH."""
    found = {}
    for radius in radii:
        by_seed = [_accuracies("RNN", RADIUS_LENGTH, seed, budgets, radius=radius, **start) for seed in seeds]
        found[f"{radius:g}"] = [list(column) for column in zip(*by_seed, strict=True)]
    return found


def run_rates(
    seeds: Sequence[int],
    rates: Sequence[float] = OTHER_RATES,
    lengths: Sequence[int] = RATE_LENGTHS,
    steps: int = BUDGETS[-1],
) -> dict[str, list[list[float]]]:
    """Return {learning rate: accuracy [lengths, seeds]} of the RNN after so many steps."""

    def row(length: int, rate: float) -> list[float]:
        return [_accuracies("RNN", length, seed, (steps,), rate=rate)[0] for seed in seeds]

    return {f"{rate:g}": [row(length, rate) for length in lengths] for rate in rates}


def run_asked(
    seeds: Sequence[int],
    kinds: Sequence[str] = ASKING,
    lengths: Sequence[int] = ASKED_LENGTHS,
    budgets: Sequence[int] = BUDGETS,
) -> dict[str, list[list[list[float]]]]:
    """Return {kind: accuracy [budgets, seeds, lengths]} where a question at the end asks for any symbol of the row."""
    found = {}
    for kind in kinds:
        by_seed = [[_accuracies(kind, length, seed, budgets, questions=length) for length in lengths] for seed in seeds]
        found[kind] = [[[row[b] for row in rows] for rows in by_seed] for b in range(len(budgets))]
    return found


def _accuracies(kind: str, length: int, seed: int, budgets: Sequence[int], **start: Any) -> list[float]:
    questions = start.get("questions", 0)
    return [accuracy(reader, length, questions=questions) for reader in _training(kind, length, seed, budgets, **start)]


def measured(seeds: Sequence[int]) -> dict:
    """Return what is stored: lengths, budgets in steps, and accuracy by kind, question, spectral radius and rate."""
    more = range(MORE_SEEDS)
    radius, damping = DAMPED
    return {
        "lengths": LENGTHS,
        "steps": BUDGETS,
        "accuracy": run(seeds),
        "asked": run_asked(seeds),
        "radii": run_radii(more),
        "damped": run_radii(more, (radius,), damping=damping)[f"{radius:g}"],
        "rates": run_rates(seeds),
    }


def load_results(path: Path = RESULTS) -> dict:
    """Return what the command of this module wrote: command, date, seeds, and what `measured` returns."""
    return stored.read(path)


def main() -> None:
    """Run the command line."""
    seeds, path = stored.arguments(__doc__, RESULTS)
    stored.measure_and_save("recall", seeds, path, measured, indent=1)


if __name__ == "__main__":
    run_command(main)
