"""Keys and values kept between decoding steps, so that each step projects only the new token."""

from __future__ import annotations

import torch
from torch import Tensor


class KeyValueCache:
    """Keys [batch, n_heads, seq_len, d_k] and values [batch, n_heads, seq_len, d_v] seen so far.

    The buffers double when full, so appending one token at a time copies each entry a bounded number of times.
    """

    def __init__(self) -> None:
        self.length = 0
        self._keys: Tensor | None = None
        self._values: Tensor | None = None

    def read(self) -> tuple[Tensor, Tensor]:
        """Return the keys [batch, n_heads, length, d_k] and values [batch, n_heads, length, d_v] so far.

        Raises:
            ValueError: nothing has been appended yet.
        """
        if self._keys is None or self._values is None:
            raise ValueError("the cache must hold something before it is read, got an empty one")
        return self._keys[:, :, : self.length], self._values[:, :, : self.length]

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add the new tokens' keys and values, and return all of them.

        Raises:
            ValueError: they are of another batch size than those in the cache.
        """
        if self._keys is not None and len(keys) != len(self._keys):
            raise ValueError(f"keys must have the cache's batch size {len(self._keys)}, got {len(keys)}")
        end = self.length + keys.shape[2]
        self._keys = _with_room(self._keys, keys, end)
        self._values = _with_room(self._values, values, end)
        self._keys[:, :, self.length : end] = keys
        self._values[:, :, self.length : end] = values
        self.length = end
        return self.read()

    def select(self, rows: Tensor) -> None:
        """Keep the batch rows `rows` (repeats allowed), in that order: beam search reorders its hypotheses."""
        if self._keys is not None and self._values is not None:
            self._keys, self._values = self._keys[rows], self._values[rows]


def _with_room(buffer: Tensor | None, new: Tensor, length: int) -> Tensor:
    if buffer is not None and buffer.shape[2] >= length:
        return buffer
    batch, n_heads, _, width = new.shape
    grown = torch.empty(batch, n_heads, max(16, 2 * length), width, dtype=new.dtype, device=new.device)
    if buffer is not None:
        grown[:, :, : buffer.shape[2]] = buffer
    return grown


class LayerCache:
    """What one decoder layer keeps: the growing keys and values of self-attention, and the memory's, computed once."""

    def __init__(self) -> None:
        self.self_attention = KeyValueCache()
        self.cross_attention = KeyValueCache()


class DecoderCache:
    """One `LayerCache` per decoder layer, and the target ids [batch, length] decoded so far."""

    def __init__(self, n_layers: int) -> None:
        self.layers = [LayerCache() for _ in range(n_layers)]
        self.ids: Tensor | None = None

    @property
    def length(self) -> int:
        """Target tokens already in the cache."""
        return 0 if self.ids is None else self.ids.shape[1]

    def append_ids(self, ids: Tensor) -> Tensor:
        """Add the ids [batch, new] of the tokens about to be decoded and return all of them [batch, length]."""
        self.ids = ids if self.ids is None else torch.cat((self.ids, ids), dim=1)
        return self.ids

    def select(self, rows: Tensor) -> None:
        """Keep the batch rows `rows` in every layer."""
        self.ids = None if self.ids is None else self.ids[rows]
        for layer in self.layers:
            layer.self_attention.select(rows)
            layer.cross_attention.select(rows)
