"""Weights and configuration of a folder in Hugging Face's format, from .safetensors and .json files alone.

A .safetensors file is a number n in 8 bytes, n bytes of JSON that say where each tensor lies, and the tensors. Each is
read when it is asked for, into memory of its own, which the model then keeps: loading takes no more than the weights
do, and a configuration is refused before gigabytes are read. (A tensor that is mapped instead would change, or end the
process, when somebody writes over the file.)
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

INDEX = "model.safetensors.index.json"
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")  # how their names end
DTYPES = {
    **{"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16},
    **{"I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8},
    **{"U8": torch.uint8, "BOOL": torch.bool},
}


@dataclass(frozen=True)
class Stored:
    """A tensor in a .safetensors file: where it begins, in bytes, and what it shall be; None means as it is."""

    file: Path
    start: int
    shape: tuple[int, ...]
    stored_as: str  # a key of DTYPES
    dtype: torch.dtype | None = None  # of floats
    device: torch.device | str | None = None

    def read(self) -> Tensor:
        """Return the tensor, in memory of its own.

        Raises:
            ValueError: its numbers are of a type that ours are not, such as floats of 8 bits.
        """
        if self.stored_as not in DTYPES:
            raise ValueError(f"{self.file} must have tensors of {', '.join(DTYPES)}, got one of {self.stored_as}")
        stored_as = DTYPES[self.stored_as]
        content = torch.empty(math.prod(self.shape) * stored_as.itemsize, dtype=torch.uint8, device="cpu")
        with self.file.open("rb") as file:
            file.seek(self.start)
            if file.readinto(content.numpy().data) < len(content):
                raise ValueError(f"{self.file} must be a whole .safetensors file, got the beginning of one")
        tensor = content.view(stored_as).view(self.shape)
        return tensor.to(self.device, self.dtype if stored_as.is_floating_point else None)


Entries = dict[str, Tensor | Stored]


def open_weights(path: Path, dtype: torch.dtype | None = None, device: torch.device | str | None = None) -> Entries:
    """Return the tensors of a .safetensors file, or of a folder: of the files that its index names, or else of all.

    Args:
        dtype: what floats become; as they are stored by default. device: where tensors go; the CPU by default.

    Raises:
        ValueError: there are none, or in pickles only; a file is missing, broken, or has what another has.
    """
    entries: Entries = {}
    for file in _weight_files(path):
        start, tensors = _header(file)
        for name, told in tensors.items():
            if name in entries:
                raise ValueError(f"{file} must not have what another file of the folder has, got {name!r} again")
            place = start + told["data_offsets"][0]
            entries[name] = Stored(file, place, tuple(told["shape"]), told["dtype"], dtype, device)
    return entries


def _header(file: Path) -> tuple[int, dict[str, Any]]:
    """Return where the tensors of a file begin, and what its header says of each."""
    try:
        with safe_open(file, framework="pt"):  # checks that the file is whole, and that its tensors fill it
            pass
    except SafetensorError as error:
        raise ValueError(f"{file} must be a whole .safetensors file, got: {error}") from error
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        header = json.loads(opened.read(length))
    header.pop("__metadata__", None)
    return 8 + length, header


def _weight_files(path: Path) -> list[Path]:
    if not path.is_dir():
        files = [path]
    elif (path / INDEX).is_file():
        files = _indexed(path)
    else:
        whole = path / "model.safetensors"  # beside which some folders have the same weights under other names
        files = [whole] if whole.is_file() else sorted(path.glob("*.safetensors"))
    looked_at = files or sorted(path.iterdir())
    pickled = next((file.name for file in looked_at if file.suffix in PICKLES), None)
    if pickled is not None:
        raise ValueError(f"weights must be in .safetensors files, got {pickled}: a pickle may run any code when opened")
    missing = next((file for file in files if not file.is_file()), None if files else path)
    if missing is not None:
        what = "a state dict, a .safetensors file or a folder with one"
        raise ValueError(f"weights must be {what}, got {missing}, which has none (and none is fetched)")
    return files


def _indexed(folder: Path) -> list[Path]:
    """Return the files that the folder's index names; they must lie in the folder itself."""
    places = read_json(folder / INDEX).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise ValueError(f"{folder / INDEX} must have a weight_map, got {places!r}")
    names = sorted(map(str, set(places.values())))
    for name in names:
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise ValueError(f"{folder / INDEX} must name .safetensors files of its folder, got {name!r}")
    return [folder / name for name in names]


def read_json(file: Path) -> dict[str, Any]:
    """Return the object of a JSON file.

    Raises:
        ValueError: it is no JSON, or something else than an object.
    """
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:  # of json or of UTF-8
        raise ValueError(f"{file} must be JSON, got: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{file} must hold a JSON object, got a {type(found).__name__}")
    return found
