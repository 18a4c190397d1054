"""Checkpoints as safetensors files: tensors and a JSON header, no code, written whole or not at all."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize
from torch.nn.utils.prune import BasePruningMethod
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm

from .._tensor_files import read_tensors, sharing, write_tensors
from ..fast.eligibility import unlike_config
from ..model.base import TranslationModel, check_has_config
from ..model.config import TransformerConfig
from ..model.transformer import Transformer

_MODEL, _STATE = "model.", "state."


class Contents(NamedTuple):
    """All that a file held; a file of version 1.0 does not name the model's class (`kind`)."""

    kind: str | None
    config: TransformerConfig
    weights: dict[str, Tensor]
    state: dict[str, Tensor]
    extra: dict[str, Any]


@dataclass(frozen=True)
class Checkpoint:
    """What a file held: `model`, other named tensors (`state`), and JSON data (`extra`)."""

    model: Transformer
    state: dict[str, Tensor] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)


def save_checkpoint(
    path: str | os.PathLike[str],
    model: TranslationModel,
    *,
    state: dict[str, Tensor] | None = None,
    extra: dict[str, Any] | None = None,
) -> None:
    """Write `model` to `path`; a reader sees the old file or the new one, never half of it.

    Args:
        model: its class and `config` go into the header. Of a compiled model, what was compiled is written.
            state: more tensors, for example the optimizer's.
        extra: JSON data, for example a vocabulary or a history.

    Raises:
        TypeError, ValueError: what would be written could not be read as this model; nothing is written.
    """
    check_readable(model)
    tensors = {_MODEL + name: tensor for name, tensor in _distinct(model).items()}
    tensors |= {_STATE + name: tensor for name, tensor in (state or {}).items()}
    write_tensors(path, tensors, {"kind": kind_of(model), "config": model.config.to_dict(), "extra": extra or {}})


def load_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Read a checkpoint of a `Transformer`; the model is on the CPU, in evaluation mode, and in the types of the file.

    Raises:
        FileNotFoundError: no such file.
        ValueError: the file is truncated, corrupt, no checkpoint of this library, or of another class of models, or its
            weights do not fit its config.
    """
    contents = read_checkpoint(path, kind=Transformer.__name__)
    model = Transformer(contents.config)
    for name, tensor in _distinct(model).items():
        if name in contents.weights:
            tensor.data = tensor.data.to(contents.weights[name].dtype)
    load_weights(model, contents.weights, str(path))
    return Checkpoint(model.eval(), contents.state, contents.extra)


def read_checkpoint(path: str | os.PathLike[str], *, kind: str | None = None) -> Contents:
    """Read a checkpoint of any model. Errors as for `load_checkpoint`.

    Args:
        kind: the name that the model's class must have, where the file tells it; None accepts every one.
    """
    tensors, header = read_tensors(path, "checkpoint")
    try:
        config, extra = TransformerConfig(**header["config"]), header["extra"]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"checkpoint {path} must be an intact one of this library, got: {error}") from error
    stored_kind = header.get("kind")
    if kind is not None and stored_kind not in (None, kind):
        raise ValueError(f"checkpoint {path} must hold a {kind}, got a {stored_kind}")
    return Contents(stored_kind, config, _named(tensors, _MODEL), _named(tensors, _STATE), extra)


def load_weights(model: nn.Module, weights: dict[str, Tensor], source: str) -> None:
    """Copy `weights` into `model`; both must name the same tensors with the same shapes (tied ones once)."""
    expected = _distinct(model)
    if weights.keys() != expected.keys():
        missing, unknown = sorted(expected.keys() - weights.keys()), sorted(weights.keys() - expected.keys())
        raise ValueError(
            f"checkpoint {source} must hold the model's weights, got missing {missing[:3]}, unknown {unknown[:3]}"
        )
    for name, tensor in expected.items():
        if tensor.shape != weights[name].shape:
            raise ValueError(
                f"checkpoint {source}: {name} must have shape {tuple(tensor.shape)}, got {tuple(weights[name].shape)}"
            )
    with torch.no_grad():
        for name, tensor in expected.items():
            tensor.copy_(weights[name])


def kind_of(model: nn.Module) -> str:
    """Return the name of the model's class; of a compiled model, of the class that was compiled."""
    return type(_compiled_from(model)).__name__


def check_readable(model: nn.Module) -> None:
    """Raise TypeError or ValueError unless a checkpoint gives this model back."""
    model = _compiled_from(model)
    check_has_config("model", model)
    reason = _unreadable(model)
    if reason is not None:
        raise ValueError(f"model must be one that a checkpoint gives back, but {reason}")


def _unreadable(model: nn.Module) -> str | None:
    """Return why what is written of `model` would not be this model when read, or None.

    A reader builds the class from its config and copies the weights by name.
    """
    if type(model.config) is not TransformerConfig:
        return f"its config is a {type(model.config).__name__}, which would be read as a TransformerConfig"
    for name, part in model.named_modules():
        if parametrize.is_parametrized(part) or any(isinstance(hook, _REWRITES) for hook in _before_forward(part)):
            return f"{name or 'it'} computes its weights from others (as weight_norm does): remove that first"
    for name, tensor in _distinct(model).items():
        if tensor.is_meta or tensor.layout != torch.strided or hasattr(tensor, "full_tensor"):
            return f"{name} is not a whole tensor of numbers but sharded, sparse or on the meta device"
    if (pair := sharing(_distinct(model))) is not None:
        return f"{pair[0]} and {pair[1]} are two parameters that share their numbers: make them one"
    return unlike_config(model, inside_compiled=True) if type(model) is Transformer else None


_REWRITES = (WeightNorm, SpectralNorm, BasePruningMethod)  # hooks that set a weight before each forward pass


def _before_forward(part: nn.Module) -> list[object]:
    return list(part._forward_pre_hooks.values())


def _compiled_from(model: nn.Module) -> nn.Module:
    """Return the model that `torch.compile` was given, or `model` itself."""
    return getattr(model, "_orig_mod", model)


def plain_name(name: str) -> str:
    """Return a parameter's name without what `torch.compile` adds to it."""
    return name.replace("_orig_mod.", "")


def _named(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _distinct(model: nn.Module) -> dict[str, Tensor]:
    """Return the model's named tensors, tied ones under their first name only (safetensors stores no aliases)."""
    seen: dict[int, str] = {}
    return {
        plain_name(name): tensor
        for name, tensor in model.state_dict(keep_vars=True).items()
        if seen.setdefault(id(tensor), name) == name
    }
