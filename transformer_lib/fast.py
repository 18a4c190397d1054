"""A `Transformer`'s training pass arranged for speed: the numbers of the readable path, but for what dropout draws.

1. Everything but attention treats each token alone, so real tokens stand in one list [tokens, d_model]; padding comes
   back only where queries must meet the keys of their own sentence.
2. Queries, keys and values come from one multiplication, and so do the memory's keys and values for all decoder layers.
3. Attention stores no weights (`fused_attention`).
4. Dropout draws fewer random numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ._validate import check_ids
from .config import TransformerConfig
from .layers import Residual
from .multihead import MultiHeadAttention
from .packing import RealTokens
from .transformer import Transformer


def applies_to(model: nn.Module) -> bool:
    """Return whether `model` is a `Transformer` as its config builds it: no part replaced, hooked or recorded.

    Hooks on all modules at once (`register_module_forward_hook`) are not looked for: counters of operations set them.
    """
    return (
        type(model) is Transformer
        and _outline(model) == _outline_of(model.config)
        and not any(_watched(module) for module in model.modules())
    )


@lru_cache(maxsize=8)
def _outline_of(config: TransformerConfig) -> dict[str, object]:
    with torch.device("meta"):  # shapes alone: no memory, no random numbers
        return _outline(Transformer(config))


def _outline(model: Transformer) -> dict[str, object]:
    """Return each part's type, number of heads and weights' shapes: quickly, as every training step asks."""
    outline, to_do = {}, [("", model)]
    while to_do:
        path, part = to_do.pop()
        shapes = [(name, None if weight is None else weight.shape) for name, weight in part._parameters.items()]
        outline[path] = type(part), vars(part).get("n_heads"), shapes
        to_do += [(f"{path}.{name}", child) for name, child in part._modules.items() if child is not None]
    return outline


def _watched(module: nn.Module) -> bool:
    own = vars(module)
    replaced = any(callable(own[name]) for name in own.keys() & _names_of(type(module)))
    hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)
    return replaced or any(hooks) or own.get("recorder") is not None


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
    tgt_mask, memory_mask = model.tgt_mask(tgt_in, tgt_in.shape[1]), model.memory_mask(src, tgt_in, tgt_in.shape[1])
    keys_values = memory_keys_values(model, memory, source)
    for layer, (key, value) in zip(model.decoder.layers, keys_values, strict=True):
        own, cross = layer.self_attention, layer.cross_attention
        x = _residual(layer.self_attention_residual, x, lambda y, a=own: _self_attention(a, y, target, tgt_mask))
        x = _residual(
            layer.cross_attention_residual, x,
            lambda y, a=cross, k=key, v=value: _cross_attention(a, y, k, v, target, memory_mask),
        )  # fmt: skip
        x = _residual(layer.feed_forward_residual, x, layer.feed_forward)
    x = model.decoder.norm(x)
    return x if torch.equal(awaited, counted) else x[counted[awaited]]


def encode(model: Transformer, src: Tensor, source: RealTokens) -> Tensor:
    """Return the memory's rows of the real source tokens, [tokens, d_model]."""
    x, mask = _embed(model, model.src_embedding, src, source), model.src_mask(src)
    for layer in model.encoder.layers:
        attention = layer.self_attention
        x = _residual(layer.attention_residual, x, lambda y, a=attention: _self_attention(a, y, source, mask))
        x = _residual(layer.feed_forward_residual, x, layer.feed_forward)
    return model.encoder.norm(x)


def memory_keys_values(model: Transformer, memory: Tensor, source: RealTokens) -> list[tuple[Tensor, Tensor]]:
    """Return each decoder layer's keys and values of the memory [tokens, d_model], [batch, n_heads, src_len, d_k]."""
    attentions = [layer.cross_attention for layer in model.decoder.layers]
    joint = source.spread(joint_linear(memory, [linear for a in attentions for linear in (a.w_k, a.w_v)]))
    parts = joint.chunk(2 * len(attentions), dim=-1)
    return [(a.split_heads(k), a.split_heads(v)) for a, k, v in zip(attentions, parts[0::2], parts[1::2], strict=True)]


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


def _self_attention(attention: MultiHeadAttention, y: Tensor, where: RealTokens, mask: Tensor) -> Tensor:
    """Return the self-attention's output for y; both [tokens, d_model]."""
    joint = where.spread(joint_linear(y, [attention.w_q, attention.w_k, attention.w_v]))  # [batch, seq_len, 3 d_model]
    q, k, v = (attention.split_heads(part) for part in joint.chunk(3, dim=-1))
    return _output(attention, attention.rotate(q), attention.rotate(k), v, mask, where)


def _cross_attention(
    attention: MultiHeadAttention, y: Tensor, k: Tensor, v: Tensor, where: RealTokens, mask: Tensor
) -> Tensor:
    """Return the cross-attention's output for y; both [tokens, d_model]."""
    return _output(attention, attention.split_heads(where.spread(attention.w_q(y))), k, v, mask, where)


def _output(
    attention: MultiHeadAttention, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, where: RealTokens
) -> Tensor:
    heads = attention.join_heads(attention.attend(q, k, v, mask))  # [batch, seq_len, d_model]
    return attention.w_o(where.pick(heads))
