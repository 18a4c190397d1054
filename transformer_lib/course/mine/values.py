"""What can be written for a value: an import, or a constant."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import numpy as np
import torch

LARGEST = 100  # numbers in an array that is written out
_NOTHING = object()
_PLACES = ("torch", "torch.nn.functional", "numpy", "math")  # where to look for what does not say where it comes from


def import_of(name: str, value: object) -> str | None:
    """Return the import that binds `name` to a module, or to what an installed module holds; None if there is none."""
    if isinstance(value, ModuleType):
        return _import_module(name, value.__name__) if _installed(value.__name__) else None
    for module in (getattr(value, "__module__", None), *_PLACES):
        if not isinstance(module, str) or not _installed(module):
            continue
        own = getattr(value, "__name__", name)
        for label in (own, name):
            if isinstance(label, str) and getattr(sys.modules.get(module), label, _NOTHING) is value:
                return f"from {module} import {label}" + ("" if label == name else f" as {name}")
    return None


def _import_module(name: str, module: str) -> str:
    parent, _, last = module.rpartition(".")
    if parent and last == name:
        return f"from {parent} import {last}"
    return f"import {module}" + ("" if module == name else f" as {name}")


def _installed(module: str) -> bool:
    """Return True where a file elsewhere could import this module, too: not for a notebook or a file beside it."""
    root = module.partition(".")[0]
    if root in sys.stdlib_module_names or root == __name__.partition(".")[0]:
        return root != "__main__"
    try:
        spec = importlib.util.find_spec(root)
    except (ImportError, ValueError):  # __main__ has no specification
        return False
    return spec is not None and {"site-packages", "dist-packages"} & set(Path(spec.origin or "").parts) != set()


def literal(value: object) -> str | None:
    """Return the source of a constant: a number, a text, a small array, or a few of them; None for anything else."""
    if isinstance(value, torch.Tensor):
        return _tensor(value)
    if isinstance(value, np.ndarray | np.generic):
        return _array(np.asarray(value))
    if isinstance(value, torch.dtype):
        return str(value)
    if isinstance(value, torch.device):
        return f"torch.{value!r}"
    return _collection(value) if isinstance(value, list | tuple | set | dict) else _plain(value)


def _plain(value: object) -> str | None:
    if value is None or value is ... or type(value) in (bool, int, str, bytes):
        return repr(value)
    if type(value) is float:
        return repr(value) if np.isfinite(value) else f'float("{value}")'
    return None


def _tensor(value: torch.Tensor) -> str | None:
    """Return the source of a tensor; None for one that is trained, whose numbers would change without the file."""
    if value.requires_grad or type(value) is not torch.Tensor or value.layout != torch.strided:
        return None
    numbers = _numbers(value.numel(), value.tolist())
    return numbers and f"torch.tensor({numbers}, dtype={value.dtype})"


def _array(value: np.ndarray) -> str | None:
    numbers = _numbers(value.size, value.tolist()) if value.dtype.kind in "biuf" else None
    return numbers and f'numpy.array({numbers}, dtype="{value.dtype}")'


def _numbers(size: int, nested: object) -> str | None:
    if size > LARGEST:
        return None
    return literal(nested)


def _collection(value: list[object] | tuple[object, ...] | set[object] | dict[object, object]) -> str | None:
    if type(value) is dict:
        pairs = [(literal(key), literal(item)) for key, item in value.items()]
        texts = [None if key is None or item is None else f"{key}: {item}" for key, item in pairs]
        return _joined("{", texts, "}")
    texts = [literal(item) for item in value]
    if type(value) is tuple:
        return _joined("(", texts, ",)" if len(texts) == 1 else ")")
    if type(value) is set:
        return _joined("{", sorted(texts, key=str), "}") if texts else "set()"
    return _joined("[", texts, "]") if type(value) is list else None


def _joined(start: str, texts: Iterable[str | None], end: str) -> str | None:
    known = list(texts)
    if len(known) > LARGEST or None in known:
        return None
    return start + ", ".join(text for text in known if text is not None) + end


def described(value: object) -> str:
    """Return a few words for a value that cannot be written."""
    if isinstance(value, torch.Tensor):
        trained = " that is trained" if value.requires_grad else ""
        return f"a tensor of shape {list(value.shape)}{trained}"
    if isinstance(value, np.ndarray):
        return f"an array of shape {list(value.shape)}"
    if isinstance(value, ModuleType):
        return f"the module {value.__name__}, which another file could not import"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    kind = type(value).__name__
    return f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"
