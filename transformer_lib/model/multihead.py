"""Multi-head attention (Vaswani et al. 2017, §3.2.2): project, split into heads, attend, concatenate, project."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, overload

import torch.nn.functional as F
from torch import Tensor, nn

from .._validate import check_fraction, check_int, check_sequence
from .attention import fused_attention, scaled_dot_product_attention
from .cache import KeyValueCache
from .positional import RelativeBias, RotaryPosition


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1 … head_h) W_O with head_i = Attention(Q W_Q,i, K W_K,i, V W_V,i).

    The heads' projections are stored side by side. Head i, counted from 0, has the rows i·d_k … (i+1)·d_k − 1 of
    `w_q.weight` and `w_k.weight`, and the rows i·d_v … (i+1)·d_v − 1 of `w_v.weight`.

    Args:
        d_model: width of query, key, value and output.
        n_heads: number of heads.
        d_k: width of one head's queries and keys; d_model / n_heads unless given.
        d_v: width of one head's values; d_model / n_heads unless given.
        bias: whether the four projections have a bias (the paper's have none).
        dropout: probability of dropping an attention weight in training (the paper drops none).
        position: a `RotaryPosition` or `RelativeBias` for self-attention that depends on offsets.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        d_k: int | None = None,
        d_v: int | None = None,
        bias: bool = False,
        dropout: float = 0.0,
        position: RotaryPosition | RelativeBias | None = None,
    ) -> None:
        super().__init__()
        self.d_model, self.n_heads = check_int("d_model", d_model), check_int("n_heads", n_heads)
        if (d_k is None or d_v is None) and d_model % n_heads:
            raise ValueError(
                "d_model must be divisible by n_heads unless d_k and d_v are given, "
                f"got d_model={d_model}, n_heads={n_heads}"
            )
        self.d_k = d_model // n_heads if d_k is None else check_int("d_k", d_k)
        self.d_v = d_model // n_heads if d_v is None else check_int("d_v", d_v)
        self.dropout = check_fraction("dropout", dropout)
        self.w_q = nn.Linear(d_model, n_heads * self.d_k, bias=bias)
        self.w_k = nn.Linear(d_model, n_heads * self.d_k, bias=bias)
        self.w_v = nn.Linear(d_model, n_heads * self.d_v, bias=bias)
        self.w_o = nn.Linear(n_heads * self.d_v, d_model, bias=bias)
        if position is not None and not isinstance(position, (RotaryPosition, RelativeBias)):
            raise TypeError(f"position must be a RotaryPosition or a RelativeBias, got {position!r}")
        self.position = position
        self.recorder: Callable[[Tensor], None] | None = None  # set by `record_attention`

    @overload
    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        *,
        return_weights: Literal[False] = False,
        cache: KeyValueCache | None = None,
        static_keys: bool = False,
    ) -> Tensor: ...

    @overload
    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        *,
        return_weights: Literal[True],
        cache: KeyValueCache | None = None,
        static_keys: bool = False,
    ) -> tuple[Tensor, Tensor]: ...

    @overload
    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        *,
        return_weights: bool,
        cache: KeyValueCache | None = None,
        static_keys: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]: ...

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        *,
        return_weights: bool = False,
        cache: KeyValueCache | None = None,
        static_keys: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Attend from `query` to `key` and `value`.

        Args:
            query: [batch, q_len, d_model]. key, value: [batch, k_len, d_model].
            mask: boolean, broadcastable to [batch, n_heads, q_len, k_len]; True = may attend.
            return_weights: also return the weights [batch, n_heads, q_len, k_len].
            cache: keys and values of earlier calls. Those of this call are appended, as self-attention needs it while
                a sentence grows.
            static_keys: the keys and values never change, as in cross-attention to a memory: the first call fills the
                cache, later ones read it and do not project (or look at) key and value again.

        Returns:
            output [batch, q_len, d_model], or (output, weights).

        Raises:
            TypeError, ValueError: an argument has the wrong rank, width, length or dtype, or does not fit the cache;
                static_keys with a `position`, which is for self-attention.
        """
        for name, tensor in (("query", query), ("key", key), ("value", value)):
            check_sequence(name, tensor, self.d_model)
        _check_fit(query, key, value)
        if static_keys:
            q, k, v = self._project_once(query, key, value, cache)
        else:
            q, k, v = self._project(query, key, value, cache)
        if not return_weights and self.recorder is None:
            return self._output(self.attend(q, k, v, mask))
        heads, weights = self._attend_explicitly(q, k, v, mask)
        return (self._output(heads), weights) if return_weights else self._output(heads)

    def _project(
        self, query: Tensor, key: Tensor, value: Tensor, cache: KeyValueCache | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return q, k [batch, n_heads, len, d_k] and v [batch, n_heads, k_len, d_v], those in the cache included."""
        q, k, v = (self.split_heads(w(x)) for w, x in ((self.w_q, query), (self.w_k, key), (self.w_v, value)))
        start = cache.length if cache is not None else 0
        q, k = self.rotate(q, start), self.rotate(k, start)
        if cache is not None:
            k, v = cache.append(k, v)
        return q, k, v

    def _project_once(
        self, query: Tensor, key: Tensor, value: Tensor, cache: KeyValueCache | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return q, and the k and v that the cache holds; the first call puts them there."""
        if self.position is not None:
            raise ValueError(f"static_keys must be False with a position, got a {type(self.position).__name__}")
        if cache is None or not cache.length:
            return self._project(query, key, value, cache)
        k, v = cache.read()
        if key.shape[:2] != (len(k), cache.length):
            raise ValueError(
                f"key must be the one that filled the cache, [{len(k)}, {cache.length}, d_model], "
                f"got shape {tuple(key.shape)}"
            )
        return self.split_heads(self.w_q(query)), k, v

    def split_heads(self, x: Tensor) -> Tensor:
        """[batch, seq_len, n_heads · d] -> [batch, n_heads, seq_len, d]."""
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    def join_heads(self, heads: Tensor) -> Tensor:
        """[batch, n_heads, seq_len, d] -> [batch, seq_len, n_heads · d]."""
        return heads.transpose(1, 2).flatten(2)

    def _output(self, heads: Tensor) -> Tensor:
        output: Tensor = self.w_o(self.join_heads(heads))
        return output

    def rotate(self, x: Tensor, start: int = 0) -> Tensor:
        """Return queries or keys x [batch, n_heads, seq_len, d_k], rotated by their positions if these are rotary."""
        return self.position.rotate(x, start) if isinstance(self.position, RotaryPosition) else x

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """Return each head's output [batch, n_heads, q_len, d_v], by the kernel that stores no weights."""
        bias = self.score_bias(q.shape[2], k.shape[2])
        return fused_attention(q, k, v, mask, bias=bias, dropout=self._active_dropout())

    def score_bias(self, q_len: int, k_len: int) -> Tensor | None:
        """Return what relative positions add to the scores, [n_heads, q_len, k_len]; None for other positions."""
        return self.position(q_len, k_len) if isinstance(self.position, RelativeBias) else None

    def _attend_explicitly(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        bias = self.score_bias(q.shape[2], k.shape[2])
        heads, weights = scaled_dot_product_attention(q, k, v, mask, bias=bias)
        if self.recorder is not None:
            self.recorder(weights.detach())
        if self._active_dropout():
            heads = F.dropout(weights, self.dropout) @ v
        return heads, weights

    def _active_dropout(self) -> float:
        return self.dropout if self.training else 0.0


def _check_fit(query: Tensor, key: Tensor, value: Tensor) -> None:
    """Raise where one sentence or one value would be broadcast to all."""
    if not query.shape[0] == key.shape[0] == value.shape[0]:
        sizes = f"{query.shape[0]}, {key.shape[0]}, {value.shape[0]}"
        raise ValueError(f"query, key and value must have the same batch size, got {sizes}")
    if key.shape[1] != value.shape[1]:
        raise ValueError(f"key and value must have the same k_len, got {key.shape[1]} and {value.shape[1]}")
