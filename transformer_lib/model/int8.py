"""Weights in eight bits: each row of a matrix as integers from −127 to 127 and one scale.

A weight w is stored as round(w / s), where s is the largest |w| of its row divided by 127, and used as s times that
integer, so that it is off by at most s / 2. Nothing is computed in integers here: what shrinks is what is stored and
read (Dettmers et al. 2022 also multiply in eight bits).
"""

from __future__ import annotations

import copy
from typing import TypeVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .._validate import check_choice, check_int, check_tensor

BITS = 8
PER = ("row", "tensor")
AnyModule = TypeVar("AnyModule", bound=nn.Module)


def quantize(weight: Tensor, *, per: str = "row", bits: int = BITS) -> tuple[Tensor, Tensor]:
    """Return int8 values [rows, columns] and scales [rows], or [1] with per="tensor".

    Args:
        weight: finite floats [rows, columns], a row for each output. per: "row" gives each row its own scale; "tensor"
            one to all. Where all weights are zero the scale is 1. bits: 2 to 8; with fewer than 8, the integers are
            smaller (from −7 to 7 with 4), though each still takes a byte here.

    Raises:
        TypeError, ValueError: weight is not a matrix of finite floats; per or bits is none of those.
    """
    check_choice("per", per, PER)
    if check_int("bits", bits, minimum=2) > BITS:
        raise ValueError(f"bits must be from 2 to {BITS}, got {bits}")
    if not check_tensor("weight", weight, rank=2).is_floating_point():
        raise TypeError(f"weight must hold floats, got dtype {weight.dtype}")
    if 0 in weight.shape or not weight.isfinite().all():
        raise ValueError(f"weight must not be empty and hold finite numbers, got shape {tuple(weight.shape)}")
    weight = weight.detach()
    steps = 2 ** (bits - 1) - 1  # 127: −128 would have no opposite
    largest = weight.abs().amax(dim=1) if per == "row" else weight.abs().amax()[None]
    scales = torch.where(largest > 0, largest / steps, torch.ones_like(largest))
    return (weight / scales[:, None]).round().clamp(-steps, steps).to(torch.int8), scales


def dequantize(values: Tensor, scales: Tensor) -> Tensor:
    """Return the weights [rows, columns] that int8 `values` and `scales`, [rows] or [1], encode.

    Raises:
        TypeError, ValueError: values are not an int8 matrix; scales are neither one a row nor one in all.
    """
    if check_tensor("values", values, rank=2).dtype != torch.int8:
        raise TypeError(f"values must have dtype torch.int8, got {values.dtype}")
    if tuple(check_tensor("scales", scales).shape) not in ((1,), (len(values),)):
        raise ValueError(f"scales must have shape ({len(values)},) or (1,), got {tuple(scales.shape)}")
    return values.to(scales.dtype) * scales[:, None]


class Int8Weight(nn.Module):
    """A matrix [rows, columns] stored in eight bits; called, it returns the matrix itself."""

    values: Tensor
    scales: Tensor

    def __init__(self, weight: Tensor, *, per: str = "row") -> None:
        super().__init__()
        values, scales = quantize(weight, per=per)
        self.register_buffer("values", values)
        self.register_buffer("scales", scales)

    def forward(self) -> Tensor:
        """Return [rows, columns] in the type of the scales."""
        return dequantize(self.values, self.scales)


class Int8Linear(nn.Module):
    """`nn.Linear` with its weight [out, in] in eight bits; the bias stays as it is."""

    def __init__(self, stored: Int8Weight, bias: Tensor | None) -> None:
        super().__init__()
        self.stored = stored
        self.out_features, self.in_features = stored.values.shape
        self.bias = bias if bias is None else nn.Parameter(bias.detach().clone())

    @property
    def weight(self) -> Tensor:
        """The matrix [out, in] that is stored."""
        return self.stored()

    def forward(self, x: Tensor) -> Tensor:
        """[..., in] -> [..., out]."""
        return F.linear(x, self.weight, self.bias)


