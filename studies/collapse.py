"""Attention without weights, again and again: how many rounds until all tokens are one? (notebook 02)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from transformer_lib.course.lab.collapse import Array, groups, one_round, spread, tokens

from .engine import Step, Steps, Study

SQUARED_LENGTHS = (1, 2, 4, 6, 8, 9, 10, 12, 16)  # on average over the tokens
LIMIT = 1_000_000  # rounds; tokens that are not one by then are stored as null
COLLAPSED = 0.01  # the spread below which they count as one
LOOKS = tuple(sorted({round(10 ** (tenth / 5)) for tenth in range(31)}))  # rounds at which the spread is stored


def after_rounds(X: Array) -> Iterator[tuple[int, Array]]:
    """Yield (0, X), then the number of each round and the tokens after it, without end."""
    for number in itertools.count():
        yield number, X
        X = one_round(X)


def follow(squared_length: float, seeds: Sequence[int], limit: int = LIMIT) -> dict[str, list[Any]]:
    """Follow tokens until all are one, or for `limit` rounds.

    Returns "rounds": for each seed the first round after which the spread is below COLLAPSED, or None; and for each of
    LOOKS, as far as it went, "spread" [looks, seeds] and "groups" [looks, seeds].
    """
    reached: list[int | None] = [None] * len(seeds)
    curves: dict[str, list[Any]] = {"rounds": reached, "spread": [], "groups": []}
    for number, X in after_rounds(tokens(squared_length, seeds)):
        now = spread(X)
        for one in (now < COLLAPSED).nonzero()[0]:
            reached[one] = number if reached[one] is None else reached[one]
        if number in LOOKS:
            curves["spread"].append(now.round(4).tolist())
            curves["groups"].append(groups(X))
        if number >= limit or None not in reached:
            return curves
    raise AssertionError("after_rounds() has no end")


def two_tokens(squared_length: float, limit: int = 10**8) -> int | None:
    """Return the rounds until two tokens of this squared length, at right angles, are closer than COLLAPSED.

    Their distance D becomes D tanh(D² / 4) in each round; exercise 02.4 shows why. None if it takes more than `limit`.
    """
    distance = (2 * squared_length) ** 0.5
    for number in range(limit + 1):
        if distance < COLLAPSED:
            return number
        distance *= float(np.tanh(distance**2 / 4))
    return None


def steps(seeds: Sequence[int]) -> Steps:
    """Follow tokens of each length."""
    for squared in SQUARED_LENGTHS:
        yield Step(("found", str(squared)), lambda one: follow(one, seeds) | {"two tokens": two_tokens(one)}, squared)


STUDY = Study("collapse", __doc__, steps, seeds=range(5), constants={"limit": LIMIT, "looks": list(LOOKS)})


if __name__ == "__main__":
    STUDY.command()
