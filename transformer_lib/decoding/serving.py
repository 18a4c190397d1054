"""Many people at one model: a batch that sentences join and leave at any step, and a queue in front of it.

`JoiningBatch` decodes greedily. Each sentence has its own position, and when one has ended, another takes its slot at
the next step (Gao et al. 2018 did so for recurrent networks, Yu et al. 2022, who call it iteration-level scheduling,
for Transformers). `simulate` computes how long requests wait for such a batch, or for one that must end before the next
begins. `server` puts such a batch behind an address.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._lists import check_items, check_rows
from .._validate import check_flag, check_int, check_positive
from ..data.tokenizers import pad_batch
from ..fast.eligibility import obstacle
from ..model.attention import fused_attention
from ..model.base import TranslationModel
from ..model.decoder import DecoderLayer
from ..model.evaluating import all_evaluating, evaluating, parts_of
from ..model.masks import padding_mask
from ..model.multihead import MultiHeadAttention
from ..model.positional import LearnedPosition, RelativeBias, RotaryPosition, SinusoidalPosition
from ..model.transformer import Transformer
from .stepping import check_request, check_weights

Numbers = NDArray[np.float64]


class JoiningBatch:
    """Sentences that are translated together, greedily, though they came at different steps.

    Keys and values of each sentence are rows of buffers with `capacity` slots; the first `len(batch)` are in use. When
    a sentence leaves, the last one moves into its slot.

    Args:
        model: a `Transformer` with positions of any kind; it is used as in evaluation.
        capacity: the most sentences at a time. max_new_tokens: at most this many tokens after bos.

    Raises:
        TypeError, ValueError: an argument is out of range; the model is no plain `Transformer`, or has a weight that is
            NaN or infinite.
    """

    def __init__(self, model: TranslationModel, capacity: int, *, max_new_tokens: int = 40) -> None:
        self.model = _require_plain(model)
        check_weights("model", model)
        self._parts = parts_of(model)
        config = self.model.config
        self.capacity, self.max_new_tokens = (
            check_int("capacity", capacity),
            check_int("max_new_tokens", max_new_tokens),
        )
        if max_new_tokens > config.max_len:
            raise ValueError(f"max_new_tokens must not exceed max_len = {config.max_len}, got {max_new_tokens}")
        weight = self.model.output_head.weight
        self.ids = torch.full((capacity, 1 + max_new_tokens), config.pad_id, device=weight.device)
        self.lengths = self.ids.new_zeros(capacity)  # tokens so far, bos included
        self.tickets: list[int] = []  # of the sentence in each slot that is in use
        self.newest: dict[int, int] = {}  # {number: id} that the last step said, also of sentences that ended with it
        self.joined = 0
        self.src_mask = torch.zeros(capacity, 1, 1, config.max_len, dtype=torch.bool, device=weight.device)
        self.layers = [
            _Buffers(cast(DecoderLayer, layer), capacity, max_new_tokens, config.max_len, weight)
            for layer in self.model.decoder.layers
        ]

    def __len__(self) -> int:
        return len(self.tickets)

    @property
    def free(self) -> int:
        """The slots that are not in use."""
        return self.capacity - len(self)

    @torch.no_grad()
    def join(self, src: Tensor) -> list[int]:
        """Read the sentences src [n, src_len] and let them take part from the next step on; return a number for each.

        Raises:
            TypeError, ValueError: src does not fit the model, or is more than the free slots.
        """
        src = check_request(self.model, src, self.max_new_tokens)
        if len(src) > self.free:
            raise ValueError(f"src must have no more sentences than slots are free, {self.free}, got {len(src)}")
        slots = slice(len(self), len(self) + len(src))
        with self._evaluating():
            memory = self.model.encode(src)
        for layer in self.layers:
            layer.read(memory, slots)
        self.src_mask[slots] = False
        self.src_mask[slots, ..., : src.shape[1]] = padding_mask(src, self.model.config.pad_id)
        self.ids[slots] = self.model.config.pad_id
        self.ids[slots, 0] = self.model.config.bos_id
        self.lengths[slots] = 1
        new = list(range(self.joined, self.joined + len(src)))
        self.tickets += new
        self.joined += len(src)
        return new

    @torch.no_grad()
    def step(self) -> dict[int, list[int]]:
        """Add a token to every sentence; those that end leave: {number: ids, from bos to eos if it came}.

        Raises:
            ValueError: nobody is in the batch.
        """
        if not self.tickets:
            raise ValueError("the batch must hold a sentence before a step, and it is empty")
        with self._evaluating():
            chosen = self._logits().argmax(dim=-1)
        n = len(self)
        self.newest = dict(zip(self.tickets, chosen.tolist(), strict=True))
        self.ids[torch.arange(n), self.lengths[:n]] = chosen
        self.lengths[:n] += 1
        over = (chosen == self.model.config.eos_id) | (self.lengths[:n] > self.max_new_tokens)
        ended = over.nonzero()[:, 0].tolist()
        result = {self.tickets[slot]: self.ids[slot, : self.lengths[slot]].tolist() for slot in ended}
        for slot in reversed(ended):  # so that the last slot is never one that still has to leave
            self._leave(slot)
        return result

    def leave(self, number: int) -> None:
        """Take a sentence out before it has ended, as when nobody waits for it any more.

        Raises:
            ValueError: it is not in the batch.
        """
        if number not in self.tickets:
            raise ValueError(f"number must be of a sentence in the batch, {self.tickets}, got {number!r}")
        self._leave(self.tickets.index(number))

    def _evaluating(self) -> AbstractContextManager[None]:
        """Return `evaluating(model)`, or nothing to do where the model stays so anyway: that takes a 20th of a step."""
        return nullcontext() if all_evaluating(self._parts) else evaluating(self.model)

    def _logits(self) -> Tensor:
        """Return the next token's logits for every sentence inside, [n, tgt_vocab_size]."""
        model, n = self.model, len(self)
        places = self.lengths[:n] - 1  # of the newest token; tokens before it are in the buffers
        newest = self.ids[torch.arange(n), places]
        x = model.tgt_embedding(newest) * math.sqrt(model.config.d_model) + self._positions(places)
        longest = int(places.max()) + 1
        seen = torch.arange(longest, device=x.device) <= places[:, None]
        seen &= self.ids[:n, :longest] != model.config.pad_id  # as `Transformer.tgt_mask` has it
        src_len = int(self.src_mask[:n].any(dim=0).sum())
        masks = seen[:, None, None], self.src_mask[:n, ..., :src_len]
        x = x[:, None]  # [n, 1, d_model]
        for layer in self.layers:
            x = layer.step(x, places, *masks)
        logits: Tensor = model.output_head(model.decoder.norm(x)[:, 0])
        return logits

    def _positions(self, places: Tensor) -> Tensor | float:
        position = self.model.position
        return position.table[places] if isinstance(position, (SinusoidalPosition, LearnedPosition)) else 0.0

    def _leave(self, slot: int) -> None:
        last = len(self) - 1
        self.tickets[slot] = self.tickets[last]
        self.tickets.pop()
        for rows in (self.ids, self.lengths, self.src_mask, *(rows for layer in self.layers for rows in layer.rows)):
            rows[slot] = rows[last]


