"""Questions about a wrong result whose answer says more than "the numbers differ"."""

from __future__ import annotations

from collections.abc import Callable

import torch

from .model import Case, Probe


def weights_sum(part: int | None = None, what: str = "Weights", over: str = "keys") -> Probe:
    """Do the weights sum to one over the keys (the last axis), or over another axis?

    Args:
        part: which result holds the weights, if there are several.
        what: what the numbers are called.
        over: what lies along the last axis.
    """

    def probe(call: Callable[..., object], case: Case, got: object) -> str | None:
        weights = _tensor(got, part)
        if _is_one(weights.sum(-1)):
            return None
        if weights.dim() >= 2 and weights.shape[-2] > 1 and _is_one(weights.sum(-2)):
            return "Your weights sum to one over queries (axis -2), not over keys (axis -1)."
        rows = weights.sum(-1)
        wrong = rows.reshape(-1)[(rows.reshape(-1) - 1).abs().argmax()]
        if bool(wrong.isnan()):
            return None
        return f"{what} must sum to one over the {over}; yours sum to {float(wrong):.3g}."

    return probe


def _tensor(result: object, part: int | None) -> torch.Tensor:
    """Return the tensor that a function returned, or this one of several results."""
    if part is not None:
        if not isinstance(result, list | tuple):
            raise TypeError(f"result must be a list or a tuple, got {type(result).__name__}")
        result = result[part]
    if not isinstance(result, torch.Tensor):
        raise TypeError(f"result must be a tensor, got {type(result).__name__}")
    return result


def _is_one(sums: torch.Tensor) -> bool:
    # A row that may attend to nothing rightly sums to zero.
    ones = torch.where(sums == 0, torch.ones_like(sums), sums)
    return bool(torch.allclose(ones, torch.ones_like(ones), atol=1e-4))


def masked_key_leak(call: Callable[..., object], case: Case, got: object) -> str | None:
    """Change one value that a query may not see: does that query's output change?"""
    query, key, value, mask = case.args
    allowed = mask.expand(*query.shape[:-1], key.shape[-2])
    for place in (~allowed).nonzero().tolist():
        *batch, row, column = place
        changed = value.clone()
        changed[(*batch, column)] += 100.0
        again = call(query, key, changed, mask)
        if again is None:
            continue
        before, after = (_tensor(result, 0)[(*batch, row)] for result in (got, again))
        if not torch.allclose(before, after, atol=1e-3, equal_nan=True):
            return f"Query {row} may not see key {column}, yet the value at {column} leaks into its output."
    return None
