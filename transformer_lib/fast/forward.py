"""A `Transformer`'s training pass arranged for speed: the numbers of the readable path, but for what dropout draws.

1. Everything but attention treats each token alone, so real tokens stand in one list [tokens, d_model]; padding comes
   back only where queries must meet the keys of their own sentence.
2. Queries, keys and values come from one multiplication, and so do the memory's keys and values for all decoder layers.
3. The move that brings padding back also splits the heads. Attention stores no weights (`fused_attention`), except for
   short sentences on a CPU (`short_attention`).
4. Dropout draws fewer random numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .._validate import check_ids
from ..model.config import TransformerConfig
from ..model.layers import ACTIVATIONS, FeedForward, Residual
from ..model.multihead import MultiHeadAttention
from ..model.positional import RotaryPosition
from ..model.transformer import Transformer
from .packing import RealTokens
from .short_attention import short_attention


def applies_to(model: nn.Module) -> bool:
    """Return whether `model` is a `Transformer` as its config builds it: no part replaced, hooked or recorded.

    Hooks on all modules at once (`register_module_forward_hook`) are not looked for: counters of operations set them.
    Who stores outputs by such a hook finds a feed-forward network's hidden units behind their ReLU, which is in place.
    """
    if type(model) is not Transformer:
        return False
    parts = _parts(model)
    return _outline(parts) == _outline_of(model.config) and not any(map(_watched, parts.values()))


@lru_cache(maxsize=8)
def _outline_of(config: TransformerConfig) -> list[tuple]:
    with torch.device("meta"):  # shapes alone: no memory, no random numbers
        return _outline(_parts(Transformer(config)))


def _parts(model: nn.Module) -> dict[str, nn.Module]:
    """Return all modules by path: quicker than `named_modules`, as every training step asks."""
    found, to_do = {}, [("", model)]
    while to_do:
        path, part = to_do.pop()
        found[path] = part
        to_do += [(f"{path}.{name}", child) for name, child in part._modules.items() if child is not None]
    return found


def _outline(parts: dict[str, nn.Module]) -> list[tuple]:
    """Return each part's path, type, number of heads and weights' shapes."""
    return [
        (
            path,
            type(part),
            vars(part).get("n_heads"),
            [(name, None if weight is None else weight.shape) for name, weight in part._parameters.items()],
        )
        for path, part in parts.items()
    ]


def _watched(module: nn.Module) -> bool:
    own = vars(module)
    replaced = any(callable(own[name]) for name in _names_of(type(module)).intersection(own))
    hooks = module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks
    return bool(replaced or hooks or own.get("recorder") is not None)


@lru_cache(maxsize=64)
def _names_of(kind: type) -> frozenset[str]:
    return frozenset(dir(kind))


def decoder_states(model: Transformer, src: Tensor, tgt_in: Tensor, counted: Tensor) -> Tensor:
    """Return what the output head would read at the counted target positions, [tokens, d_model].

    Args:
        model: one that `applies_to`. src: ids [batch, src_len]. tgt_in: ids [batch, tgt_len].
        counted: boolean [batch, tgt_len]: the positions whose logits are wanted.
    """
    config = model.config
    check_ids("src", src, config.src_vocab_size, max_len=config.max_len)
    check_ids("tgt_in", tgt_in, config.tgt_vocab_size, max_len=config.max_len)
    source = RealTokens(src != config.pad_id)
    memory = encode(model, src, source)
    awaited = counted.flip(1).cummax(1).values.flip(1)  # no counted position comes later: nobody reads the token
    target = RealTokens(awaited)
    x = _embed(model, model.tgt_embedding, tgt_in, target)
    tgt_len = tgt_in.shape[1]
    tgt_mask = _Visible(model, model.tgt_mask(tgt_in, tgt_len), tgt_len)
    memory_mask = _Visible(model, model.memory_mask(src, tgt_in, tgt_len), tgt_len)
    keys_values = memory_keys_values(model, memory, source)
    for layer, key_value in zip(model.decoder.layers, keys_values, strict=True):
        own, cross = layer.self_attention, layer.cross_attention
        x = _residual(layer.self_attention_residual, x, lambda y, a=own: _self_attention(a, y, target, tgt_mask))
        x = _residual(
            layer.cross_attention_residual,
            x,
            lambda y, a=cross, m=key_value: _cross_attention(a, y, m, target, memory_mask),
        )
        x = _residual(layer.feed_forward_residual, x, lambda y, f=layer.feed_forward: _feed_forward(f, y))
    x = model.decoder.norm(x)
    return x if torch.equal(awaited, counted) else x[counted[awaited]]


def encode(model: Transformer, src: Tensor, source: RealTokens) -> Tensor:
    """Return the memory's rows of the real source tokens, [tokens, d_model]."""
    x, mask = _embed(model, model.src_embedding, src, source), _Visible(model, model.src_mask(src), src.shape[1])
    for layer in model.encoder.layers:
        attention = layer.self_attention
        x = _residual(layer.self_attention_residual, x, lambda y, a=attention: _self_attention(a, y, source, mask))
        x = _residual(layer.feed_forward_residual, x, lambda y, f=layer.feed_forward: _feed_forward(f, y))
    return model.encoder.norm(x)


