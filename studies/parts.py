"""Take parts out of a Transformer from outside, in place, for the ablations of notebook 13."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from transformer_lib.course.lab.parts import without_residual
from transformer_lib.model.layers import Residual
from transformer_lib.model.masks import padding_mask
from transformer_lib.model.multihead import MultiHeadAttention
from transformer_lib.model.positional import NoPosition
from transformer_lib.model.transformer import Transformer


def without_positions(model: Transformer) -> None:
    """Take the position encoding out of both embeddings."""
    model.position = NoPosition()


def without_mask(model: Transformer) -> None:
    """Let every target token see all others, later ones too; padding stays hidden."""
    model.tgt_mask = lambda tgt_so_far, q_len: padding_mask(tgt_so_far, model.config.pad_id)


def without_layer_norm(model: Transformer) -> None:
    """Leave every sum of a residual connection as it is."""
    for module in model.modules():
        if isinstance(module, Residual):
            module.norm = nn.Identity()


def without_scaling(model: Transformer) -> None:
    """Undo the division by √d_k: every query is made √d_k times longer, which the division then takes back."""
    for module in _attentions(model):
        factor = math.sqrt(module.d_k)
        module.w_q.register_forward_hook(lambda layer, args, queries, factor=factor: queries * factor)


def without_scaling_but_small_queries(model: Transformer) -> None:
    """Undo the division by √d_k, and let W_Q begin √d_k times smaller, so that the first scores are the baseline's."""
    without_scaling(model)
    with torch.no_grad():
        for module in _attentions(model):
            module.w_q.weight /= math.sqrt(module.d_k)


def without_embedding_scale(model: Transformer) -> None:
    """Undo the multiplication of the embeddings by √d_model, which begin √d_model times smaller than the positions."""
    for table in (model.src_embedding, model.tgt_embedding):
        factor = math.sqrt(table.embedding_dim)
        table.register_forward_hook(lambda layer, args, vectors, factor=factor: vectors / factor)


def without_embedding_scale_but_unit_tables(model: Transformer) -> None:
    """Undo the multiplication by √d_model, and let the tables begin with variance 1, as the baseline's products do."""
    without_embedding_scale(model)
    with torch.no_grad():
        for table in (model.src_embedding, model.tgt_embedding):
            table.weight *= math.sqrt(table.embedding_dim)


class NoSublayer(nn.Module):
    """In place of a `Residual`: x passes as it is."""

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Return x [batch, seq_len, d_model]."""
        return x


def without_feed_forward(model: Transformer) -> None:
    """Take every feed-forward sub-layer out, with its residual connection and norm."""
    for module in list(model.modules()):
        if hasattr(module, "feed_forward_residual"):
            module.feed_forward_residual = NoSublayer()


def with_head_only(head: int) -> Callable[[Transformer], None]:
    """Return the change that silences all heads but `head` (from 0) in every attention layer."""

    def change(model: Transformer) -> None:
        for module in _attentions(model):
            kept = torch.zeros(module.n_heads * module.d_v)
            kept[head * module.d_v : (head + 1) * module.d_v] = 1.0
            module.w_o.register_forward_pre_hook(lambda layer, args, kept=kept: (args[0] * kept,))

    return change


def _attentions(model: Transformer) -> list[MultiHeadAttention]:
    return [module for module in model.modules() if isinstance(module, MultiHeadAttention)]


TEST_PARTS = {  # what is taken out of a trained model, and how the model then decodes
    "nothing": (lambda model: None, {}),
    "positions": (without_positions, {}),
    "causal mask": (without_mask, {"use_cache": False}),  # with a cache no token ever sees a later one
    "causal mask, cache kept": (without_mask, {}),
    "residual": (without_residual, {}),
    "scaling": (without_scaling, {}),
    "embedding scale": (without_embedding_scale, {}),
    "feed-forward": (without_feed_forward, {}),
    "layer norm": (without_layer_norm, {}),
    **{f"all heads but {head + 1}": (with_head_only(head), {}) for head in range(4)},
}
