"""Checkpoints as safetensors files: tensors and a JSON header, no code, written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from .._files import write_atomically
from ..model.base import TranslationModel
from ..model.config import TransformerConfig
from ..model.transformer import Transformer

_MODEL, _STATE = "model.", "state."
_HEADER = "transformer_lib"  # one entry only: safetensors writes several in random order, and equal files would differ


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
        model: its `config` goes into the header. state: more tensors, for example the optimizer's.
        extra: JSON data, for example a vocabulary or a history.
    """
    tensors = {_MODEL + name: tensor for name, tensor in _distinct(model).items()}
    tensors |= {_STATE + name: tensor for name, tensor in (state or {}).items()}
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    header: dict[str, Any] = {"config": model.config.to_dict(), "extra": extra or {}}
    header["sha256"] = _digest(tensors, header)
    write_atomically(Path(path), save(tensors, {_HEADER: json.dumps(header)}))


def load_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Read a checkpoint of a `Transformer`; the model is on the CPU and in evaluation mode.

    Raises:
        FileNotFoundError: no such file.
        ValueError: the file is truncated, corrupt, no checkpoint of this library, or its weights do not fit its config.
    """
    config, weights, state, extra = read_checkpoint(path)
    model = Transformer(config).to(next(iter(weights.values())).dtype if weights else None)
    load_weights(model, weights, str(path))
    return Checkpoint(model.eval(), state, extra)


def read_checkpoint(
    path: str | os.PathLike[str],
) -> tuple[TransformerConfig, dict[str, Tensor], dict[str, Tensor], dict[str, Any]]:
    """Return config, weights, state and extra of a checkpoint, of whatever model. Errors as for `load_checkpoint`."""
    tensors, metadata = _read(Path(path))
    try:
        header = json.loads(metadata[_HEADER])
        stored, found = header.pop("sha256"), _digest(tensors, header)
        if stored != found:
            raise ValueError(f"contents with SHA-256 {found} instead of {stored}")
        config, extra = TransformerConfig(**header["config"]), header["extra"]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"checkpoint {path} must be an intact one of this library, got: {error}") from error
    return config, _named(tensors, _MODEL), _named(tensors, _STATE), extra


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


def _named(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _digest(tensors: dict[str, Tensor], header: dict[str, Any]) -> str:
    """Return the SHA-256 of everything in a checkpoint, in hexadecimal."""
    digest = hashlib.sha256(json.dumps(header).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _distinct(model: nn.Module) -> dict[str, Tensor]:
    """Return the model's named tensors, tied ones under their first name only (safetensors stores no aliases)."""
    seen: dict[int, str] = {}
    return {
        name: tensor
        for name, tensor in model.state_dict(keep_vars=True).items()
        if seen.setdefault(id(tensor), name) == name
    }


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    if not path.exists():
        raise FileNotFoundError(f"checkpoint {path} does not exist")
    try:
        with safe_open(str(path), framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise ValueError(f"checkpoint {path} must be a complete safetensors file, got: {error}") from error
