"""The weights of a language model of `modern`, laid out once in the order in which a step reads them.

Queries, keys and values come from one product, gate and up from another. Within each head the rows of queries and keys
lie so that feature j turns together with j + d_head / 2, whatever the model's own order: their products stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .._validate import check_choice
from ..model.layers import ACTIVATIONS, FeedForward, LayerNorm
from ..model.modern import Block, Config, GroupedQueryAttention, LanguageModel, RMSNorm, SwiGLU
from .eligibility import require_fast_today
from .products import Int8Product, Product

WEIGHTS = ("own", "int8")
Numbers = Callable[[Tensor], Tensor]  # [tokens, d_model] -> [tokens, d_model]
AnyProduct = Product | Int8Product
Kind = type[Product] | type[Int8Product]


class ModernWeights:
    """A copy of a model's weights, for `ModernStepper`; it takes `bytes` besides the model's own.

    Args:
        model: a `modern.LanguageModel` that `require_fast_today` lets pass. Its dtype is that of the steps.
        weights: "own", or "int8": each row of a matrix in eight bits, as by `tl.int8.quantize`, and what is multiplied
            with it as well, each token with a scale of its own (see `Int8Product`).

    Raises:
        TypeError, ValueError: something is in the way of the fast path, and what; weights is neither, or this machine
            cannot multiply in eight bits.
    """

    def __init__(self, model: LanguageModel, *, weights: Literal["own", "int8"] = "own") -> None:
        kind: Kind = Int8Product if check_choice("weights", weights, WEIGHTS) == "int8" else Product
        self.model, self.config, self._seen = require_fast_today(model), model.config, _versions(model)
        with torch.no_grad():
            layers = cast("Iterable[Block]", model.layers)
            self.layers = [LayerWeights.of(layer, model.config, kind) for layer in layers]
            self.norm, self.head = _norm(model.norm), kind(model.head.weight)

    @property
    def bytes(self) -> int:
        """Bytes of the copies."""
        products = [product for layer in self.layers for product in layer.products] + [self.head]
        own = {weight.data_ptr() for weight in self.model.parameters()}
        return sum(product.bytes_beside(own) for product in products)

    def require_current(self) -> None:
        """Raise unless the model still computes what it did when its weights were laid out.

        Looked at are hooks, parts and methods, as by `require_fast_today`, and of each parameter whether it is the same
        and how often it has been written to. (What is written through `.data` is not counted by PyTorch.)

        Raises:
            ValueError: something is in the way now, or a weight has changed.
        """
        require_fast_today(self.model)
        changed = ["config"] * (self.model.config != self.config)
        changed += [name for name, version in _versions(self.model).items() if version != self._seen[name]]
        if changed:
            raise ValueError(f"model must be as when its weights were laid out, but {changed[0]} has changed since")


def _versions(model: nn.Module) -> dict[str, tuple[int, int]]:
    """Return of each parameter where its numbers are, and how often they have been written to."""
    return {
        name: (weight.data_ptr(), 0 if weight.is_inference() else weight._version)
        for name, weight in model.named_parameters()
    }


@dataclass(frozen=True)
class LayerWeights:
    """What a step reads of one layer."""

    qkv: AnyProduct  # d_model -> (n_heads + 2 kv_heads) · d_head
    gains: Tensor | None  # of normed queries and keys, [n_heads + kv_heads, 1, d_head]
    output: AnyProduct  # n_heads · d_head -> d_model
    widen: AnyProduct  # d_model -> 2 d_ff, gate and up; d_ff without a gate
    narrow: AnyProduct  # d_ff -> d_model
    activation: Callable[[Tensor], Tensor] | None  # None with a gate
    attention_norm: Numbers
    feed_forward_norm: Numbers

    @classmethod
    def of(cls, layer: Block, config: Config, kind: Kind) -> LayerWeights:
        """Lay out the weights of a layer."""
        widen, narrow, activation = _feed_forward(layer.feed_forward, kind)
        return cls(
            qkv=_joint(layer.attention, config, kind),
            gains=_gains(layer.attention, config),
            output=kind(layer.attention.w_o.weight),
            widen=widen,
            narrow=narrow,
            activation=activation,
            attention_norm=_norm(layer.attention_norm),
            feed_forward_norm=_norm(layer.feed_forward_norm),
        )

    @property
    def products(self) -> tuple[AnyProduct, ...]:
        """Its matrices."""
        return self.qkv, self.output, self.widen, self.narrow

    def feed_forward(self, x: Tensor) -> Tensor:
        """Return what the feed-forward network adds to x, [tokens, d_model]."""
        wide = self.widen(x)
        if self.activation is not None:
            return self.narrow(self.activation(wide))
        gate, up = wide.chunk(2, dim=-1)  # [tokens, d_ff] each
        return self.narrow(F.silu(gate) * up)


def _joint(attention: GroupedQueryAttention, config: Config, kind: Kind) -> AnyProduct:
    """Return x -> its queries, keys and values side by side."""
    maps, order = (attention.w_q, attention.w_k, attention.w_v), _order(config)
    turned = [linear.weight.unflatten(0, (-1, config.head_width))[:, order] for linear in maps[:2]]
    weight = torch.cat([part.flatten(0, 1) for part in turned] + [maps[2].weight])
    if maps[0].bias is None:
        return kind(weight)
    turned = [linear.bias.unflatten(0, (-1, config.head_width))[:, order] for linear in maps[:2]]
    return kind(weight, torch.cat([part.flatten() for part in turned] + [maps[2].bias]))


def _order(config: Config) -> Tensor:
    """Return the features of a head, [d_head], so that those which turn together are half a head apart."""
    features = torch.arange(config.head_width)
    return features if config.pairs == "halves" else torch.cat((features[0::2], features[1::2]))


def _gains(attention: GroupedQueryAttention, config: Config) -> Tensor | None:
    if not isinstance(attention.q_norm, RMSNorm) or not isinstance(attention.k_norm, RMSNorm):
        return None
    q, k = (norm.weight.detach()[_order(config)] for norm in (attention.q_norm, attention.k_norm))
    return torch.stack([q] * config.n_heads + [k] * config.kv_heads)[:, None]


def _norm(norm: nn.Module) -> Numbers:
    """Return a norm without a module's checks."""
    if isinstance(norm, RMSNorm):
        gain, eps = norm.weight.detach(), norm.eps
        return lambda x: F.rms_norm(x, gain.shape, gain, eps)
    assert isinstance(norm, LayerNorm)
    shape, weight, bias, small = norm.weight.shape, norm.weight, norm.bias, norm.eps
    return lambda x: F.layer_norm(x, shape, weight, bias, small)


def _feed_forward(module: nn.Module, kind: Kind) -> tuple[AnyProduct, AnyProduct, Callable[[Tensor], Tensor] | None]:
    """Return the product that widens, the one that narrows, and the activation between them if there is no gate."""
    if isinstance(module, SwiGLU):
        return kind(torch.cat((module.gate.weight, module.up.weight))), kind(module.down.weight), None
    assert isinstance(module, FeedForward)
    widen, narrow = (kind(linear.weight, linear.bias) for linear in (module.expand, module.contract))
    return widen, narrow, ACTIVATIONS[module.activation]
