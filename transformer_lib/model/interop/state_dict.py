"""State dicts of `transformers`, taken entry by entry: errors can name what is missing and what is left over."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .files import Entries, Stored, open_weights, read_json


def opened(
    weights: Mapping[str, Tensor] | str | Path,
    config: Any,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> tuple[Entries, Any]:
    """Return the entries of a state dict, of a .safetensors file or of a folder, and the configuration.

    Args:
        config: by default the config.json of the folder. dtype, device: as for `open_weights`.

    Raises:
        ValueError: there are no weights, or there is no configuration.
    """
    if isinstance(weights, Mapping):
        if config is None:
            raise ValueError("config must be given with a state dict: the weights do not tell the heads, got None")
        return dict(weights), config
    path = Path(weights)
    entries = open_weights(path, dtype, device)
    described = (path if path.is_dir() else path.parent) / "config.json"
    if config is None and not described.exists():
        raise ValueError(f"config must be given, or be in config.json beside the weights, got neither in {path}")
    return entries, read_json(described) if config is None else config


class StateDict:
    """Entries that are taken one by one; what is taken is memory of its own, whoever has the entry.

    Args:
        prefix: of names, which not all files have. ignored: how names end that are no weights of ours.
    """

    def __init__(self, entries: Entries, prefix: str, *, ignored: tuple[str, ...]) -> None:
        named = {name.removeprefix(prefix): weight for name, weight in entries.items()}
        self.left = {name: weight for name, weight in named.items() if not name.endswith(ignored)}

    def look(self, name: str) -> Tensor | Stored:
        """Return an entry, and leave it there."""
        if name not in self.left:
            others = ", ".join(sorted(self.left)[:4])
            raise ValueError(f"state_dict must have {name!r}, got without it {others or 'nothing'}, …")
        return self.left[name]

    def take(self, name: str) -> Tensor:
        """Return an entry, read or copied, and take it away."""
        entry = self.look(name)
        del self.left[name]
        if isinstance(entry, Stored):
            return entry.read()
        return entry.detach().clone(memory_format=torch.contiguous_format)

    def drop_copy(self, name: str, *, of: Tensor) -> None:
        """Take away an entry, if it is there, that must equal another."""
        if name in self.left and not torch.equal(self.take(name), of):
            raise ValueError(f"state_dict[{name!r}] must be the same as what it is tied to, got other numbers")

    def has(self, beginning: str) -> bool:
        """Return whether the name of an entry begins so."""
        return any(name.startswith(beginning) for name in self.left)

    def count(self, prefix: str) -> int:
        """Return how many numbers follow the prefix in names: the layers."""
        return len({name.removeprefix(prefix).split(".")[0] for name in self.left if name.startswith(prefix)})

    def fill(self, name: str, *modules: nn.Module, turned: bool = False) -> None:
        """Make `name.weight` and `name.bias`, in as many equal parts as there are modules, those of the modules.

        Args:
            turned: their matrices are [in, out], as those of GPT-2's `Conv1D` are; ours are [out, in].
        """
        for kind in ("weight", "bias"):
            whole = self.take(f"{name}.{kind}")
            whole = whole.T if turned and whole.dim() == 2 else whole
            for module, part in zip(modules, whole.chunk(len(modules)), strict=True):
                set_parameter(module, kind, part, f"state_dict['{name}.{kind}']")

    def fill_own(self, name: str, module: nn.Module) -> None:
        """Make `name.weight`, and `name.bias` where the module has a bias, those of the module."""
        for kind in ("weight", "bias"):
            if getattr(module, kind, None) is not None:
                set_parameter(module, kind, self.take(f"{name}.{kind}"), f"state_dict['{name}.{kind}']")

    def finish(self) -> None:
        """Raise if anything is left."""
        if self.left:
            raise ValueError(f"state_dict must have what the model has, got besides {', '.join(sorted(self.left)[:4])}")


def set_parameter(owner: nn.Module, attribute: str, tensor: Tensor, name: str = "") -> None:
    """Make a tensor the parameter of that name, or a copy where it is a part of another; `name` is for the error."""
    wanted = tuple(getattr(owner, attribute).shape)
    if tuple(tensor.shape) != wanted:
        raise ValueError(f"{name or attribute} must give a weight of shape {wanted}, got {tuple(tensor.shape)}")
    if not tensor.is_floating_point():
        raise ValueError(f"{name or attribute} must give a weight of floats, got {tensor.dtype}")
    if not tensor.is_contiguous() or tensor.untyped_storage().nbytes() > tensor.nbytes:
        tensor = tensor.clone(memory_format=torch.contiguous_format)
    setattr(owner, attribute, nn.Parameter(tensor))