class _Buffers:
    """A decoder layer, and each slot's keys and values [capacity, n_heads, len, d_k], its own and the memory's."""

    def __init__(self, layer: DecoderLayer, capacity: int, tokens: int, src_len: int, like: Tensor) -> None:
        self.layer = layer
        heads, width = layer.self_attention.n_heads, layer.self_attention.d_k
        self.rows = [like.new_zeros(capacity, heads, length, width) for length in (tokens, tokens, src_len, src_len)]

    def read(self, memory: Tensor, slots: slice) -> None:
        """Keep the keys and values of a memory [n, src_len, d_model] in these slots."""
        cross = self.layer.cross_attention
        for rows, project in zip(self.rows[2:], (cross.w_k, cross.w_v), strict=True):
            rows[slots, :, : memory.shape[1]] = cross.split_heads(project(memory))

    def step(self, x: Tensor, places: Tensor, own_mask: Tensor, src_mask: Tensor) -> Tensor:
        """Return x [n, 1, d_model], the tokens at `places`, after the layer."""
        layer = self.layer
        x = layer.self_attention_residual(x, lambda y: self._attend_own(y, places, own_mask))
        x = layer.cross_attention_residual(x, lambda y: self._attend_memory(y, src_mask))
        return layer.feed_forward_residual(x, layer.feed_forward)

    def _attend_own(self, x: Tensor, places: Tensor, mask: Tensor) -> Tensor:
        own, every = self.layer.self_attention, torch.arange(len(x), device=x.device)
        q, k, v = (own.split_heads(project(x)) for project in (own.w_q, own.w_k, own.w_v))  # [n, n_heads, 1, d_k]
        if isinstance(own.position, RotaryPosition):
            q, k = (own.position.rotate_at(rows, places[:, None, None]) for rows in (q, k))
        keys, values = self.rows[:2]
        keys[every, :, places], values[every, :, places] = k[:, :, 0], v[:, :, 0]
        bias = None
        if isinstance(own.position, RelativeBias):  # [n_heads, n, k_len] -> [n, n_heads, 1, k_len]
            bias = own.position.at(places, mask.shape[-1]).transpose(0, 1)[:, :, None]
        return _output(own, q, keys[: len(x)], values[: len(x)], mask, bias)

    def _attend_memory(self, x: Tensor, mask: Tensor) -> Tensor:
        cross, (keys, values) = self.layer.cross_attention, self.rows[2:]
        return _output(cross, cross.split_heads(cross.w_q(x)), keys[: len(x)], values[: len(x)], mask)


