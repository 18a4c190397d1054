"""LoRA: a trained model learns something new in two small matrices beside each chosen layer (Hu et al. 2022).

A linear layer x Wᵀ becomes x Wᵀ + (α / r) · x Aᵀ Bᵀ, where A is [r, in], B [out, r], and r, the rank, is small (§4.1).
W stays as it is. B begins as zeros, so that nothing changes before the first step.

>>> tl.lora.add(model, rank=8, targets=("w_q", "w_v"))
>>> tl.fine_tune(model, examples, epochs=2)
>>> tl.lora.save(model, "pirate.safetensors")  # A and B alone
>>> tl.lora.remove(model)  # what it was
>>> tl.lora.load(model, "pirate.safetensors")
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, cast

import torch
from torch import Tensor, nn

from .._lists import check_texts
from .._tensor_files import read_tensors, write_tensors
from .._validate import check_int, check_positive
from .int8 import Int8Linear

TARGETS = ("w_q", "w_v")  # the best two of the paper (§7.1)
_TRAINED = "_trained_before_lora"  # attribute of a wrapped model: the names of the parameters that `remove` thaws


class LoRALinear(nn.Module):
    """A linear layer that stays as it is, and beside it the product of two small matrices that can learn.

    Args:
        base: the layer, with a weight [out, in]. rank: r. alpha: α; the product counts α / r times.

    Attributes:
        a: [rank, in], drawn from N(0, 1 / in). b: [out, rank], zeros.
    """

    def __init__(self, base: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        self.base, self.rank, self.alpha = base, check_int("rank", rank), check_positive("alpha", alpha)
        out, width = base.weight.shape
        self.a = nn.Parameter(torch.randn(rank, width).to(base.weight) * width**-0.5)
        self.b = nn.Parameter(base.weight.new_zeros(out, rank))

    def forward(self, x: Tensor) -> Tensor:
        """[..., in] -> [..., out]."""
        output: Tensor = self.base(x) + (self.alpha / self.rank) * (x @ self.a.T @ self.b.T)
        return output

    @property
    def weight(self) -> Tensor:
        """The matrix [out, in] that the layer amounts to, W + (α / r) · B A."""
        return self.base.weight + (self.alpha / self.rank) * (self.b @ self.a)

    @property
    def bias(self) -> Tensor | None:
        """The base's bias [out], or None."""
        return self.base.bias

    @property
    def in_features(self) -> int:
        """Width of the input."""
        return self.base.in_features

    @property
    def out_features(self) -> int:
        """Width of the output."""
        return self.base.out_features


def add(model: nn.Module, *, rank: int = 8, alpha: float = 16.0, targets: Iterable[str] = TARGETS) -> list[str]:
    """Put a `LoRALinear` in the place of chosen linear layers, freeze all else, and return the names of these layers.

    The model computes what it did, number for number, until it is trained.

    Args:
        model: changed in place. rank, alpha: r and α. targets: names of layers as `model.named_modules()` has them, or
            the ends of names: "w_q", "attention.w_q"; * and ? stand for any letters, as in "layers.1?.attention.*".

    Raises:
        TypeError: a target is no text, or names a layer in eight bits or one with a forward of its own.
        ValueError: the model is wrapped already; a target names no linear layer, or one whose weight is shared with
            another part or computed from other weights; rank or alpha is not positive.
    """
    targets = check_texts("targets", targets)
    check_int("rank", rank)
    check_positive("alpha", alpha)
    _check_bare(model)
    layers = {name: layer for target in targets for name, layer in _matching(model, target).items()}
    if not layers:
        raise ValueError("targets must name a layer, got none")
    shared = _shared(model)
    for name, layer in layers.items():
        _check_adaptable(name, layer, shared)
    setattr(model, _TRAINED, [name for name, weight in model.named_parameters() if weight.requires_grad])
    model.requires_grad_(False)
    for name, layer in layers.items():
        model.set_submodule(name, LoRALinear(cast(nn.Linear, layer), rank, alpha).train(layer.training))
    return list(layers)


def adapters(model: nn.Module) -> dict[str, LoRALinear]:
    """Return the wrapped layers by name; none for a model without."""
    return {name: part for name, part in model.named_modules() if isinstance(part, LoRALinear)}


def parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return every A and B by name: all that `add` leaves to be trained."""
    named = adapters(model).items()
    return {f"{name}.{which}": getattr(layer, which) for name, layer in named for which in ("a", "b")}


def count(model: nn.Module) -> int:
    """Return how many numbers all A and B hold together: Σ r · (in + out)."""
    return sum(weight.numel() for weight in parameters(model).values())


def remove(model: nn.Module) -> None:
    """Put the layers back as they were before `add`, which parameters are trained included; A and B are lost.

    Raises:
        ValueError: the model is not wrapped.
    """
    for name, layer in _wrapped(model).items():
        model.set_submodule(name, layer.base)
    _thaw(model)


@torch.no_grad()
def merge(model: nn.Module) -> None:
    """Add (α / r) · B A to each weight, so that what was learned costs nothing when the model runs.

    The layers are linear layers again, and the parameters that were trained before `add` are so again. Rounding makes
    this final: a difference cannot be subtracted to the last bit. So save the adapter first, or merge a copy.

    Raises:
        ValueError: the model is not wrapped, or its base has been stored in eight bits since.
    """
    wrapped = _wrapped(model)
    for name, layer in wrapped.items():
        if "weight" not in layer.base._parameters:
            raise ValueError(f"model must have a base to add to, but {name} is in eight bits: merge before that")
    for name, layer in wrapped.items():
        layer.base.weight.copy_(layer.weight)
        model.set_submodule(name, layer.base)
    _thaw(model)


def save(model: nn.Module, path: str | os.PathLike[str]) -> None:
    """Write all A and B to a safetensors file, with rank, alpha, the layers' names, and a fingerprint of the base.

    Raises:
        ValueError: the model is not wrapped. OSError: the file cannot be written; the one there stays.
    """
    first = next(iter(_wrapped(model).values()))
    header = {"rank": first.rank, "alpha": first.alpha, "targets": list(adapters(model)), "base": _describe(model)}
    write_tensors(path, parameters(model), {"kind": "lora", **header})


def load(model: nn.Module, path: str | os.PathLike[str]) -> list[str]:
    """Wrap `model` with what `save` wrote, in the file's layers, rank and alpha; return the names of the layers.

    Raises:
        FileNotFoundError: no such file.
        ValueError: it is truncated, corrupt or no adapter; the model is wrapped already, or differs from the file's in
            its class or the names or shapes of its weights. (Their numbers are not compared.)
    """
    tensors, header = read_tensors(path, "adapter")
    if header.get("kind") != "lora":
        raise ValueError(f"adapter {path} must be one that tl.lora.save wrote, got a {header.get('kind')}")
    _check_bare(model)
    own = _describe(model)
    if own != header["base"]:
        wanted, got = (f"a {base['kind']} of {base['parameters']:,} parameters" for base in (header["base"], own))
        difference = "" if wanted != got else " with other names or shapes"
        raise ValueError(f"model must be the one that adapter {path} was made for, {wanted}, got {got}{difference}")
    named = add(model, rank=header["rank"], alpha=header["alpha"], targets=header["targets"])
    with torch.no_grad():
        for name, weight in parameters(model).items():
            weight.copy_(tensors[name])
    return named


def _matching(model: nn.Module, target: str) -> dict[str, nn.Module]:
    """Return the linear layers that a target names, in either precision."""
    kinds = (nn.Linear, Int8Linear)
    linear = {name: part for name, part in model.named_modules() if name and isinstance(part, kinds)}
    found: dict[str, nn.Module] = {n: part for n, part in linear.items() if fnmatchcase(f".{n}", f"*.{target}")}
    if not found:
        ends = ", ".join(sorted({name.rpartition(".")[2] for name in linear})) or "no linear layer"
        raise ValueError(f"targets must name linear layers of the model, which has {ends}; got {target!r}")
    return found


def _check_bare(model: nn.Module) -> None:
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    if adapters(model):
        raise ValueError("model must have no adapter yet, got one that has: merge it, or remove it")


def _check_adaptable(name: str, layer: nn.Module, shared: set[int]) -> None:
    """Raise unless an adapter beside this layer could be merged into its weight, and change nothing else."""
    if isinstance(layer, Int8Linear):
        raise TypeError(f"targets must name layers in floating point, but {name} is in eight bits: adapt the original")
    if type(layer).forward is not nn.Linear.forward or "forward" in vars(layer):
        raise TypeError(f"targets must name plain layers, but {name}, a {type(layer).__name__}, has its own forward")
    if "weight" not in layer._parameters:
        raise ValueError(f"targets must name layers with a weight, but {name} computes it from others")
    if id(layer.weight) in shared:
        raise ValueError(f"targets must name layers with a weight of their own, but {name} shares it with another part")


def _shared(model: nn.Module) -> set[int]:
    """Return the ids of the parameters that the model has under several names."""
    seen: set[int] = set()
    named = [id(weight) for _, weight in model.named_parameters(remove_duplicate=False)]
    return {number for number in named if number in seen or seen.add(number)}  # type: ignore[func-returns-value]


def _wrapped(model: nn.Module) -> dict[str, LoRALinear]:
    found = adapters(model)
    if _TRAINED not in vars(model):
        has = "one of which only a part has" if found else "one without: tl.lora.add or tl.lora.load gives it one"
        raise ValueError(f"model must be one that has an adapter, got {has}")
    return found


def _thaw(model: nn.Module) -> None:
    trained = set(vars(model).pop(_TRAINED))
    for name, weight in model.named_parameters():
        weight.requires_grad_(name in trained)


def _describe(model: nn.Module) -> dict[str, Any]:
    """Return the class, the number of parameters and a digest of all names and shapes, as they are without adapter."""
    wrapped, ours = adapters(model), parameters(model)
    own = {name: weight for name, weight in model.named_parameters() if name not in ours}
    shapes = sorted((_bare_name(name, wrapped), list(weight.shape)) for name, weight in own.items())
    digest = hashlib.sha256(json.dumps(shapes).encode()).hexdigest()
    return {"kind": type(model).__name__, "parameters": sum(map(torch.numel, own.values())), "shapes": digest}


def _bare_name(name: str, wrapped: Mapping[str, LoRALinear]) -> str:
    """Return the name that a parameter had before its layer was wrapped."""
    owner, _, own = name.rpartition(".")
    layer = owner.removesuffix(".base")
    return f"{layer}.{own}" if layer in wrapped else name
