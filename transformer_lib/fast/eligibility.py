"""What cannot take the fast path, and why: that path computes what the library's classes say, without calling them."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from types import ModuleType
from typing import Any, cast

import torch
from torch import nn
from torch.nn.modules import module as torch_module
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext
from torch.utils.module_tracker import ModuleTracker

from .._paths import PathName
from ..model import attention, multihead, transformer
from ..model.cache import DecoderCache, KeyValueCache, LayerCache
from ..model.config import POSITIONS, TransformerConfig
from ..model.transformer import Transformer

Parts = dict[str, nn.Module]
Outline = tuple[type, tuple[int | None, ...], tuple[tuple[str, torch.Size], ...]]  # class, heads, weights' shapes


def require_fast(model: nn.Module) -> Transformer:
    """Return `model` if the fast path gives the numbers that calling it gives.

    Raises:
        ValueError: the message names a part that is in the way, and what is the matter with it.
    """
    reason = obstacle(model)
    if reason is not None:
        raise ValueError(f'path="fast" must not change what is computed, but {reason}: take path="readable"')
    assert isinstance(model, Transformer)
    return model


def fastest_path(model: nn.Module) -> PathName:
    """Return "fast" if `model` can take that path as it stands, else "readable"."""
    return "fast" if obstacle(model) is None else "readable"


def obstacle(model: nn.Module) -> str | None:
    """Return why `model` cannot take the fast path, or None if it can.

    It must be a `Transformer` as its config builds it. No method may have been replaced, on an object, on a class or of
    a cache, nor a function of this library that the model calls, and no hook may watch: the fast path would call none
    of these. (What is replaced inside PyTorch, such as a function of `torch.nn.functional`, is not looked for.)
    """
    if type(model) is not Transformer:
        return f"the model is a {type(model).__name__}, not a Transformer"
    if torch_module._has_any_global_hook() and not all(map(_only_tracks, _global_hooks())):
        return "a hook watches all modules"
    if not all(isinstance(mode, DeviceContext) for mode in _get_current_function_mode_stack()):
        return "a TorchFunctionMode is active"
    parts = _parts(model)
    return _unlike_config(parts, model.config) or _watched(parts) or _patched(parts) or _patched_functions()


def _parts(model: nn.Module) -> Parts:
    """Return all modules by path: quicker than `named_modules`, as every training step asks."""
    found: Parts = {}
    to_do = [("", model)]
    while to_do:
        path, part = to_do.pop()
        found[path.lstrip(".")] = part
        to_do += [(f"{path}.{name}", child) for name, child in part._modules.items() if child is not None]
    return found


def _global_hooks() -> list[object]:
    kinds = ("forward_pre", "forward", "backward_pre", "backward")
    return [hook for kind in kinds for hook in getattr(torch_module, f"_global_{kind}_hooks").values()]


def _only_tracks(hook: object) -> bool:
    """Return whether a hook is of torch's counter of operations, which notes the module at work and changes nothing."""
    return isinstance(getattr(hook, "__self__", None), ModuleTracker)


def _unlike_config(parts: Parts, config: TransformerConfig) -> str | None:
    outline, expected = {path: _outline(part) for path, part in parts.items()}, _expected(config)
    if outline == expected:
        return None
    path = min(path for path in outline.keys() | expected.keys() if outline.get(path) != expected.get(path))
    return f"{path} is {_told(outline.get(path))}, where its config builds {_told(expected.get(path))}"


@lru_cache(maxsize=8)
def _expected(config: TransformerConfig) -> dict[str, Outline]:
    return {path: _outline(part) for path, part in _parts(_without_memory(config)).items()}


def _without_memory(config: TransformerConfig) -> Transformer:
    with torch.device("meta"):  # shapes alone, and no random numbers
        return Transformer(config)


def _outline(part: nn.Module) -> Outline:
    shapes = tuple((name, weight.shape) for name, weight in part._parameters.items() if weight is not None)
    return type(part), tuple(part.__dict__.get(name) for name in ("n_heads", "d_k", "d_v")), shapes


def _told(outline: Outline | None) -> str:
    if outline is None:
        return "nothing"
    kind, heads, shapes = outline
    details = [f"{name} {value}" for name, value in zip(("n_heads", "d_k", "d_v"), heads, strict=True) if value]
    details += [f"{name} {tuple(shape)}" for name, shape in shapes]
    return f"a {kind.__name__}" + f" ({', '.join(details)})" * bool(details)


def _watched(parts: Parts) -> str | None:
    for path, part in parts.items():
        own, name, kind = part.__dict__, path or "the model", cast(Hashable, type(part))
        if part._forward_hooks or part._forward_pre_hooks or part._backward_hooks or part._backward_pre_hooks:
            return f"{name} has a hook"
        if own.get("recorder") is not None:
            return f"the attention of {name} is being recorded"
        if own.get("_compiled_call_impl") is not None:
            return f"{name} is compiled"
        if not _methods(kind).isdisjoint(own):
            return f"{name} has a {min(_methods(kind) & own.keys())} of its own"
    return None


@lru_cache(maxsize=64)
def _methods(kind: Hashable) -> frozenset[str]:
    return frozenset(name for name in dir(kind) if callable(getattr(kind, name)))


def _patched(parts: Parts) -> str | None:
    kinds = {base for part in parts.values() for base in type(part).__mro__}
    for kind in (*kinds, KeyValueCache, LayerCache, DecoderCache):
        now, before = kind.__dict__, _AS_DEFINED.get(kind, {})
        for name, function in before.items():
            if now.get(name) is not function:
                return f"{kind.__name__}.{name} has been replaced"
        for name in now.keys() - before.keys():  # a new name matters where it hides that of a base
            if _computes(name, now[name]) and any(name in vars(base) for base in kind.__mro__[1:]):
                return f"{kind.__name__}.{name} has been added"
    return None


def _patched_functions() -> str | None:
    for module, functions in _FUNCTIONS.items():
        for name, function in functions.items():
            if getattr(module, name) is not function:
                return f"{module.__name__}.{name} has been replaced"
    return None


def _as_defined() -> dict[type, dict[str, object]]:
    """Return the functions of every class that a `Transformer` is made of, as they are now."""
    sizes: dict[str, Any] = dict.fromkeys(("n_heads", "n_layers", "d_ff"), 1)
    sizes |= {"src_vocab_size": 3, "tgt_vocab_size": 3, "d_model": 4}
    configs = [TransformerConfig(**sizes, position=kind, norm_first=pre) for kind in POSITIONS for pre in (False, True)]
    parts = [part for config in configs for part in _without_memory(config).modules()]
    kinds = {base for part in parts for base in type(part).__mro__} | {KeyValueCache, LayerCache, DecoderCache}
    return {kind: {name: value for name, value in vars(kind).items() if _computes(name, value)} for kind in kinds}


def _computes(name: str, value: object) -> bool:
    """Return whether an attribute of a class can change what is computed.

    torch.compile replaces the two that make a module, once something has been compiled; both compute nothing.
    """
    return (callable(value) or isinstance(value, property)) and name not in ("__init__", "__setstate__")


# Now, before anybody can have replaced one.
_AS_DEFINED = _as_defined()
_FUNCTIONS: dict[ModuleType, dict[str, object]] = {
    module: {name: getattr(module, name) for name in names}
    for module, names in {
        attention: ("masked_softmax", "scaled_dot_product_attention"),
        multihead: ("fused_attention", "scaled_dot_product_attention"),
        transformer: ("causal_mask", "padding_mask"),
    }.items()
}
