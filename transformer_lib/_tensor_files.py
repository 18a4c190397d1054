"""Named tensors and JSON data in one safetensors file: no code, written whole or not at all, and checked when read."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from ._files import write_atomically

_HEADER = "transformer_lib"  # one entry only: safetensors writes several in random order, and equal files would differ


def write_tensors(path: str | os.PathLike[str], tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> None:
    """Write the tensors, on any device, and a header of JSON data, to which the SHA-256 of everything is added.

    A reader sees the old file or the new one, never half of it. Tensors that share memory are written apart.
    """
    own = _apart({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})
    whole = {**header, "sha256": _digest(own, header)}
    write_atomically(Path(path), save(own, {_HEADER: json.dumps(whole)}))


def read_tensors(path: str | os.PathLike[str], what: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and the header of a file that `write_tensors` wrote; messages call it `what`.

    Raises:
        FileNotFoundError: no such file.
        ValueError: it is truncated, corrupt, or no such file at all.
    """
    tensors, metadata = _read(Path(path), what)
    try:
        header = json.loads(metadata[_HEADER])
        stored, computed = header.pop("sha256"), _digest(tensors, header)
        if stored != computed:
            raise ValueError(f"contents with SHA-256 {computed} instead of {stored}")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{what} {path} must be an intact one of this library, got: {error}") from error
    return tensors, header


def sharing(tensors: Mapping[str, Tensor]) -> tuple[str, str] | None:
    """Return the names of two tensors that lie in the same memory, or None."""
    seen: dict[tuple[torch.device, int], str] = {}
    for name, tensor in tensors.items():
        place = (tensor.device, tensor.untyped_storage().data_ptr())
        if tensor.numel() and seen.setdefault(place, name) != name:
            return seen[place], name
    return None


def _apart(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors with those copied that share memory with an earlier one: safetensors stores no aliases."""
    while (pair := sharing(tensors)) is not None:
        tensors = {**tensors, pair[1]: tensors[pair[1]].clone()}
    return tensors


def _digest(tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> str:
    """Return the SHA-256 of everything in a file, in hexadecimal."""
    digest = hashlib.sha256(json.dumps(header).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _read(path: Path, what: str) -> tuple[dict[str, Tensor], dict[str, str]]:
    if not path.exists():
        raise FileNotFoundError(f"{what} {path} does not exist")
    try:
        with safe_open(str(path), framework="pt") as file:
            return {name: file.get_tensor(name).clone() for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{what} {path} must be a complete safetensors file, got: {error}") from error
