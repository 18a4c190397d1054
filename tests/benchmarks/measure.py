"""Interleaved rounds, and what is kept of them: medians, and ratios that are taken round by round."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import torch

from .work import Work


def interleaved(works: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Run every work once in each round, in alternating order, so that a busy machine hits all; return the seconds."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for number in range(rounds):
        for name in list(works)[:: -1 if number % 2 else 1]:
            seconds[name].append(works[name]())
    return seconds


def timed(function: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return the median and the 10th and 90th percentile."""
    tenths = statistics.quantiles(values, n=10, method="inclusive")
    numbers = {"median": statistics.median(values), "low": tenths[0], "high": tenths[-1]}
    return {name: float(f"{number:.4g}") for name, number in numbers.items()}


def times_faster(baseline: Sequence[float], seconds: Sequence[float]) -> dict[str, float]:
    """Return how many times faster than the baseline: one ratio for each round, then `spread`."""
    return spread([theirs / own for theirs, own in zip(baseline, seconds, strict=True)])


def products(work: Work) -> dict[str, Callable[[], float]]:
    """Return the matrix products that a training step is made of; each returns its operations per second."""
    tokens, dtype = work.batch * work.length, torch.bfloat16 if work.bfloat16 else torch.float32
    width, hidden, vocabulary = work.d_model, work.d_ff, work.vocabulary
    shapes = [
        (tokens, width, width),
        (tokens, width, hidden),
        (tokens, hidden, width),
        (hidden, tokens, width),
        (tokens, width, vocabulary),
        (tokens, vocabulary, width),
        (vocabulary, tokens, width),
    ]
    return {" × ".join(map(str, shape)): _product(*shape, dtype, work.device) for shape in shapes}


def _product(rows: int, inner: int, columns: int, dtype: torch.dtype, device: str) -> Callable[[], float]:
    a = torch.randn(rows, inner, dtype=dtype, device=device)
    b = torch.randn(inner, columns, dtype=dtype, device=device)
    out = torch.empty(rows, columns, dtype=dtype, device=device)  # as in the step, no new memory is asked for

    def seconds() -> float:
        times = 5
        start = time.perf_counter()
        for _ in range(times):
            torch.mm(a, b, out=out)
        if device == "cuda":
            torch.cuda.synchronize()
        return (time.perf_counter() - start) / (2 * times * rows * inner * columns)

    return lambda: 1 / seconds()
