"""Can a head look as far back as the word says? One layer, and tokens such as "b3" that ask for the letter 3 back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...model.masks import causal_mask
from ...model.multihead import MultiHeadAttention
from ...model.positional import RelativeBias, RotaryPosition, make_position
from . import stored

load_results = stored.loader("look_back.json")
LETTERS, FARTHEST = 12, 4  # a token is a letter and a number from 1 to FARTHEST
TRAINED, TESTED = 16, 64  # tokens in a row: in training, in the test
WIDTH, BATCH_SIZE, CLIPPED = 64, 64, 8
BUDGETS = (500, 2500)  # steps
RATES = (0.001, 0.003, 0.01)
SCHEMES = ("sinusoidal", "learned", "relative", "rotary")


@dataclass(frozen=True)
class Setup:
    """One training run.

    Args:
        scheme: one of SCHEMES; "relative" is a bias for each offset, clipped at CLIPPED. heads: of the only layer.
        rate: of Adam. seed: of the weights and of the rows.
    """

    scheme: str
    heads: int
    rate: float
    seed: int


class Reader(nn.Module):
    """One layer of causal attention that says, at every position, the letter as far back as its token asks.

    There is no residual connection, so the answer is a linear map of what the heads bring back.
    """

    def __init__(self, scheme: str, heads: int) -> None:
        super().__init__()
        if scheme not in SCHEMES:
            raise ValueError(f"scheme must be one of {', '.join(map(repr, SCHEMES))}, got {scheme!r}")
        inside = {"rotary": RotaryPosition, "relative": lambda: RelativeBias(heads, CLIPPED)}
        self.embedding = nn.Embedding(LETTERS * FARTHEST, WIDTH)
        self.positions = make_position("none" if scheme in inside else scheme, TESTED, WIDTH)
        self.attention = MultiHeadAttention(WIDTH, heads, position=inside[scheme]() if scheme in inside else None)
        self.head = nn.Linear(WIDTH, LETTERS)

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits [batch, length, LETTERS] for ids [batch, length], length at most TESTED."""
        x = self.positions(self.embedding(ids))
        return self.head(self.attention(x, x, x, causal_mask(ids.shape[1])))


def draw_rows(rows: int, length: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return random ids [rows, length] and the letters they ask for, [rows, length − FARTHEST].

    Token id is letter · FARTHEST + number − 1. There are answers from position FARTHEST on, where none is missing.
    """
    ids = torch.randint(LETTERS * FARTHEST, (rows, length), generator=generator)
    letters, back = ids // FARTHEST, ids % FARTHEST + 1
    asked = (torch.arange(length) - back)[:, FARTHEST:]
    return ids, letters.gather(1, asked)


def train_reader(setup: Setup, budgets: Sequence[int] = BUDGETS) -> Iterator[Reader]:
    """Train a new reader on rows of TRAINED tokens, a fresh batch at every step; yield it at every budget.

    It is the same reader every time, so measure it before you ask for the next.
    """
    torch.manual_seed(setup.seed)
    reader, generator = Reader(setup.scheme, setup.heads), torch.Generator().manual_seed(setup.seed)
    optimizer = torch.optim.Adam(reader.parameters(), setup.rate)
    for step in range(1, max(budgets) + 1):
        ids, answers = draw_rows(BATCH_SIZE, TRAINED, generator)
        loss = F.cross_entropy(reader(ids)[:, FARTHEST:].flatten(0, 1), answers.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step in budgets:
            yield reader


def shares(where: str, scheme: str, heads: int, steps: int) -> list[float]:
    """Return the share of right answers of every run, three rates with three seeds each.

    Args:
        where: "inside" (the trained positions) or "beyond". steps: one of BUDGETS.

    Raises:
        ValueError: nothing of the kind is stored.
    """
    runs = [run for run in load_results()["runs"] if (run["scheme"], run["heads"]) == (scheme, heads)]
    if where not in ("inside", "beyond") or steps not in BUDGETS or not runs:
        raise ValueError(f"nothing is stored for {where!r}, {scheme!r}, heads {heads}, steps {steps}")
    return [run[where][BUDGETS.index(steps)] for run in runs]
