"""Speculative decoding in which the learner's function of notebook 22 says which drafted tokens stand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ...decoding.speculative import Accept, Model, Speculated, speculative_decode, tokens_that_stand

PART = "tokens_that_stand"


@dataclass(frozen=True)
class Speculating:
    """Greedy speculative decoding by a function that says which tokens stand; `whose` says whose it is."""

    accept: Accept
    whose: str

    def __call__(self, target: Model, draft: Model, src: Tensor, **options: Any) -> Speculated:
        """Decode as `speculative_decode` does; options are its keywords, without accept."""
        return speculative_decode(target, draft, src, accept=self.accept, **options)


def speculating_with(theirs: Mapping[str, Callable[..., Any]]) -> Speculating:
    """Return the decoder with the learner's function, by the name of its part; without one, with the library's."""
    if PART not in theirs:
        return Speculating(tokens_that_stand, f"{PART} is the library's; yours takes its place once it is accepted.")
    function = theirs[PART]

    def accept(drafted: list[int], checked: list[int], eos_id: int) -> list[int]:
        return [int(token) for token in function(list(drafted), list(checked), eos_id)]  # a tensor will do, too

    return Speculating(accept, f"{PART} is yours.")
