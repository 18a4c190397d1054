"""Translators that grow by one part at a time, in the order of the notebooks: the models of the study `ladder`."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ...model.attention import scaled_dot_product_attention
from .parts import NoSum, without_residual

PARTS = (  # in the order of the notebooks
    "projections",  # 03: W_Q, W_K and W_V
    "scaling",  # 04: the division by √d_k
    "learned vectors",  # 05: training changes the embeddings, too
    "positions",  # 06: sinusoids, added to the embeddings of both sides
    "mask",  # 07: target tokens read all earlier ones and themselves, not only the source
    "heads",  # 08: several heads and W_O in place of one
    "block",  # 09: the residual connections, the norms and the feed-forward network
    "encoder",  # 10: the source words read each other first, in an encoder layer
)


class OneHead(nn.Module):
    """Attention before there are heads: softmax(Q Kᵀ) V, with W_Q, W_K, W_V and 1 / √d_k or without.

    Args:
        d_model: width of everything. projections: whether there are W_Q, W_K and W_V; else Q, K and V are the inputs.
        scaled: whether the scores are divided by √d_k, which is √d_model here.
    """

    def __init__(self, d_model: int, *, projections: bool, scaled: bool) -> None:
        super().__init__()
        self.w_q, self.w_k, self.w_v = (
            nn.Linear(d_model, d_model, bias=False) if projections else nn.Identity() for _ in range(3)
        )
        self.length = 1.0 if scaled else math.sqrt(d_model)  # of the queries: it undoes the division that follows

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        """Return [batch, q_len, d_model]; `mask` is [batch, 1, q_len or 1, k_len], as for `MultiHeadAttention`."""
        query = self.w_q(query) * self.length
        return scaled_dot_product_attention(query, self.w_k(key), self.w_v(value), mask[:, 0])[0]


def read_evenly(model: nn.Module) -> None:
    """Let every query of a `OneHead` be zero, so that it reads all source words alike."""
    for module in model.modules():
        if isinstance(module, OneHead):
            module.length = 0.0


def start_quietly(model: nn.Module) -> None:
    """Make the first W_Q of every `OneHead` √d_k times smaller, so that the first scores are as if divided by √d_k."""
    for module in model.modules():
        if isinstance(module, OneHead):
            with torch.no_grad():
                module.w_q.weight /= math.sqrt(module.w_q.weight.shape[0])


def step_softly(model: nn.Module) -> None:
    """Let a step of W_Q or W_K move the scores of every `OneHead` √d_k times less; the first scores stay as they are.

    Both matrices become √d_k times larger, and the queries d_k times shorter. An optimiser such as Adam, whose steps do
    not grow with the weights, then changes the projections by a √d_k times smaller share.
    """
    for module in model.modules():
        if isinstance(module, OneHead):
            d_k = module.w_q.weight.shape[0]
            module.length /= d_k
            with torch.no_grad():
                for projection in (module.w_q, module.w_k):
                    projection.weight *= math.sqrt(d_k)


def without_residuals_and_norms(model: nn.Module) -> None:
    """Leave of every residual connection its sub-layer alone, without the sum and without the norm."""
    without_residual(model)
    for module in model.modules():
        if isinstance(module, NoSum):
            module.norm = nn.Identity()
