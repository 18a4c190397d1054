"""How many calls of the translator does a draft save, and what does the formula say? (notebook 22)"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from transformer_lib.decoding.speculative import Model, Propose, speculative_decode
from transformer_lib.model.base import TranslationModel

from . import stored

load_results = stored.loader("speculation.json")
KINDS = ("small", "short", "narrow", "blind")


def rows(results: dict[str, Any], draft: str, split: str) -> list[dict[str, Any]]:
    """Return the rows of one kind of draft and split, one for each seed and γ, each with its "seed"."""
    runs = [run for run in results["runs"] if run["draft"] == draft]
    return [{"seed": run["seed"], **row} for run in runs for row in run["splits"][split]["rows"]]


def means(results: dict[str, Any], draft: str, name: str) -> list[float]:
    """Return the mean of the seeds, for each γ, of what the held-out sentences have under `name`."""
    found = rows(results, draft, "heldout")
    gammas = sorted({row["gamma"] for row in found})
    each = [[row[name] for row in found if row["gamma"] == gamma] for gamma in gammas]
    return [sum(values) / len(values) for values in each]


@torch.no_grad()
def best_after_each(model: TranslationModel, src: Tensor, ids: Sequence[int]) -> list[int]:
    """Return the model's likeliest token after every beginning of ids, from one call of it."""
    best: list[int] = model(src, torch.tensor([list(ids)]))[0].argmax(dim=-1).tolist()
    return best


def times_as_fast(target: Model, draft_for: Callable[[int], Model | Propose], gamma: int, src: Tensor) -> float:
    """Return how many times as fast sentences, each alone, are decoded as by the same loop without any draft.

    Args:
        draft_for: the draft for a γ. src: source ids [sentences, src_len]. Time is this thread's on the processor, the
        shortest of two runs of each sentence, so that other programs hardly matter.
    """

    def seconds(draft: Model | Propose, row: Tensor) -> float:
        begin = time.thread_time()
        speculative_decode(target, draft, row, max_new_tokens=40, gamma=gamma)
        return time.thread_time() - begin

    def total(draft: Model | Propose) -> float:
        return sum(min(seconds(draft, row[None]) for _ in range(2)) for row in src)

    return total(lambda ids: []) / total(draft_for(gamma))
