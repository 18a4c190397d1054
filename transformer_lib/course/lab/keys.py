"""What must a key know, that one layer of attention copies? Letters that repeat, as in `copying` (notebook 21)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from . import copying, stored

load_results = stored.loader("keys.json")
ARMS = ("nobody", "queries", "keys", "values", "smeared keys")
"""Who is told the previous letter; "smeared keys" have no table, but mix each key with the one before it."""
BUDGETS = ((400, 3e-3), (400, 1e-2), (1200, 3e-3), (1200, 1e-2))  # steps, peak rate

Run = Callable[..., Tensor]
"""(ids, letters, positions, before, W_Q, W_K, W_V, W_O, W_U) -> logits, as in exercise 21.5."""


class Written(nn.Module):
    """A language model of one layer and one head whose forward pass is a function of its parameters.

    It begins with the weights of `copying.new_model(1, 1, seed)`, and with a second table of letters, `before`.

    Args:
        run: ids [batch, seq_len], letters [26, d_model], positions [32, d_model], before [26, d_model], W_Q, W_K, W_V,
            W_O [d_model, d_model], W_U [d_model, 26] -> logits [batch, seq_len, 26]. seed: of all weights.

    Raises:
        TypeError: run is no function.
    """

    def __init__(self, run: Run, seed: int) -> None:
        super().__init__()
        if not callable(run):
            raise TypeError(f"run must be a function, got {type(run).__name__}")
        start, self.run = copying.new_model(1, 1, seed), run
        layer: Any = start.layers[0]
        position: Any = start.position
        self.letters = nn.Parameter(start.embedding.weight.detach().clone())
        self.positions = nn.Parameter(position.table.detach().clone())
        self.before = nn.Parameter(torch.randn(copying.LETTERS, copying.D_MODEL))
        matrices = (layer.w_q, layer.w_k, layer.w_v, layer.w_o, start.unembedding)
        self.matrices = nn.ParameterList(matrix.weight.detach().T.clone() for matrix in matrices)
        self.smear = nn.Parameter(torch.zeros(()))  # for smeared keys alone

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits [batch, seq_len, 26] of ids [batch, seq_len]."""
        return self.run(ids, self.letters, self.positions, self.before, *self.matrices)


def told(who: str) -> Callable[[Written], Run]:
    """Return what makes the forward pass in which one of ARMS knows the previous letter, given the model.

    Raises:
        ValueError: `who` is none of them.
    """
    if who not in ARMS:
        raise ValueError(f"who must be one of {', '.join(ARMS)}, got {who!r}")

    def run_of(model: Written) -> Run:
        def run(ids: Tensor, letters: Tensor, positions: Tensor, before: Tensor, *matrices: Tensor) -> Tensor:
            W_Q, W_K, W_V, W_O, W_U = matrices
            x, n = letters[ids] + positions[: ids.shape[1]], ids.shape[1]
            knows = torch.cat([x[:, :1], x[:, 1:] + before[ids[:, :-1]]], dim=1)
            q, k, v = (
                (knows if who == name else x) @ W for name, W in (("queries", W_Q), ("keys", W_K), ("values", W_V))
            )
            if who == "smeared keys":
                own = model.smear.sigmoid()
                k = torch.cat([k[:, :1], own * k[:, 1:] + (1 - own) * k[:, :-1]], dim=1)
            scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~torch.ones(n, n).tril().bool(), -torch.inf)
            return (x + scores.softmax(dim=-1) @ v @ W_O) @ W_U

        return run

    return run_of


def new_model(who: str, seed: int) -> Written:
    """Return an untrained model of one layer in which `who`, one of ARMS, knows the previous letter."""
    model = Written(lambda *args: args[0], seed)
    model.run = told(who)(model)
    return model


def losses(results: dict[str, Any], steps: int) -> dict[str, dict[str, list[float]]]:
    """Return {"new strings": {arm: a loss for each seed}, "unseen, no letter twice": …} after this many steps.

    Each arm is shown at its best rate: the one with the lowest mean loss on new strings.

    Raises:
        ValueError: nothing is stored of so many steps.
    """
    found: dict[str, dict[str, list[float]]] = {"new strings": {}, "unseen, no letter twice": {}}
    for arm in ARMS:
        runs = stored.runs_of(results, who=arm, steps=steps)
        if not runs:
            raise ValueError(f"steps must be one of {sorted({budget for budget, _ in BUDGETS})}, got {steps}")
        by_rate = [[run for run in runs if run["rate"] == rate] for rate in sorted({run["rate"] for run in runs})]
        best = min(by_rate, key=lambda some: sum(run["loss"] for run in some))
        for title, what in zip(found, ("loss", "unseen distinct"), strict=True):
            found[title][arm] = [run[what] for run in best]
    return found