def _output(
    attention: MultiHeadAttention, q: Tensor, keys: Tensor, values: Tensor, mask: Tensor, bias: Tensor | None = None
) -> Tensor:
    seen = mask.shape[-1]
    heads = fused_attention(q, keys[:, :, :seen], values[:, :, :seen], mask, bias=bias)
    output: Tensor = attention.w_o(attention.join_heads(heads))
    return output


def _require_plain(model: TranslationModel) -> Transformer:
    reason = obstacle(model)
    if reason is not None:
        raise ValueError(f"model must be a plain Transformer, but {reason}")
    return cast(Transformer, model)


@dataclass(frozen=True)
class Counts:
    """What serving took: steps of the model, rows (slots × steps, used or not), tokens made (eos included)."""

    steps: int
    rows: int
    tokens: int

    @property
    def used(self) -> float:
        """The share of the rows in which a token was made."""
        return self.tokens / self.rows


def serve(
    model: TranslationModel,
    sources: Iterable[Iterable[int]],
    *,
    capacity: int,
    joining: bool = True,
    max_new_tokens: int = 40,
) -> tuple[list[list[int]], Counts]:
    """Translate all sources, which wait in this order, with at most `capacity` at a time.

    Args:
        sources: ids of each sentence. joining: whether the next one takes a slot as soon as it is free; else the next
            batch begins when the whole batch has ended.

    Returns:
        the ids of each translation, from bos to eos, and what it took.
    """
    check_flag("joining", joining)
    rows = check_rows("sources", sources, fewest=1)
    batch, waiting = JoiningBatch(model, capacity, max_new_tokens=max_new_tokens), deque(rows)
    results: dict[int, list[int]] = {}
    steps = 0
    while waiting or len(batch):
        if waiting and batch.free and (joining or not len(batch)):
            new = [waiting.popleft() for _ in range(min(batch.free, len(waiting)))]
            batch.join(pad_batch(new, model.config.pad_id).to(batch.ids.device))
        results |= batch.step()
        steps += 1
    said = [results[ticket] for ticket in range(len(rows))]
    return said, Counts(steps, steps * capacity, sum(len(ids) - 1 for ids in said))