def memory_keys_values(model: Transformer, memory: Tensor, source: RealTokens) -> tuple[Tensor, ...]:
    """Return, for each decoder layer, keys and values [2, batch, n_heads, src_len, d_k] of memory [tokens, d_model]."""
    attentions = [layer.cross_attention for layer in model.decoder.layers]
    joint = joint_linear(memory, [linear for a in attentions for linear in (a.w_k, a.w_v)])
    parts = source.split_heads(joint, 2 * len(attentions), model.config.n_heads)
    return parts.unflatten(0, (-1, 2)).unbind()


def joint_linear(x: Tensor, linears: list[nn.Linear]) -> Tensor:
    """Return what the linear maps (without bias) make of x [..., width], side by side, by one product."""
    return F.linear(x, torch.cat([linear.weight for linear in linears]))


def _embed(model: Transformer, table: nn.Embedding, ids: Tensor, where: RealTokens) -> Tensor:
    """Return the real tokens' embeddings with positions, [tokens, d_model]."""
    x = model.position(table(ids) * math.sqrt(model.config.d_model))  # [batch, seq_len, d_model]
    return _drop(model.dropout, where.pick(x))


def _residual(residual: Residual, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
    """Return what `Residual.forward` does, but for the way entries are dropped."""
    if residual.norm_first:
        return x + _drop(residual.dropout, sublayer(residual.norm(x)))
    return residual.norm(x + _drop(residual.dropout, sublayer(x)))


def _feed_forward(inner: FeedForward, x: Tensor) -> Tensor:
    """Return what `inner` makes of x [tokens, d_model]; relu changes its input, as nobody reads that again."""
    hidden = inner.expand(x)  # [tokens, d_ff]
    return inner.contract(hidden.relu_() if inner.activation == "relu" else ACTIVATIONS[inner.activation](hidden))


def _drop(module: nn.Dropout, x: Tensor) -> Tensor:
    """Return what `module` makes of x, on a CPU from 16 random bits per entry.

    torch draws a number for each entry there, one after the other; here one draw of 64 bits serves four. So the
    probability p is rounded to a multiple of 2^−16, and what is kept is divided by exactly one minus that.
    """
    if not module.training or not 0 < module.p < 1 or x.device.type != "cpu":
        return module(x)
    dropped = round(module.p * 2**16)
    bits = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)  # None: to the largest int64
    exact = torch.promote_types(x.dtype, torch.float32)  # holds every 16-bit number, so that one array serves for all
    numbers = bits.view(torch.int16)[: x.numel()].view(x.shape).to(exact)
    kept = numbers.ge_(dropped - 2**15)  # 1 or 0
    return x * kept.mul_(1 / (1 - dropped / 2**16)).to(x.dtype)


class _Visible:
    """Which keys each query may see, as a mask, and for short attention as numbers to add to the scores.

    Attributes:
        mask: boolean [batch, 1, q_len or 1, k_len].
        bias: 0 or −∞ [batch · n_heads, q_len, k_len]; None where `short_attention` is not for: on a GPU, for numbers of
            16 bits, with a query that sees nothing, with more weights than entries of queries, keys, values and output.
    """

    def __init__(self, model: Transformer, mask: Tensor, q_len: int) -> None:
        config, weight = model.config, model.output_head.weight
        self.mask, self.bias = mask, None
        k_len, d_k = mask.shape[-1], config.d_model // config.n_heads
        short = q_len * k_len <= 2 * (q_len + k_len) * d_k
        exact = weight.dtype.itemsize >= 4 and not torch.is_autocast_enabled(weight.device.type)
        if short and exact and weight.device.type == "cpu" and mask.any(-1).all():
            bias = torch.zeros(mask.shape, dtype=weight.dtype).masked_fill_(~mask, -math.inf)
            self.bias = bias.expand(-1, config.n_heads, q_len, -1).flatten(0, 1)


def _self_attention(attention: MultiHeadAttention, y: Tensor, where: RealTokens, visible: _Visible) -> Tensor:
    """Return the self-attention's output for y; both [tokens, d_model]."""
    joint = joint_linear(y, [attention.w_q, attention.w_k, attention.w_v])
    parts = where.split_heads(joint, 3, attention.n_heads)  # [3, batch, n_heads, seq_len, d_k]
    if isinstance(attention.position, RotaryPosition):
        q, k, v = parts.unbind()
        parts = torch.stack((attention.rotate(q), attention.rotate(k), v))
    return attention.w_o(where.join_heads(_attend(attention, visible, parts)))


def _cross_attention(
    attention: MultiHeadAttention, y: Tensor, key_value: Tensor, where: RealTokens, visible: _Visible
) -> Tensor:
    """Return the cross-attention's output for y; both [tokens, d_model]."""
    query = where.split_heads(attention.w_q(y), 1, attention.n_heads)  # [1, batch, n_heads, tgt_len, d_k]
    return attention.w_o(where.join_heads(_attend(attention, visible, query, key_value)))


def _attend(attention: MultiHeadAttention, visible: _Visible, *parts: Tensor) -> Tensor:
    """Return the heads [batch, n_heads, q_len, d_k] of q, k and v, stacked in `parts` [1 to 3, batch, n_heads, …]."""
    bias, (batch, n_heads, q_len) = visible.bias, parts[0].shape[1:4]
    if bias is None or attention.dropout:
        q, k, v = (x for part in parts for x in part.unbind())
        return attention.attend(q, k, v, visible.mask)
    relative = attention.score_bias(*bias.shape[1:])
    if relative is not None:
        bias = (bias.unflatten(0, (batch, n_heads)) + relative).flatten(0, 1)
    return short_attention(bias, *(part.flatten(1, 2) for part in parts)).view(batch, n_heads, q_len, -1)
