"""The training pass without padding: `Transformer.forward` up to the output head, with the same numbers.

Everything but attention treats each token alone, so the real tokens form one list, [tokens, d_model], in bfloat16
followed by a few others (see `packing`). Padding comes back only where queries must meet the keys of their own
sentence. Dropout draws other numbers than the readable pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .._validate import check_ids
from ..model.decoder import DecoderLayer
from ..model.encoder import EncoderLayer
from ..model.layers import Residual
from ..model.multihead import MultiHeadAttention
from ..model.transformer import Transformer
from .packing import RealTokens, row_multiple


def decoder_states(model: Transformer, src: Tensor, tgt_in: Tensor, counted: Tensor) -> Tensor:
    """Return what the output head would read at the counted target positions, [tokens, d_model].

    Args:
        model: one that `require_fast` lets pass. src: ids [batch, src_len]. tgt_in: ids [batch, tgt_len].
        counted: boolean [batch, tgt_len]: the positions whose logits are wanted.
    """
    config, tgt_len = model.config, tgt_in.shape[1]
    src = check_ids("src", src, config.src_vocab_size, max_len=config.max_len)
    tgt_in = check_ids("tgt_in", tgt_in, config.tgt_vocab_size, max_len=config.max_len)
    multiple = row_multiple(src.device)
    source = RealTokens(src != config.pad_id, multiple=multiple)
    # Those that may follow the real ones are hidden from them: padding by the masks, what is not awaited by causality.
    awaited = counted.flip(1).cummax(1).values.flip(1)  # a token that no counted one follows is read by nobody
    target = RealTokens(awaited, multiple=multiple)
    memory = encode(model, src, source)
    x = _embed(model, model.tgt_embedding, tgt_in, target)
    tgt_mask, memory_mask = model.tgt_mask(tgt_in, tgt_len), model.memory_mask(src, tgt_in, tgt_len)
    for layer in cast("Iterable[DecoderLayer]", model.decoder.layers):
        x = _residual(layer.self_attention_residual, x, _attention(layer.self_attention, target, tgt_mask))
        cross = _attention(layer.cross_attention, target, memory_mask, memory, source)
        x = _residual(layer.cross_attention_residual, x, cross)
        x = _residual(layer.feed_forward_residual, x, layer.feed_forward)
    x = model.decoder.norm(x)[: target.count]
    return x if torch.equal(awaited, counted) else x[counted[awaited]]


def encode(model: Transformer, src: Tensor, source: RealTokens) -> Tensor:
    """Return the memory's rows of the source's tokens, [tokens, d_model]."""
    x, mask = _embed(model, model.src_embedding, src, source), model.src_mask(src)
    for layer in cast("Iterable[EncoderLayer]", model.encoder.layers):
        x = _residual(layer.self_attention_residual, x, _attention(layer.self_attention, source, mask))
        x = _residual(layer.feed_forward_residual, x, layer.feed_forward)
    return model.encoder.norm(x)


def _embed(model: Transformer, table: nn.Embedding, ids: Tensor, where: RealTokens) -> Tensor:
    """Return the tokens' embeddings with positions, [tokens, d_model]."""
    x = model.position(table(ids) * math.sqrt(model.config.d_model))  # [batch, seq_len, d_model]
    return drop(model.dropout, where.pick(x))


def _attention(
    attention: MultiHeadAttention,
    queries: RealTokens,
    mask: Tensor,
    memory: Tensor | None = None,
    keys: RealTokens | None = None,
) -> Callable[[Tensor], Tensor]:
    """Return the sub-layer that reads `memory` [tokens, d_model], whose places are `keys`; without one, itself."""

    def attend(x: Tensor) -> Tensor:
        if memory is None or keys is None:
            q, k, v = project(attention, x, queries, attention.w_q, attention.w_k, attention.w_v)
        else:
            (q,) = project(attention, x, queries, attention.w_q)
            k, v = project(attention, memory, keys, attention.w_k, attention.w_v)
        heads = attention.attend(attention.rotate(q), attention.rotate(k), v, mask)
        return attention.w_o(queries.pick(attention.join_heads(heads)))  # [tokens, d_model]

    return attend


def project(attention: MultiHeadAttention, x: Tensor, where: RealTokens, *maps: nn.Linear) -> tuple[Tensor, ...]:
    """Return what each of the maps makes of x [tokens, d_model], by one product: [batch, n_heads, seq_len, d_k]."""
    joint = F.linear(x, torch.cat([linear.weight for linear in maps]))  # [tokens, maps · n_heads · d_k]
    return tuple(attention.split_heads(part) for part in where.pad(joint).chunk(len(maps), dim=-1))


def _residual(residual: Residual, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
    """Return what `Residual.forward` returns, but for the way entries are dropped."""
    if residual.norm_first:
        return x + drop(residual.dropout, sublayer(residual.norm(x)))
    return residual.norm(x + drop(residual.dropout, sublayer(x)))


def drop(module: nn.Dropout, x: Tensor) -> Tensor:
    """Return what `module` makes of x, on a CPU from 16 random bits for each entry.

    There, torch draws one number for each entry, one after the other; here one draw of 64 bits serves four. So the
    probability p is rounded to a multiple of 2^−16, and what is kept is divided by exactly one minus that.
    """
    dropped = round(module.p * 2**16)
    if not module.training or not 0 < dropped < 2**16 or x.device.type != "cpu":
        return module(x)
    bits = torch.empty(-(-x.numel() // 4), dtype=torch.int64, device=x.device).random_(
        -(2**63), None
    )  # None: to the largest int64
    kept = torch.empty_like(x)  # 1 or 0
    torch.ge(bits.view(torch.int16)[: x.numel()].view(x.shape), dropped - 2**15, out=kept)
    return x * kept.mul_(1 / (1 - dropped / 2**16))