class Int8Embedding(nn.Module):
    """`nn.Embedding` with its table [vocab_size, d_model] in eight bits: only the rows asked for are dequantised."""

    def __init__(self, stored: Int8Weight) -> None:
        super().__init__()
        self.stored = stored
        self.num_embeddings, self.embedding_dim = stored.values.shape

    @property
    def weight(self) -> Tensor:
        """The table [vocab_size, d_model] that is stored."""
        return self.stored()

    def forward(self, ids: Tensor) -> Tensor:
        """[...] ids -> [..., d_model]."""
        values, scales = self.stored.values[ids], self.stored.scales
        return values.to(scales.dtype) * (scales[ids][..., None] if len(scales) > 1 else scales)


def quantized(model: AnyModule, *, per: str = "row") -> AnyModule:
    """Return a copy of `model` whose linear layers and embeddings store their weights in eight bits.

    Biases, norms and learned positions stay as they are. The copy is for evaluation: its int8 weights have no gradient.
    A table that several layers share is stored once.

    Args:
        per: "row" or "tensor", see `quantize`.

    Raises:
        TypeError, ValueError: per is none of those; a weight is no parameter of its layer but computed from others (by
            weight_norm, pruning, …); a layer does something of its own with its weight, or a hook watches it.
    """
    check_choice("per", per, PER)
    for name, layer in _layers(model).items():
        _check_replaceable(name, layer)
    whole = nn.ModuleDict({"model": copy.deepcopy(model)})  # so that the model itself may be a layer
    stored: dict[int, Int8Weight] = {}
    for parent in list(whole.modules()):
        for name, child in list(parent._modules.items()):
            if isinstance(child, (nn.Linear, nn.Embedding)):
                key = id(child.weight)
                if key not in stored:
                    stored[key] = Int8Weight(child.weight, per=per)
                setattr(parent, name, _stored_in(stored[key], child))
    return cast(AnyModule, whole["model"].requires_grad_(False))


def _layers(model: nn.Module) -> dict[str, nn.Linear | nn.Embedding]:
    """Return the layers whose weights are rounded, by name, if these are parameters: others would be computed again."""
    layers = {name: part for name, part in model.named_modules() if isinstance(part, (nn.Linear, nn.Embedding))}
    for name, layer in layers.items():
        if "weight" not in layer._parameters:
            raise ValueError(
                f"model must have weights that are parameters, but {name or 'it'} computes its weight from others (as "
                "weight_norm and pruning do): remove that first"
            )
    return layers


def _check_replaceable(name: str, layer: nn.Linear | nn.Embedding) -> None:
    """Raise unless a layer computes what `_stored_in` does with its weight."""
    plain = nn.Linear if isinstance(layer, nn.Linear) else nn.Embedding
    if type(layer).forward is not plain.forward or "forward" in vars(layer):
        kind = type(layer).__name__
        raise TypeError(f"model must have plain layers, but {name or 'it'}, a {kind}, has a forward of its own")
    if layer._forward_hooks or layer._forward_pre_hooks:
        raise ValueError(f"model must have layers without hooks, but {name or 'it'} has one")
    if isinstance(layer, nn.Embedding) and layer.max_norm is not None:
        raise ValueError(f"model must have tables that do not change, but {name or 'it'} has max_norm {layer.max_norm}")


def _stored_in(stored: Int8Weight, layer: nn.Linear | nn.Embedding) -> nn.Module:
    return Int8Linear(stored, layer.bias) if isinstance(layer, nn.Linear) else Int8Embedding(stored)


def rounded(model: AnyModule, *, per: str = "row", bits: int = BITS) -> AnyModule:
    """Return a copy of `model` in its own type whose weights are those that eight bits, or fewer, can say.

    With eight it computes what `quantized` does. It takes as much room as before and, being an ordinary model, can be
    decoded with path="fast". Arguments as for `quantize`.

    Raises:
        TypeError, ValueError: as for `quantize`; a weight is computed from others, as for `quantized`.
    """
    _layers(model)
    copied = copy.deepcopy(model)
    with torch.no_grad():
        for weight in {id(layer.weight): layer.weight for layer in _layers(copied).values()}.values():
            weight.copy_(dequantize(*quantize(weight, per=per, bits=bits)))
    return copied


def stored_bytes(model: nn.Module) -> int:
    """Return how many bytes the model's parameters and buffers take in a file; what is shared counts once."""
    tensors = {tensor.data_ptr(): tensor for tensor in model.state_dict().values() if tensor.numel()}
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
