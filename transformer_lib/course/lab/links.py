"""One attention in several programs: the links of a chain from a soft lookup to PyTorch's module (notebook 08)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...model.attention import scaled_dot_product_attention
from ...model.multihead import MultiHeadAttention

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
Layer = Callable[..., Tensor]  # x [batch, seq_len, d_model] and W_Q, W_K, W_V, W_O [d_model, d_model] -> like x
HEADS, WIDTH = 3, 12


def attend(mask: Tensor) -> Attend:
    """Return the library's attention of query, key and value under this mask [seq_len, seq_len], True = may attend."""
    return lambda query, key, value: scaled_dot_product_attention(query, key, value, mask)[0]


def one_by_one(one: Attend) -> Layer:
    """Return the layer that calls `one` on query, key and value [seq_len, d_k] of one head in one sentence."""

    def layer(x: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor, W_O: Tensor) -> Tensor:
        blocks = list(zip(*(W.chunk(HEADS, dim=1) for W in (W_Q, W_K, W_V)), strict=True))
        sentences = [torch.cat([one(*(row @ W for W in own)) for own in blocks], dim=-1) for row in x]
        return torch.stack(sentences) @ W_O

    return layer


def at_once(one: Attend) -> Layer:
    """Return the layer that calls `one` once, on query, key and value [batch, n_heads, seq_len, d_k]."""

    def layer(x: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor, W_O: Tensor) -> Tensor:
        query, key, value = ((x @ W).unflatten(-1, (HEADS, -1)).transpose(1, 2) for W in (W_Q, W_K, W_V))
        return one(query, key, value).transpose(1, 2).flatten(2) @ W_O

    return layer


def torch_function(mask: Tensor) -> Layer:
    """Return the layer around PyTorch's own attention; mask [seq_len, seq_len], True = may attend."""
    return at_once(lambda query, key, value: F.scaled_dot_product_attention(query, key, value, mask))


def library(mask: Tensor) -> Layer:
    """Return `tl.MultiHeadAttention` as such a layer; mask [seq_len, seq_len], True = may attend."""
    module = MultiHeadAttention(WIDTH, HEADS)

    def layer(x: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor, W_O: Tensor) -> Tensor:
        own = {"w_q.weight": W_Q.T, "w_k.weight": W_K.T, "w_v.weight": W_V.T, "w_o.weight": W_O.T}
        return torch.func.functional_call(module, own, (x, x, x, mask))

    return layer


def pytorch(attn_mask: Tensor) -> Layer:
    """Return `nn.MultiheadAttention` as such a layer; attn_mask [seq_len, seq_len] is its own, True = may not."""
    module = nn.MultiheadAttention(WIDTH, HEADS, bias=False, batch_first=True)
    options = {"attn_mask": attn_mask, "need_weights": False}

    def layer(x: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor, W_O: Tensor) -> Tensor:
        own = {"in_proj_weight": torch.cat([W_Q.T, W_K.T, W_V.T]), "out_proj.weight": W_O.T}
        return torch.func.functional_call(module, own, (x, x, x), options)[0]

    return layer


def inputs(seq_len: int, seed: int = 0) -> list[Tensor]:
    """Return x [2, seq_len, WIDTH], two sentences, and the four matrices, all random and in float64."""
    generator = torch.Generator().manual_seed(seed)
    shapes = ((2, seq_len, WIDTH), *[(WIDTH, WIDTH)] * 4)
    return [torch.randn(shape, generator=generator, dtype=torch.float64) / 3 for shape in shapes]


def differences(layers: Mapping[str, Layer], given: list[Tensor]) -> dict[str, float]:
    """Return for each layer but the first how far it is from the one before, {name: largest difference}.

    Compared are the outputs, and the gradients of the mean of their squares with respect to all `given`.

    Raises:
        ValueError: there are fewer than two layers.
    """
    if len(layers) < 2:
        raise ValueError(f"layers must hold at least two, got {len(layers)}")
    leaves = [tensor.detach().requires_grad_() for tensor in given]
    found = {}
    for name, layer in layers.items():
        output = layer(*leaves)
        found[name] = (output, *torch.autograd.grad(output.square().mean(), leaves))
    return {
        name: max((a - b).abs().max().item() for a, b in zip(found[name], found[before], strict=True))
        for before, name in pairwise(found)
    }
