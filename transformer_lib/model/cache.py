"""Keys and values kept between decoding steps, so that each step projects only the new token."""

from __future__ import annotations

from collections.abc import Sized

import torch
from torch import Tensor

from .._validate import check_int


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
            ValueError: keys and values differ in sentences, heads or tokens, or do not fit those before them.
        """
        if keys.dim() != 4 or keys.shape[:3] != values.shape[:3]:
            raise ValueError(
                "keys and values must be [batch, n_heads, tokens, width], alike but for the width, got shapes "
                f"{tuple(keys.shape)} and {tuple(values.shape)}"
            )
        for name, new, before in (("keys", keys, self._keys), ("values", values, self._values)):
            _check_fits(name, new, before)
        end = self.length + keys.shape[2]
        self._keys = _with_room(self._keys, keys, end)
        self._values = _with_room(self._values, values, end)
        self._keys[:, :, self.length : end] = keys
        self._values[:, :, self.length : end] = values
        self.length = end
        return self.read()

    def crop(self, length: int) -> None:
        """Forget all tokens but the first `length`, 0 ≤ length ≤ self.length: a draft's rejected ones."""
        self.length = check_kept(length, self.length)

    def select(self, rows: Tensor) -> None:
        """Keep the batch rows `rows` (repeats allowed), in that order: beam search reorders its hypotheses."""
        if self._keys is not None and self._values is not None:
            self._keys, self._values = self._keys[rows], self._values[rows]


def check_kept(length: int, present: int) -> int:
    """Check that a cache of `present` tokens can be cut back to `length`, and return it."""
    if check_int("length", length, minimum=0) > present:
        raise ValueError(f"length must be at most the {present} tokens of the cache, got {length}")
    return length


def check_depth(layers: Sized, model_layers: Sized) -> None:
    """Raise ValueError unless a cache has as many layers as the model: the first ones of a deeper cache would fit."""
    if len(layers) != len(model_layers):
        raise ValueError(f"cache must have {len(model_layers)} layers, as this model, got {len(layers)}")


def _check_fits(name: str, new: Tensor, before: Tensor | None) -> None:
    """Raise unless `new` can be appended: writing into a buffer would broadcast one sentence or head to all."""
    if before is None:
        return
    (batch, n_heads, _, width), shape = before.shape, tuple(new.shape)
    if (shape[0], shape[1], shape[3], new.dtype) != (batch, n_heads, width, before.dtype):
        wanted = f"[{batch}, {n_heads}, tokens, {width}] and {before.dtype}"
        raise ValueError(f"{name} must be as in the cache, {wanted}, got shape {shape} and {new.dtype}")


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
        """Add the ids [batch, new] of the tokens about to be decoded and return all of them [batch, length].

        Raises:
            ValueError: another batch size than that of the ids before.
        """
        if self.ids is not None and len(ids) != len(self.ids):
            raise ValueError(f"ids must have the cache's batch size {len(self.ids)}, got {len(ids)}")
        self.ids = ids if self.ids is None else torch.cat((self.ids, ids), dim=1)
        return self.ids

    def crop(self, length: int) -> None:
        """Forget all target tokens but the first `length`, in every layer; what is kept of the memory stays."""
        check_kept(length, self.length)
        self.ids = None if self.ids is None else self.ids[:, :length]
        for layer in self.layers:
            layer.self_attention.crop(length)

    def select(self, rows: Tensor) -> None:
        """Keep the batch rows `rows` in every layer."""
        self.ids = None if self.ids is None else self.ids[rows]
        for layer in self.layers:
            layer.self_attention.select(rows)
            layer.cross_attention.select(rows)
