"""When does a second head help? Tokens that must fetch two letters at once, with one head or more (notebook 08)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ...model.masks import causal_mask
from ...model.positional import sinusoidal_encoding
from . import roles, stored

load_results = stored.loader("fetching.json")
LETTERS, LENGTH, WIDTH, BATCH_SIZE = 8, 12, 32, 64
OFFSETS = (1, 3)  # how far back the letters are that every token has to name
FIRST = max(OFFSETS)  # the first position whose answers both exist
STEPS, LONGER = 300, 1500
SETUPS = {  # number of heads, and hidden units of the reader; 0 is a linear reader
    "1 head": (1, 0),
    "2 heads": (2, 0),
    "4 heads": (4, 0),
    "8 heads": (8, 0),
    "1 head, hidden layer": (1, 128),
}


class Fetchers:
    """Models side by side: letters and positions, one causal attention of `n_heads` heads, a reader.

    Args:
        n_heads: divides WIDTH; each head has the width WIDTH / n_heads. seeds: one for each model, which decides its
            first weights and its batches. offsets: of the letters to name. hidden: units of the reader's hidden layer.
    """

    def __init__(
        self, n_heads: int, seeds: Sequence[int], offsets: Sequence[int] = OFFSETS, *, hidden: int = 0
    ) -> None:
        if WIDTH % n_heads:
            raise ValueError(f"n_heads must divide {WIDTH}, got {n_heads}")
        self.n_heads, self.offsets = n_heads, tuple(offsets)
        self.generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        answers = LETTERS * len(self.offsets)
        shapes = {"letters": (LETTERS, WIDTH), **dict.fromkeys(("w_q", "w_k", "w_v", "w_o"), (WIDTH, WIDTH))}
        shapes |= {"hidden": (WIDTH, hidden), "reader": (hidden, answers)} if hidden else {"reader": (WIDTH, answers)}
        self.weights = {name: self._draw(shape) for name, shape in shapes.items()}
        self.weights |= {
            name + " bias": 0 * self.weights[name][:, :1] for name in ("hidden", "reader") if name in shapes
        }
        self.off = torch.ones(n_heads, 1, 1)  # an entry of 0 cuts that head
        self.may = causal_mask(LENGTH)[0, 0]  # [LENGTH, LENGTH], True = may attend
        self.optimizer: torch.optim.Adam | None = None

    def _draw(self, shape: tuple[int, int]) -> Tensor:
        """Return normal numbers [models, *shape], of standard deviation 1 for the letters and 1/√rows for matrices."""
        size = 1.0 if shape[0] == LETTERS else shape[0] ** -0.5
        return size * torch.stack([torch.randn(shape, generator=generator) for generator in self.generators])

    def clone(self, nudge: float = 0.0) -> Fetchers:
        """Make the second of two heads equal to the first, in float64, and nudge its entries by random numbers."""
        self.weights = {name: weight.double() for name, weight in self.weights.items()}
        half = WIDTH // 2
        for name in ("w_q", "w_k", "w_v"):
            columns = self.weights[name]
            noise = torch.stack([torch.randn(WIDTH, half, generator=generator) for generator in self.generators])
            columns[..., half:] = columns[..., :half] + nudge * noise
        self.weights["w_o"][:, half:] = self.weights["w_o"][:, :half]
        return self

    def batch(self, size: int = BATCH_SIZE) -> Tensor:
        """Return new letters [models, size, LENGTH], each model's from its own generator."""
        return torch.stack([torch.randint(LETTERS, (size, LENGTH), generator=one) for one in self.generators])

    def answers(self, ids: Tensor) -> Tensor:
        """Return the letters `offsets` back, [models, batch, LENGTH - FIRST, offsets]."""
        return torch.stack([ids[..., FIRST - back : LENGTH - back] for back in self.offsets], dim=-1)

    def attend(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Return the output of attention [models, batch, LENGTH, WIDTH] and its weights, with an axis of heads."""
        model = torch.arange(len(ids))[:, None, None]
        x = self.weights["letters"][model, ids] + sinusoidal_encoding(LENGTH, WIDTH).to(self.weights["letters"])
        query, key, value = (
            (x @ self.weights[name][:, None]).unflatten(-1, (self.n_heads, -1)).transpose(2, 3)
            for name in ("w_q", "w_k", "w_v")
        )
        scores = (query @ key.mT / math.sqrt(query.shape[-1])).masked_fill(~self.may, -math.inf)
        weights = scores.softmax(dim=-1)  # [models, batch, heads, LENGTH, LENGTH]
        merged = (self.off * (weights @ value)).transpose(2, 3).flatten(3)
        return merged @ self.weights["w_o"][:, None], weights

    def logits(self, ids: Tensor) -> Tensor:
        """Return a logit for each letter, [models, batch, LENGTH - FIRST, offsets, LETTERS]."""
        x = self.attend(ids)[0][:, :, FIRST:]
        if "hidden" in self.weights:
            x = (x @ self.weights["hidden"][:, None] + self.weights["hidden bias"][:, None]).relu()
        scores = x @ self.weights["reader"][:, None] + self.weights["reader bias"][:, None]
        return scores.unflatten(-1, (len(self.offsets), LETTERS))

    def train(self, steps: int = STEPS, rate: float = 0.01) -> Fetchers:
        """Take Adam steps, or go on with more of them at the rate of the first call; returns the models themselves."""
        if self.optimizer is None:
            self.optimizer = torch.optim.Adam([w.requires_grad_() for w in self.weights.values()], lr=rate)
        for _ in range(steps):
            ids = self.batch()
            loss = F.cross_entropy(self.logits(ids).movedim(-1, 1), self.answers(ids), reduction="none")
            self.optimizer.zero_grad()
            loss.mean(dim=(1, 2, 3)).sum().backward()  # no weight is shared: each model gets its own gradient
            self.optimizer.step()
        return self

    @torch.no_grad()
    def right(self) -> Tensor:
        """Return the share of right answers to 500 new sentences, [models, offsets]."""
        ids = self._test()
        return (self.logits(ids).argmax(dim=-1) == self.answers(ids)).double().mean(dim=(1, 2))

    @torch.no_grad()
    def reads(self, *backs: int) -> Tensor:
        """Return the mean weight that each head gives to the position this far back, [models, heads, backs]."""
        weights = self.attend(self._test())[1]
        rows = [weights.diagonal(-back, 3, 4)[..., FIRST - back :].mean(dim=(1, 3)) for back in backs or self.offsets]
        return torch.stack(rows, dim=-1)

    def right_without(self, head: int) -> Tensor:
        """Return what `right` does while this head adds nothing."""
        self.off[head] = 0.0
        right = self.right()
        self.off[head] = 1.0
        return right

    def right_blind(self, back: int) -> Tensor:
        """Return what `right` does while no head may read the position this far back."""
        before, self.may = self.may, self.may & ~torch.ones(LENGTH, LENGTH).diagonal(-back).diag_embed(-back).bool()
        right = self.right()
        self.may = before
        return right

    def _test(self) -> Tensor:
        ids = torch.randint(LETTERS, (500, LENGTH), generator=torch.Generator().manual_seed(99))
        return ids.expand(len(self.generators), -1, -1)


Rows = dict[str, list[float]]  # {row of a figure: a value for each run}
Panels = dict[str, Rows]


def right_by_setup(study: Mapping[str, Any]) -> tuple[Rows, Rows]:
    """Return {set-up: shares of the letter three back that are right}, after STEPS and after LONGER steps.

    There is a share for each learning rate and seed of the stored `study`.
    """
    after: dict[int, Rows] = {steps: {name: [] for name in SETUPS} for steps in (STEPS, LONGER)}
    for run in study["setups"]:
        after[run["steps"]][run["setup"]] += [right[-1] for right in run["right"]]
    return after[STEPS], after[LONGER]


def right_in_pieces(study: Mapping[str, Any]) -> tuple[Rows, Rows]:
    """Return {what is split: share right with each seed} of the task of notebook 03, after STEPS and LONGER steps."""
    rows = {
        f"{'Q, K, V' if row['whole'] else 'X'} split, {'mixed' if row['mixed'] else 'sorted'}": row["right"]
        for row in study["split"]
    }
    early, late = ({name: [seed[n] for seed in row] for name, row in rows.items()} for n in range(2))
    return early, late


def clones(study: Mapping[str, Any]) -> tuple[Panels, Panels]:
    """Return how far the weights of two equal heads have come apart, and what is right, after STEPS and LONGER steps.

    The panels are "heads differ by" and "three back right"; a value is of one seed.
    """
    after: dict[int, Panels] = {steps: {"heads differ by": {}, "three back right": {}} for steps in (STEPS, LONGER)}
    for row in study["clones"]:
        name, panels = "nudged by a millionth" if row["nudge"] else "exact clones", after[row["steps"]]
        pairs = [zip(*heads, strict=True) for heads in row["reads"]]
        panels["heads differ by"][name] = [max(abs(one - other) for one, other in pair) for pair in pairs]
        panels["three back right"][name] = [right[-1] for right in row["right"]]
    return after[STEPS], after[LONGER]


def spares(study: Mapping[str, Any]) -> tuple[Panels, Panels]:
    """Return what four heads with one job do, after STEPS and LONGER steps; a value is of one head.

    The panels are "weight one back" and "right without the head"; a row is a model.
    """
    early, late = (
        {
            "weight one back": {f"model {n}": [one for one, _ in heads] for n, heads in enumerate(row["reads"], 1)},
            "right without the head": {f"model {n}": sum(heads, []) for n, heads in enumerate(row["without"], 1)},
        }
        for row in study["spare"]
    )
    return early, late


def most_frequent() -> float:
    """Return the share right of naming the most frequent colour of the sentence, in the task of `split_x`."""
    test = roles.tested()
    guess = F.one_hot(test.colour, roles.COLOURS).sum(dim=1).argmax(dim=-1)
    return (guess[:, None] == test.answer).double().mean().item()