def count_steps(lengths: Iterable[int] | NDArray[Any], capacity: int, *, joining: bool = True) -> int:
    """Number of steps `serve` needs for requests of these lengths, in this order."""
    check_int("capacity", capacity)
    counts = _counts(lengths)
    if not joining:
        return sum(max(counts[i : i + capacity]) for i in range(0, len(counts), capacity))
    ends = [0] * capacity  # when each slot is free
    for length in counts:
        first = min(range(capacity), key=ends.__getitem__)
        ends[first] += length
    return max(ends)


@dataclass(frozen=True)
class Costs:
    """Seconds that it takes to read n new sentences, and to make a step with n sentences in the batch."""

    read: Callable[[int], float]
    step: Callable[[int], float]

    @classmethod
    def measured(cls, read: Mapping[int, float], step: Mapping[int, float]) -> Costs:
        """Return costs that are straight lines between those measured, {n: seconds}; beyond the last in proportion."""
        return cls(_between(read), _between(step))


def _between(measured: Mapping[int, float]) -> Callable[[int], float]:
    if not measured:
        raise ValueError("costs must have been measured for some number of sentences, got none")
    known = sorted(measured)
    table = np.interp(np.arange(known[-1] + 1), known, [measured[n] for n in known]).tolist()
    return lambda n: table[n] if n < len(table) else table[-1] * n / known[-1]


def poisson_arrivals(rate: float, n: int, seed: int) -> Numbers:
    """Return the times [n] at which requests arrive, in seconds: independent ones, `rate` a second on average."""
    gaps = np.random.default_rng(seed).exponential(1 / check_positive("rate", rate), check_int("n", n))
    return np.asarray(gaps.cumsum())


def simulate(
    arrivals: Iterable[float] | Numbers,
    lengths: Iterable[int] | NDArray[Any],
    costs: Costs,
    *,
    capacity: int,
    joining: bool = True,
) -> Numbers:
    """Return how many seconds pass between each request's arrival and its end, [n], first come, first served.

    Args:
        arrivals: seconds, ascending. lengths: tokens that each request makes. costs: of the machine.
        capacity, joining: as for `serve`; a batch that nobody joins takes those who wait when it begins.

    Raises:
        TypeError, ValueError: arrivals and lengths are not equally many, arrivals not ascending, a length below 1.
    """
    times, counts = np.asarray(_listed("arrivals", arrivals, "numbers"), dtype=float), _counts(lengths)
    check_int("capacity", capacity)
    check_flag("joining", joining)
    if times.shape != (len(counts),) or not np.isfinite(times).all() or (np.diff(times) < 0).any():
        raise ValueError(f"arrivals must ascend and be as many as lengths, {len(counts)}, got shape {times.shape}")
    coming, ends = deque(enumerate(times.tolist())), np.zeros(len(counts))
    inside: list[tuple[int, int]] = []  # a heap of (the step after which it has ended, request)
    now, steps = 0.0, 0
    while coming or inside:
        if not inside:
            now = max(now, coming[0][1])
        if joining or not inside:
            before = len(inside)
            while coming and coming[0][1] <= now and len(inside) < capacity:
                request, _ = coming.popleft()
                heapq.heappush(inside, (steps + counts[request], request))
            if len(inside) > before:
                now += costs.read(len(inside) - before)
        now, steps = now + costs.step(len(inside)), steps + 1
        while inside and inside[0][0] == steps:
            ends[heapq.heappop(inside)[1]] = now
    return np.asarray(ends - times)


def _listed(name: str, values: Iterable[Any] | NDArray[Any], kind: str) -> list[Any]:
    return check_items(name, values.tolist() if isinstance(values, np.ndarray) else values, kind)


def _counts(lengths: Iterable[int] | NDArray[Any]) -> list[int]:
    """Return how many tokens each request makes, as ints."""
    return [check_int("lengths", length) for length in _listed("lengths", lengths, "ints")]
