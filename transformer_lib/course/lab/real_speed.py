"""How fast a language model says tokens on this machine, and how fast memory would let it (notebook 23)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

import torch

import transformer_lib as tl
from transformer_lib.fast.modern_stepper import ModernStepper

NUMBERS = 12_000  # rows and columns of the matrix that is read: 576 MB, more than any cache of a processor holds


def tokens_a_second(model: tl.modern.LanguageModel, ids: Sequence[int], *, n: int = 12) -> dict[str, float]:
    """Return how many tokens a second are said after ids: without a cache, with one, and by the fast path.

    The prompt has been read when the clock starts, where there is a cache.
    """
    prompt, longest = list(ids), len(ids) + n + 1
    return {
        "no cache": _rate(tl.generate(model, prompt, max_new_tokens=1 + n // 4, use_cache=False)),
        "cache": _rate(tl.generate(model, prompt, max_new_tokens=1 + n)),
        "fast path": _rate(
            tl.generate(model, prompt, max_new_tokens=1 + n, path="fast", cache=ModernStepper(model, 1, longest))
        ),
    }


def _rate(tokens: Iterable[int]) -> float:
    """Return tokens a second, from the first token on."""
    seconds, last = list[float](), None
    for _ in tokens:
        now = time.perf_counter()
        if last is not None:
            seconds.append(now - last)
        last = now
    return 1 / sorted(seconds)[len(seconds) // 2]  # the median: other programs interrupt a few


@torch.no_grad()
def bytes_a_second(numbers: int = NUMBERS, rounds: int = 5) -> float:
    """Return how many bytes of a matrix a product with a vector reads in a second, at its fastest."""
    matrix, vector = torch.ones(numbers, numbers), torch.ones(numbers)
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        matrix @ vector
        seconds.append(time.perf_counter() - start)
    return matrix.numel() * matrix.element_size() / min(seconds)
