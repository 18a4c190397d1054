"""What `train` asks of any loader: epochs with the number of batches that its length gives, each a pair of ids."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from .._validate import check_id_batch
from ..data.batches import Batches


def check_batches(batches: Batches, pad_id: int) -> None:
    """Raise unless `batches` has epochs and a length, and is padded with `pad_id`."""
    if not callable(getattr(batches, "epoch", None)) or not hasattr(batches, "__len__"):
        wanted = "tl.Batches, or have a method epoch(number) and a length"
        raise TypeError(f"batches must be {wanted}, got {type(batches).__name__}")
    if len(batches) == 0:
        raise ValueError("batches must hold a batch, got none")
    padding = getattr(batches, "pad_id", pad_id)  # other loaders may have none to tell
    if padding != pad_id:
        raise ValueError(f"batches must be padded with the model's pad_id {pad_id}, got {padding}")


def epoch_of(batches: Batches, number: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the batches of epoch `number`, int64 ids src [batch, src_len] and tgt [batch, tgt_len].

    Raises:
        TypeError, ValueError: one is no pair of ids, or they are not as many as the length says.
    """
    count = 0
    for pair in batches.epoch(number):
        count += 1
        if count > len(batches) or not isinstance(pair, (tuple, list)) or len(pair) != 2:
            break
        yield check_id_batch("src", pair[0]), check_id_batch("tgt", pair[1])
    else:
        if count == len(batches):
            return
    raise ValueError(
        f"batches must give {len(batches)} pairs (src, tgt) in epoch {number}, as its length says, "
        f"got another number of them, or what is no pair, at batch {count}"
    )
