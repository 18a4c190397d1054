"""Batches that wait for their longest sentence, and batches that are joined: steps counted (notebook 22)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch

from transformer_lib.decoding.serving import JoiningBatch
from transformer_lib.model.base import TranslationModel

from . import stored

Step = Callable[[Mapping[int, Sequence[int]]], dict[int, int]]
load_results = stored.loader("rounds.json")
SENTENCES, DRAWN = "held-out sentences", "drawn lengths"


def stepping(model: TranslationModel, sources: Sequence[Sequence[int]], capacity: int) -> Step:
    """Return the `step` of exercise 22.7 for a real model: {request: its tokens so far} -> {request: its next token}.

    Requests are numbers of `sources`, lists of ids. One that is new joins a `JoiningBatch`, which keeps the keys and
    values of all of them; one that has said eos has left it.
    """
    batch = JoiningBatch(model, capacity)
    tickets: dict[int, int] = {}

    def step(texts: Mapping[int, Sequence[int]]) -> dict[int, int]:
        for request in texts:
            if request not in tickets:
                (tickets[request],) = batch.join(torch.tensor([list(sources[request])]))
        batch.step()
        return {request: batch.newest[tickets[request]] for request in texts}

    return step


def with_instructions(people: int, *, instructions: int = 3, length: int = 48, seed: int = 0) -> list[list[int]]:
    """Return prompts, lists of ids: each begins with one of a few long instructions, and has a question of 3 to 20."""
    draw = torch.Generator().manual_seed(seed)
    beginnings = torch.randint(1000, (instructions, length), generator=draw).tolist()
    lengths = torch.randint(3, 21, (people,), generator=draw).tolist()
    questions = [torch.randint(1000, (n,), generator=draw).tolist() for n in lengths]
    return [beginnings[i % instructions] + question for i, question in enumerate(questions)]
