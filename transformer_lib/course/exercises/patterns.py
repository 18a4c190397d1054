"""Finds what several wrong results have in common: each right but for a factor, an offset, an order, a transpose.

A claim is only made if it holds for every failing case, and if the right ones do not speak against it: a single
case may fit by chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .compare import is_number, kind, same

Result = tuple[Any, Any]  # expected, got: anything at all
Pair = tuple[torch.Tensor, torch.Tensor]  # expected, got: finite, in float64, with the same number of entries


@dataclass(frozen=True)
class Claim:
    """A sentence, and the question whether it is true of a pair of results."""

    text: str
    holds: Callable[[torch.Tensor, torch.Tensor], bool]
    may_be_right: bool = True  # may a result be right although the claim does not hold for it?


def shared_claim(
    wrong: Sequence[Result], right: Sequence[Result] = (), names: tuple[str, ...] = (), rtol: float | None = None
) -> str | None:
    """Return what is true of every wrong result; None if nothing is known to be.

    Args:
        wrong: what was expected, and what came, in each failing case, the smallest first.
        right: the same where it was right.
        names: what the parts of a tuple are called.
        rtol: relative tolerance.
    """
    if not names:
        return _claim(wrong, right)
    if not all(isinstance(got, list | tuple) and len(got) == len(names) for _, got in wrong):
        return None
    for index, name in enumerate(names):
        parts = [_part(result, index) for result in wrong]
        if not all(same(*part, rtol) for part in parts):
            claim = _claim(parts, [_part(result, index) for result in right])
            return f"{name}: {claim}" if claim else None
    return None


def _part(result: Result, index: int) -> Result:
    expected, got = result
    return expected[index], got[index]


def _claim(results: Sequence[Result], right: Sequence[Result]) -> str | None:
    single = all(is_number(one) and not isinstance(one, torch.Tensor) for one, _ in results)
    makers = [_factor] if single else [_layout, _zeros, _nearly, _factor, _offset, _order]
    pairs = [pair for result in results if (pair := _numbers(*result)) is not None]
    if len(pairs) < len(results):
        return None
    if not all(isinstance(one, torch.Tensor) and one.is_floating_point() for one, _ in results):
        makers = [_factor] if single else [_layout]
    for make in makers:
        for claim in make(pairs):
            if all(claim.holds(*pair) for pair in pairs) and _not_denied(claim, right):
                return claim.text.replace("Every value", "The result") if single else claim.text
    return None


def _not_denied(claim: Claim, right: Sequence[Result]) -> bool:
    pairs = [pair for result in right if (pair := _numbers(*result)) is not None]
    return claim.may_be_right or all(claim.holds(*pair) for pair in pairs)


def _numbers(expected: object, got: object) -> Pair | None:
    if is_number(expected) and is_number(got) and not isinstance(expected, torch.Tensor):
        expected, got = (torch.tensor([float(one)], dtype=torch.float64) for one in (expected, got))
    if not isinstance(expected, torch.Tensor) or not isinstance(got, torch.Tensor) or got.layout != torch.strided:
        return None
    if expected.is_complex() or kind(expected) != kind(got) or expected.numel() != got.numel():
        return None  # a tensor of which only the shape was kept has too many entries
    pair = expected.detach().double(), got.detach().double()
    return pair if all(bool(one.isfinite().all()) for one in pair) else None


def _within(first: torch.Tensor, second: torch.Tensor, rtol: float = 1e-4) -> bool:
    """Return True when two tensors of one shape agree, entries near zero by the measure of the largest one."""
    most = float(first.abs().max()) if first.numel() else 0.0
    return first.shape == second.shape and torch.allclose(second, first, rtol=rtol, atol=rtol * 1e-2 * most)


def _layout(pairs: list[Pair]) -> Iterator[Claim]:
    expected, got = pairs[0]
    shapes = f": expected shape {list(expected.shape)}, got {list(got.shape)}" if expected.shape != got.shape else ""
    yield Claim(
        f"The result has the right values transposed{shapes}.",
        lambda wanted, came: came.dim() > 1 and _within(wanted, came.mT),
        may_be_right=False,
    )
    yield Claim(
        f"The values are right but arranged along other axes{shapes}.",
        lambda wanted, came: wanted.shape != came.shape and _within(wanted.reshape(-1), came.reshape(-1)),
    )


def _zeros(pairs: list[Pair]) -> Iterator[Claim]:
    yield Claim(
        "The result is all zeros.",
        lambda wanted, came: wanted.shape == came.shape and not bool(came.any()),
        may_be_right=False,
    )


def _nearly(pairs: list[Pair]) -> Iterator[Claim]:
    if all(wanted.shape == came.shape for wanted, came in pairs):
        most = max(float((wanted - came).abs().max()) for wanted, came in pairs)
        yield Claim(
            f"Nearly right: off by {most:.0e} at most. Was a number rounded, or a repetition stopped too early?",
            lambda wanted, came: _within(wanted, came, 2e-3),
        )


def _factor(pairs: list[Pair]) -> Iterator[Claim]:
    """Claim a factor between the two, where there are at least two numbers; one is always some factor away."""
    wanted, came = max(pairs, key=lambda pair: pair[0].numel())
    size = float((wanted**2).sum())
    if sum(one.numel() for one, _ in pairs) < 2 or wanted.shape != came.shape or size == 0:
        return
    ratio = float((wanted * came).sum()) / size
    if abs(ratio) < 1e-6 or math.isclose(ratio, 1.0, rel_tol=2e-3):
        return
    flipped = math.isclose(ratio, -1.0, rel_tol=1e-3)
    words = "the right one with its sign flipped" if flipped else f"{ratio:.4g} times the right one"
    yield Claim(f"Every value is {words}.", lambda wanted, came: _within(ratio * wanted, came, 1e-3), False)


def _offset(pairs: list[Pair]) -> Iterator[Claim]:
    wanted, came = max(pairs, key=lambda pair: pair[0].numel())
    if wanted.numel() < 2 or wanted.shape != came.shape:
        return
    shift = float((came - wanted).mean())
    near = max(1e-3 * abs(shift), 1e-6 * float(wanted.abs().max()))
    yield Claim(
        f"Every value is off by the same amount, {shift:+.3g}.",
        lambda one, other: one.shape == other.shape and bool(((other - one - shift).abs() <= near).all()),
        may_be_right=False,
    )


def _order(pairs: list[Pair]) -> Iterator[Claim]:
    def holds(wanted: torch.Tensor, came: torch.Tensor) -> bool:
        first, second = (one.reshape(-1).sort().values for one in (wanted, came))
        return wanted.shape == came.shape and _within(first, second)

    yield Claim("The values are right but in another order.", holds)
