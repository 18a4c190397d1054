"""What each trick of the fast path is worth: the same work with one of them taken out, in the same rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import date
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lib.fast import forward, head_loss, products, stepper
from transformer_lib.fast.packing import RealTokens
from transformer_lib.training import loss

from .measure import interleaved, timed, times_faster
from .peers import Ours
from .run import command, machine
from .work import Given, Work

WHOLE, READABLE = "all of it", "the whole fast path"


def separate_projections(attention, x: Tensor, where: RealTokens, *maps) -> tuple[Tensor, ...]:
    return tuple(attention.split_heads(where.pad(linear(x))) for linear in maps)


def separate_head(states: Tensor, weight: Tensor, labels: Tensor, *, label_smoothing: float = 0.0) -> Tensor:
    logits = (states @ weight.T).float()
    return F.cross_entropy(logits, labels, label_smoothing=label_smoothing, reduction="sum")


def padded_states(model, src: Tensor, tgt_in: Tensor, counted: Tensor) -> Tensor:
    """Compute on padding, too. (For targets whose padding comes last, as in the work here.)"""
    with patch.object(forward, "RealTokens", lambda real, multiple: RealTokens(torch.ones_like(real))):
        return forward.decoder_states(model, src, tgt_in, counted)[counted.flatten()]


def with_modules(residual):
    """Normalise by calling the module."""
    if residual.norm_first:
        return lambda x, sublayer: x + sublayer(residual.norm(x))
    return lambda x, sublayer: residual.norm(x + sublayer(x))


TRAINING = {
    "padding left out": [patch.object(loss, "decoder_states", padded_states)],
    "head and loss in one": [patch.object(loss, "head_loss", separate_head)],
    "dropout from 16 bits": [patch.object(forward, "drop", lambda module, x: module(x))],
    "queries, keys, values by one product": [patch.object(forward, "project", separate_projections)],
}
# Matters where batches differ in length, and in bfloat16.
ROWS = {
    "rows by multiples of 32": [patch.object(part, "row_multiple", lambda device: 1) for part in (forward, head_loss)],
}
DECODING = {
    "weights laid out for few rows": [patch.object(products, "order", lambda weight: "as it is")],
    "no modules around the sub-layers": [patch.object(stepper, "_residual", with_modules)],
}


@contextmanager
def without(patches: list) -> Iterator[None]:
    """Take the tricks out for a while."""
    with ExitStack() as stack:
        for one in patches:
            stack.enter_context(one)
        yield


def measured(work: Work, say: Callable[[str], None] = print) -> dict:
    """Return the speed without each trick, relative to that with all of them, for each kind of work."""
    torch.set_num_threads(work.threads)
    torch.manual_seed(0)
    found = {}
    for precision in ("float32", "bfloat16"):
        say(f"training, {precision} …")
        found[f"training, {precision}"] = _ratios(work, TRAINING, _training(Ours, work, precision))
    say("training, bfloat16, batches of many lengths …")
    found["training, bfloat16, batches of many lengths"] = _ratios(work, ROWS, _training(Varied, work, "bfloat16"))
    for way in ("greedy", "beam"):
        say(f"decoding, {way} …")
        found[f"decoding, {way}"] = _ratios(work, DECODING, _decoding(work, way))
    return {"command": command("--tricks", work), "date": date.today().isoformat(), "machine": machine(), "work": found}


def _ratios(work: Work, tricks: dict[str, list], seconds: Callable[[str], float]) -> dict[str, dict[str, float]]:
    works: dict[str, Callable[[], float]] = {WHOLE: lambda: seconds("fast")}
    for name, patches in tricks.items():

        def changed(patches: list = patches) -> float:
            with without(patches):
                return seconds("fast")

        works[name] = changed
    works[READABLE] = lambda: seconds("readable")
    taken = interleaved(works, work.rounds)
    return {name: times_faster(taken[WHOLE], own) for name, own in taken.items() if name != WHOLE}


class Varied(Ours):
    """Trains on a new batch at each step, as one does: nearly each has another number of real tokens."""

    def __init__(self, *args, **options) -> None:
        super().__init__(*args, **options)
        self.seen = 0

    def batches(self, steps: int) -> Given:
        self.seen += steps
        return Given([self.work.other_pair(number) for number in range(self.seen - steps, self.seen)])


def _training(kind: type[Ours], work: Work, precision: str) -> Callable[[str], float]:
    peers = {path: kind(work, precision=precision, path=path) for path in ("fast", "readable")}

    def seconds(path: str) -> float:
        _, clock = peers[path].train(work.steps + 1)
        return (clock[-1] - clock[0]) / work.steps

    return seconds


def _decoding(work: Work, way: str) -> Callable[[str], float]:
    peers = {path: Ours(work, path=path) for path in ("fast", "readable")}
    src = work.source()
    return lambda path: timed(lambda: getattr(peers[path], way)(src, work.new_tokens))
