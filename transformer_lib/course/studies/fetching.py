"""When does a second head help? Tokens that must fetch two letters at once, with one head and with more (notebook 08).

`python -m transformer_lib.course.studies.fetching` trains every set-up at every rate, looks for specialists, clones and
spare heads, splits X in place of Q, K and V, and writes data/fetching.json.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..._files import DATA
from ..._streams import run_command
from ...model.masks import causal_mask
from ...model.positional import sinusoidal_encoding
from . import roles, stored

RESULTS = DATA / "fetching.json"
LETTERS, LENGTH, WIDTH, BATCH_SIZE = 8, 12, 32, 64
OFFSETS = (1, 3)  # the letters that every token has to name stand so many positions before it
FIRST = max(OFFSETS)  # the first position whose answers both exist
STEPS, LONGER = 300, 1500
RATES = (0.003, 0.01, 0.03)
SETUPS = {  # number of heads, and hidden units of the reader; 0 is a linear reader
    "1 head": (1, 0),
    "2 heads": (2, 0),
    "4 heads": (4, 0),
    "8 heads": (8, 0),
    "1 head, hidden layer": (1, 128),
}
SPECIALISTS = range(10)  # seeds of the models in which we look for specialised heads
NUDGES = (0.0, 1e-6)  # standard deviation of what is added to the second of two equal heads
PIECES = 3  # heads in the task of notebook 03, whose tokens have 12 features: symbols 1-4, symbols 5-8, colours


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
        """Return the letters that stand `offsets` back, [models, batch, LENGTH - FIRST, offsets]."""
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
        found = x @ self.weights["reader"][:, None] + self.weights["reader bias"][:, None]
        return found.unflatten(-1, (len(self.offsets), LETTERS))

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
        """Return the mean weight that each head gives to the position so many back, [models, heads, backs]."""
        weights = self.attend(self._test())[1]
        rows = [weights.diagonal(-back, 3, 4)[..., FIRST - back :].mean(dim=(1, 3)) for back in backs or self.offsets]
        return torch.stack(rows, dim=-1)

    def right_without(self, head: int) -> Tensor:
        """Return what `right` does while this head adds nothing."""
        self.off[head] = 0.0
        found = self.right()
        self.off[head] = 1.0
        return found

    def right_blind(self, back: int) -> Tensor:
        """Return what `right` does while no head may read the position so many back."""
        before, self.may = self.may, self.may & ~torch.ones(LENGTH, LENGTH).diagonal(-back).diag_embed(-back).bool()
        found = self.right()
        self.may = before
        return found

    def _test(self) -> Tensor:
        ids = torch.randint(LETTERS, (500, LENGTH), generator=torch.Generator().manual_seed(99))
        return ids.expand(len(self.generators), -1, -1)


def split_x(seed: int, *, whole: bool, mixed: bool, budgets: Sequence[int] = (STEPS, LONGER)) -> list[float]:
    """Train heads that see the whole token, or one piece of it each, on the task of notebook 03.

    whole: whether every head projects all features. mixed: whether the features are first mixed by a random rotation.
    Returns the share of right answers after each of the `budgets`, numbers of steps in rising order.
    """
    generator, width = torch.Generator().manual_seed(seed), roles.FEATURES // PIECES
    turn = torch.linalg.qr(torch.randn(roles.FEATURES, roles.FEATURES, generator=generator))[0]
    turn = turn if mixed else torch.eye(roles.FEATURES)
    rows = PIECES if whole else 1  # pieces of the token that a head sees
    matrices = [torch.randn(PIECES, rows * width, width, generator=generator) for _ in range(3)]
    matrices.append(torch.randn(roles.FEATURES, roles.COLOURS, generator=generator))
    matrices = [(matrix * matrix.shape[-2] ** -0.5).requires_grad_() for matrix in matrices]

    def logits(x: Tensor) -> Tensor:
        x = x @ turn
        seen = x[:, None] if whole else x.unflatten(-1, (PIECES, width)).transpose(1, 2)  # [batch, heads or 1, 8, ...]
        query, key, value = (seen @ matrix for matrix in matrices[:3])
        found = (query @ key.mT / math.sqrt(width)).softmax(dim=-1) @ value
        return found.transpose(1, 2).flatten(2) @ matrices[3]

    optimizer, test, right = torch.optim.Adam(matrices, lr=roles.RATE), roles.tested(), []
    for step in range(1, max(budgets) + 1):
        batch = roles.sentences(BATCH_SIZE, generator)
        optimizer.zero_grad()
        F.cross_entropy(logits(batch.x).flatten(0, 1), batch.answer.flatten()).backward()
        optimizer.step()
        if step in budgets:
            right.append((logits(test.x).argmax(dim=-1) == test.answer).double().mean().item())
    return right


def most_frequent() -> float:
    """Return the share right of naming the most frequent colour of the sentence, in the task of `split_x`."""
    test = roles.tested()
    guess = F.one_hot(test.colour, roles.COLOURS).sum(dim=1).argmax(dim=-1)
    return (guess[:, None] == test.answer).double().mean().item()


def run(seeds: Sequence[int]) -> dict[str, Any]:
    """Return what is stored: shares and mean weights, for each model."""
    found: dict[str, Any] = {"setups": [], "blind": [], "specialists": [], "clones": [], "spare": [], "split": []}
    for name, (n_heads, hidden) in SETUPS.items():
        for rate in RATES:
            models = Fetchers(n_heads, seeds, hidden=hidden)
            for steps, more in ((STEPS, STEPS), (LONGER, LONGER - STEPS)):
                right = models.train(more, rate).right()
                found["setups"].append({"setup": name, "rate": rate, "steps": steps, "right": _rounded(right)})
            print(found["setups"][-2:], flush=True)
    found["blind"] = blind(seeds)
    found["specialists"] = _examined(Fetchers(2, SPECIALISTS))
    found["spare"] = _examined(Fetchers(4, seeds, OFFSETS[:1]))
    for nudge in NUDGES:
        models = Fetchers(2, seeds).clone(nudge)
        found["clones"] += [{"nudge": nudge} | row for row in _examined(models)]
    for whole, mixed in ((True, False), (True, True), (False, False), (False, True)):
        right = [split_x(seed, whole=whole, mixed=mixed) for seed in seeds]
        found["split"].append({"whole": whole, "mixed": mixed, "right": _rounded(torch.tensor(right))})
    return found


def blind(seeds: Sequence[int]) -> list[list[float]]:
    """Return the shares right of one head and a hidden layer while the position three back is hidden from it."""
    return _rounded(Fetchers(1, seeds, hidden=SETUPS["1 head, hidden layer"][1]).train().right_blind(FIRST))


def _examined(models: Fetchers) -> list[dict[str, Any]]:
    """Train with both budgets; after each: what is right, what each head reads, and what is right without it."""
    rows = []
    for steps, more in ((STEPS, STEPS), (LONGER, LONGER - STEPS)):
        models.train(more)
        without = torch.stack([models.right_without(head) for head in range(models.n_heads)], dim=1)
        row = {"steps": steps, "right": models.right(), "reads": models.reads(*OFFSETS), "without": without}
        rows.append({name: _rounded(value) if isinstance(value, Tensor) else value for name, value in row.items()})
        print(rows[-1], flush=True)
    return rows


def _rounded(found: Tensor) -> Any:
    return (found.double() * 1000).round().div(1000).tolist()


def load_results(path: Path = RESULTS) -> dict[str, Any]:
    """Return what the command wrote: setups, specialists, clones, spare, split."""
    return stored.read(path)


def main() -> None:
    """Run the command line."""
    seeds, path = stored.arguments(__doc__, RESULTS)
    stored.measure_and_save("fetching", seeds, path, run)


if __name__ == "__main__":
    run_command(main)
