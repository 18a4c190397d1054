"""The parts around attention: LayerNorm, the feed-forward network, and the residual connection that joins them."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .._validate import check_choice, check_fraction, check_int, check_width

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": functools.partial(F.gelu, approximate="tanh"),
}


class LayerNorm(nn.Module):
    """LN(x) = γ ⊙ (x − μ) / √(σ² + ε) + β, with mean and population variance of each token over its features.

    Args:
        d_model: number of features. eps: ε. bias: whether there is a β.
    """

    def __init__(self, d_model: int, eps: float = 1e-5, bias: bool = True) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(check_int("d_model", d_model)))  # γ, the gain
        self.bias = nn.Parameter(torch.zeros(d_model)) if bias else None  # β

    def forward(self, x: Tensor) -> Tensor:
        """Return x [..., d_model] normalised token by token."""
        check_width("x", x, len(self.weight), "d_model")
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, the same for every position (paper §3.3); it widens to d_ff and back.

    Args:
        d_model: width of input and output. d_ff: hidden width.
        activation: "relu" (the paper's), "gelu", or "gelu_tanh", an approximation of it that GPT-2 was trained with:
            x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2 (Hendrycks and Gimpel 2016).
        bias: whether the two linear maps have a bias.
    """

    def __init__(self, d_model: int, d_ff: int, *, activation: str = "relu", bias: bool = True) -> None:
        super().__init__()
        self.expand = nn.Linear(check_int("d_model", d_model), check_int("d_ff", d_ff), bias=bias)
        self.contract = nn.Linear(d_ff, d_model, bias=bias)
        self.activation = check_choice("activation", activation, ACTIVATIONS)

    def forward(self, x: Tensor) -> Tensor:
        """Return FFN(x); x is [..., d_model]."""
        check_width("x", x, self.expand.in_features, "d_model")
        hidden = ACTIVATIONS[self.activation](self.expand(x))  # [..., d_model] -> [..., d_ff]
        return self.contract(hidden)


class Residual(nn.Module):
    """Wraps a sub-layer f: LN(x + dropout(f(x))) post-norm (the paper), or x + dropout(f(LN(x))) pre-norm."""

    def __init__(self, d_model: int, *, dropout: float = 0.0, norm_first: bool = False, bias: bool = True) -> None:
        super().__init__()
        self.norm = LayerNorm(d_model, bias=bias)
        self.dropout = nn.Dropout(check_fraction("dropout", dropout))
        self.norm_first = norm_first

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Return x [batch, seq_len, d_model] after the sub-layer, its residual sum and its norm."""
        if self.norm_first:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))
