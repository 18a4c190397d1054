"""Ways to compute attention against the clock, and how fast this machine computes and moves numbers (notebook 16)."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor

import transformer_lib as tl

from . import stored

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_WHOSE = getattr(resource, "RUSAGE_THREAD", getattr(resource, "RUSAGE_SELF", 0))
Way = Callable[..., Tensor]
load_results = stored.loader("racing.json")


def race(ways: Mapping[str, Way], *inputs: Tensor, rounds: int = 5) -> dict[str, float]:
    """Return the seconds that each way takes for `inputs`, in one thread.

    The ways take turns, and the fastest of `rounds` counts, since other work of the machine can only add to it. It is
    the processor's own time, with what the operating system does for the thread; where that cannot be measured finely
    (Windows), time by the clock.

    Raises:
        ValueError: if there is no way, or no round.
    """
    if not ways or rounds < 1:
        raise ValueError(f"ways and rounds must be at least one, got {len(ways)} and {rounds}")
    seconds = dict.fromkeys(ways, math.inf)
    with one_thread(), torch.no_grad():
        for _ in range(rounds):
            for name, way in ways.items():
                seconds[name] = min(seconds[name], _timed(way, *inputs))
    return seconds


def product_rate(n: int = 1024, *, rounds: int = 5) -> float:
    """Return the multiply-adds that one thread does in a second in a product of two [n, n] matrices."""
    first, second = torch.ones(2, n, n)
    return n**3 / race({"product": torch.matmul}, first, second, rounds=rounds)["product"]


def moving_rate(numbers: int, *, rounds: int = 5) -> float:
    """Return how many float32 numbers one thread moves in a second, read or written, to double a tensor of that many.

    A small tensor stays in the processor's cache, a large one comes from memory and goes back. It is done as often as
    it takes to move 2²⁵ numbers, into a result that is there already.
    """
    inside, outside = torch.ones(2, numbers)
    times = max(1, 2**24 // numbers)

    def double() -> Tensor:
        for _ in range(times):
            torch.mul(inside, 2.0, out=outside)
        return outside

    return 2 * numbers * times / race({"double": double}, rounds=rounds)["double"]


def pages(way: Way, *inputs: Tensor) -> int | None:
    """Return how many new pages of memory the operating system hands to the thread during a second call of `way`.

    What was handed over in the first call and kept is not asked for again. None where pages are not counted (Windows).
    """
    if resource is None:
        return None
    with one_thread(), torch.no_grad():
        way(*inputs)
        before = resource.getrusage(_WHOSE).ru_minflt
        way(*inputs)
        return int(resource.getrusage(_WHOSE).ru_minflt - before)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let PyTorch compute in one thread, and in as many as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _timed(function: Callable[..., object], *inputs: Tensor) -> float:
    clock = time.perf_counter if sys.platform == "win32" else time.thread_time
    start = clock()
    function(*inputs)
    return max(clock() - start, 1e-9)


def grid(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Return attention [n, d_v] of [n, d_k], [n, d_k], [n, d_v] with every score in its place."""
    return tl.scaled_dot_product_attention(query, key, value)[0]


def grid_in(scores: Tensor, weights: Tensor) -> Way:
    """Return `grid` for n queries and keys that writes into two [n, n] tensors made beforehand."""

    def way(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        torch.matmul(query / math.sqrt(query.shape[1]), key.T, out=scores)
        torch.softmax(scores, dim=-1, out=weights)
        return weights @ value

    return way


def in_blocks(query: Tensor, key: Tensor, value: Tensor, block: int = 512) -> Tensor:
    """Return the same, a block of queries and a block of keys at a time, by a running softmax."""
    outputs = []
    for rows in query.split(block):
        largest, total, blend = torch.full((len(rows), 1), -torch.inf), torch.zeros(len(rows), 1), 0.0
        for keys, values in zip(key.split(block), value.split(block), strict=True):
            scores = rows @ keys.T / math.sqrt(rows.shape[1])
            new = torch.maximum(largest, scores.amax(dim=-1, keepdim=True))
            shrink, grown = (largest - new).exp(), (scores - new).exp()
            total, blend = total * shrink + grown.sum(dim=-1, keepdim=True), blend * shrink + grown @ values
            largest = new
        outputs.append(blend / total)
    return torch.cat(outputs)


def fused(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Return the same by PyTorch's fused attention, which wants axes for batch and heads."""
    four = (x[None, None] for x in (query, key, value))
    return torch.nn.functional.scaled_dot_product_attention(*four)[0, 0]


Block = tuple[Tensor, Tensor, Tensor]


def read_block(query: Tensor, keys: Tensor, values: Tensor) -> Block:
    """Return of each query, for a block of keys: the largest score and the sum [n, 1], and the blend [n, d_v].

    The largest score cancels in the output, so no gradient passes through it.
    """
    scores = query @ keys.T / math.sqrt(query.shape[1])
    largest = scores.amax(dim=-1, keepdim=True).detach()
    grown = (scores - largest).exp()
    return largest, grown.sum(dim=-1, keepdim=True), grown @ values


def merge(first: Block, second: Block) -> Block:
    """Return what is known of each query after both blocks; both sums are measured from the larger of the two."""
    largest = torch.maximum(first[0], second[0])
    factors = [(part[0] - largest).exp() for part in (first, second)]
    total, blend = (factors[0] * first[i] + factors[1] * second[i] for i in (1, 2))
    return largest, total, blend


def attend(
    query: Tensor, key: Tensor, value: Tensor, block: int = 128, join: Callable[[Block, Block], Block] = merge
) -> tuple[Tensor, Tensor]:
    """Return attention of [n, d_k], [k_len, d_k], [k_len, d_v], block by block, and of each query m + ln ℓ [n, 1].

    `join` puts two blocks together, as `merge` does.
    """
    first, *others = zip(key.split(block), value.split(block), strict=True)
    joined = read_block(query, *first)
    for keys, values in others:
        joined = join(joined, read_block(query, keys, values))
    largest, total, blend = joined
    return blend / total, largest + total.log()
