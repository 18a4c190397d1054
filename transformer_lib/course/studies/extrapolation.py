"""Which positions still work beyond the trained length? Six schemes, copying the token two back (notebook 06).

`python -m transformer_lib.course.studies.extrapolation` trains every scheme and writes data/extrapolation.json.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..._files import DATA
from ...model.masks import causal_mask
from ...model.multihead import MultiHeadAttention
from ...model.positional import RelativeBias, RotaryPosition, make_position
from . import stored

RESULTS = DATA / "extrapolation.json"
TRAINED, TESTED, BACK = 16, 64, 2  # tokens in a row: in training, in the test; how far back the answer is
SYMBOLS, WIDTH, HEADS, BATCH_SIZE, LEARNING_RATE, STEPS = 12, 64, 2, 64, 3e-3, 500
CHANCE = 1 / SYMBOLS
SCHEMES = ("none", "sinusoidal", "learned", "rotary", "relative, clipped at 8", "relative, clipped at 16")


class Copier(nn.Module):
    """One layer of causal attention that says, at every position, which symbol stood `BACK` places before.

    Args:
        scheme: one of SCHEMES. In training no token is more than 15 places back, so "relative, clipped at 16"
            has an entry for "16 and more" that is never trained; the one clipped at 8 trains all its entries.
    """

    def __init__(self, scheme: str) -> None:
        super().__init__()
        if scheme not in SCHEMES:
            raise ValueError(f"scheme must be one of {', '.join(map(repr, SCHEMES))}, got {scheme!r}")
        self.embedding = nn.Embedding(SYMBOLS, WIDTH)
        self.positions = make_position(scheme.partition(",")[0], TESTED, WIDTH)
        self.attention = MultiHeadAttention(WIDTH, HEADS, position=_inside(scheme))
        self.head = nn.Linear(WIDTH, SYMBOLS)

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits [batch, length, SYMBOLS] for ids [batch, length], length at most TESTED."""
        x = self.positions(self.embedding(ids))
        return self.head(self.attention(x, x, x, causal_mask(ids.shape[1])))


def _inside(scheme: str) -> RotaryPosition | RelativeBias | None:
    if scheme.startswith("relative"):
        return RelativeBias(HEADS, max_offset=int(scheme.split()[-1]))
    return RotaryPosition() if scheme == "rotary" else None


def train_copier(scheme: str, seed: int, steps: int = STEPS) -> Copier:
    """Train a new copier on random rows of TRAINED symbols, a fresh batch at every step."""
    torch.manual_seed(seed)
    copier = Copier(scheme)
    optimizer = torch.optim.Adam(copier.parameters(), LEARNING_RATE)
    for _ in range(steps):
        ids = torch.randint(SYMBOLS, (BATCH_SIZE, TRAINED))
        loss = F.cross_entropy(copier(ids)[:, BACK:].flatten(0, 1), ids[:, :-BACK].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return copier


@torch.no_grad()
def accuracy(copier: Copier, examples: int = 500) -> list[float]:
    """Return the share of right answers at each position from BACK to TESTED − 1, on new rows of TESTED symbols.

    Attention is causal, so the answers up to position TRAINED − 1 are those to rows of the trained length.
    """
    ids = torch.randint(SYMBOLS, (examples, TESTED), generator=torch.Generator().manual_seed(TESTED))
    right = copier(ids)[:, BACK:].argmax(dim=-1) == ids[:, :-BACK]
    return [round(share, 3) for share in right.double().mean(dim=0).tolist()]


@torch.no_grad()
def weight_on_answer(copier: Copier, examples: int = 500) -> list[float]:
    """Return the mean weight on the token BACK places before, in the head that looks there most, by position.

    The positions are those of `accuracy`.
    """
    ids = torch.randint(SYMBOLS, (examples, TESTED), generator=torch.Generator().manual_seed(TESTED))
    x = copier.positions(copier.embedding(ids))
    _, weights = copier.attention(x, x, x, causal_mask(TESTED), return_weights=True)  # [batch, heads, query, key]
    looked = weights.mean(dim=0).diagonal(-BACK, dim1=-2, dim2=-1)  # [heads, positions from BACK on]
    return [round(weight, 3) for weight in looked.amax(dim=0).tolist()]


def run(seeds: Sequence[int], schemes: Sequence[str] = SCHEMES) -> dict[str, dict[str, list[list[float]]]]:
    """Return {"accuracy": {scheme: [seeds, positions from BACK on]}, "weight": the same of `weight_on_answer`}."""
    copiers = {scheme: [train_copier(scheme, seed) for seed in seeds] for scheme in schemes}
    measures = {"accuracy": accuracy, "weight": weight_on_answer}
    return {
        name: {scheme: [measure(copier) for copier in trained] for scheme, trained in copiers.items()}
        for name, measure in measures.items()
    }


def measured(seeds: Sequence[int]) -> dict:
    """Return what is stored: lengths, steps, accuracy and weight."""
    return {"trained": TRAINED, "tested": TESTED, "steps": STEPS} | run(seeds)


def load_results(path: Path = RESULTS) -> dict:
    """Return what the command of this module wrote: command, date, seeds, lengths, steps, accuracy, weight."""
    return stored.read(path)


def main() -> None:
    """Run the command line."""
    seeds, path = stored.arguments(__doc__, RESULTS)
    stored.measure_and_save("extrapolation", seeds, path, measured)


if __name__ == "__main__":
    main()
