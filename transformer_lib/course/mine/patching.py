"""A map of patches of a real model, drawn by the learner's function of notebook 24."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from ..._validate import check_ids
from ...model import circuits
from ...model.modern import LanguageModel

PART = "patch_map"


class Patching:
    """Maps of patches by a function like the exercise's `patch_map`; `whose` says whose it is.

    Args:
        theirs: the learner's functions, by the names of their parts.
    """

    def __init__(self, theirs: Mapping[str, Callable[..., Any]]) -> None:
        self._patch_map = theirs.get(PART, patch_map)
        yours, ours = f"{PART} is yours.", f"{PART} is the library's; yours takes its place once it is accepted."
        self.whose = yours if PART in theirs else ours

    @torch.no_grad()
    def __call__(self, model: LanguageModel, ids: Tensor, others: Tensor, right: int, wrong: int) -> Tensor:
        """Return the shares [n_layers + 1, seq_len] that come back if single streams of `others` are put into `ids`.

        Args:
            ids, others: [1, seq_len] each, the run that is patched and the one that gives. right, wrong: two ids; what
                counts is by how much `right` is ahead of `wrong` at the last position.

        Raises:
            ValueError: the two are no single texts of one length.
        """
        for name, text in (("ids", ids), ("others", others)):
            check_ids(name, text, model.config.vocab_size)
            if len(text) != 1 or text.shape != ids.shape:
                raise ValueError(f"{name} must be one text, as long as the other, got shape {tuple(text.shape)}")
        here, there = (torch.stack(circuits.trace(model, text, keep="streams").streams)[:, 0] for text in (ids, others))
        own = self._rest(model, here[0], 0)

        def rest(stream: Tensor, layer: int) -> Tensor:
            # where a patch changes nothing, as ahead of the first difference, nothing has to be run again
            return own.clone() if torch.equal(stream, here[layer]) else self._rest(model, stream, layer)

        shares: Tensor = self._patch_map(rest, here.clone(), there, int(right), int(wrong))
        return shares

    @staticmethod
    def _rest(model: LanguageModel, stream: Tensor, layer: int) -> Tensor:
        return model.logits(model.continue_from(stream[None], layer))[0]


def patch_map(rest: Callable[[Tensor, int], Tensor], here: Tensor, there: Tensor, right: int, wrong: int) -> Tensor:
    """Return how much of the difference each patch recovers, [n_layers + 1, seq_len]."""

    def ahead(stream: Tensor, layer: int) -> Tensor:
        logits = rest(stream, layer)[-1]
        return logits[right] - logits[wrong]

    low, high = ahead(here[0], 0), ahead(there[0], 0)
    found = here.new_empty(here.shape[:2])
    for layer, streams in enumerate(here):
        for position in range(len(streams)):
            patched = streams.clone()
            patched[position] = there[layer, position]
            found[layer, position] = (ahead(patched, layer) - low) / (high - low)
    return found
