"""What is the feed-forward layer for? Tables of pairs learned with it and without (notebook 09)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from . import stored

load_results = stored.loader("tables.json")
WIDTH, HEAD = 16, 8  # d_model, and the width of a head
HEADS, NARROW = WIDTH // HEAD, 2
SIZES = (16, 24, 32)  # symbols; the table has a row and a column for each
BUDGETS = (1000, 5000)


@dataclass(frozen=True)
class Setup:
    """One layer: the number of symbols, the hidden units of its feed-forward network, and its heads.

    Args:
        d_ff: 0: attention alone.
        relu: without it, the feed-forward network is two linear maps.
        head: width of a head.
    """

    symbols: int
    d_ff: int = 0
    n_heads: int = HEADS
    relu: bool = True
    head: int = HEAD

    @property
    def parameters(self) -> int:
        """Number of weights in the layer, without the vectors of the tokens and the readout."""
        in_attention = 4 * WIDTH * self.head * self.n_heads
        return in_attention + (2 * WIDTH * self.d_ff + self.d_ff + WIDTH if self.d_ff else 0)


def shares(content: dict[str, Any], setup: Setup, budget: int = BUDGETS[-1]) -> list[float]:
    """Return the share of the table that each seed knows after a budget, at the rate that is best for their mean."""
    [record] = stored.runs_of(content, **asdict(setup))
    at = content["budgets"].index(budget)
    best = max((found[at] for found in record["learned"].values()), key=sum)
    return [entries / setup.symbols**2 for entries in best]
