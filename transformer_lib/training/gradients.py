"""The gradient of a batch: computed whole, in parts, or shared among processes, with the same result."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from torch import Tensor, nn

from . import distributed
from .precision import Precision, computing


def count_targets(tgt: Tensor, pad_id: int) -> int:
    """Return how many tokens of tgt [batch, tgt_len] count in its loss: the real ones after bos."""
    return int((tgt[:, 1:] != pad_id).sum())


class BatchGradient:
    """Accumulates into `.grad` the gradient of the loss averaged over the real target tokens of a batch.

    Args:
        loss: a module; loss(src, tgt) is the loss summed over the tokens. pad_id: of padding, which
            does not count.
        accumulate: how many parts of a batch, one after the other. precision: see `computing`.
    """

    def __init__(self, loss: nn.Module, *, pad_id: int, accumulate: int = 1, precision: Precision = "float32") -> None:
        self.pad_id, self.accumulate, self.precision = pad_id, accumulate, precision
        self.device = next(loss.parameters()).device
        self.group = (
            nn.parallel.DistributedDataParallel(loss, broadcast_buffers=False) if distributed.together() else None
        )
        self.loss = loss if self.group is None else self.group

    def add(self, src: Tensor, tgt: Tensor) -> float:
        """Add the gradient to every `.grad`, and return the mean loss: in a group, of what all processes have."""
        tokens = count_targets(tgt, self.pad_id)
        if tokens == 0:
            raise ValueError(f"tgt must have a real token after bos, got none in a batch of shape {tuple(tgt.shape)}")
        scale = distributed.world_size() / tokens  # DistributedDataParallel averages over the processes
        losses = []
        parts = list(self._parts(len(src)))
        for number, (rows, counts) in enumerate(parts, start=1):
            with self._exchanging(last=number == len(parts)):
                with computing(self.precision, self.device):
                    loss = self.loss(src[rows].to(self.device), tgt[rows].to(self.device)) * counts
                (loss * scale).backward()
            losses.append(loss.detach())
        return distributed.add_up(sum(loss.item() for loss in losses)) / tokens

    def _exchanging(self, last: bool) -> contextlib.AbstractContextManager[None]:
        """Exchange gradients once, with the last part: until then each process adds up its own."""
        return contextlib.nullcontext() if last or self.group is None else self.group.no_sync()

    def _parts(self, rows: int) -> Iterator[tuple[slice, float]]:
        """Yield which rows of a batch this process takes, part after part, and whether they count (1 or 0).

        Every n-th row, so that long and short sentences are shared evenly. Where the rows are too few for all
        processes, one takes part with a row that counts nothing: the others wait for its gradient.
        """
        world = distributed.world_size()
        parts = min(self.accumulate, -(-rows // world))
        for part in range(parts):
            first = part * world + distributed.rank()
            yield (slice(first, None, parts * world), 1.0) if first < rows else (slice(0, 1), 0.0)
