"""What cannot take the fast path, and why: that path computes what the library's classes say, without calling them."""

from __future__ import annotations

from collections.abc import Collection, Hashable
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
from ..model import attention, modern, multihead, transformer
from ..model.base import WithoutMemory
from ..model.cache import DecoderCache, KeyValueCache, LayerCache
from ..model.config import POSITIONS, TransformerConfig
from ..model.positional import SinusoidalPosition, sinusoidal_encoding
from ..model.transformer import Transformer

Parts = dict[str, nn.Module]
Outline = tuple[type, tuple[tuple[str, torch.Size], ...]]  # class, weights' shapes
Plain = bool | int | float | str | None
Description = tuple[dict[str, Outline], list[tuple[str, str, Plain]]]  # of each part; path, name, value of attributes
Config = TransformerConfig | modern.Config

# Attributes of parts, by who reads them. The fast path reads those of the first two where the model does, and those of
# the third only describe weights, whose shapes are compared; of any other it knows nothing.
COMPUTING = frozenset({"activation", "eps", "norm_first", "base", "pairs", "scaling", "max_offset"})
TRAINING = frozenset({"p", "inplace", "dropout", "padding_idx", "scale_grad_by_freq", "sparse"})
_DESCRIBING = frozenset({"in_features", "out_features", "num_embeddings", "embedding_dim", "d_model", "norm_type"})
_WATCHED = frozenset({"training", "recorder"})  # the model's state, which `_watched` and the paths look at


def require_fast(model: nn.Module) -> Transformer:
    """Return `model` if the fast path gives the numbers that calling it gives.

    Raises:
        ValueError: the message names a part that is in the way, and what is the matter with it.
    """
    _refuse(obstacle(model))
    assert isinstance(model, Transformer)
    return model


def require_fast_today(model: nn.Module) -> modern.LanguageModel:
    """Return `model` if the fast steps of a language model of `modern` give the numbers that calling it gives.

    Raises:
        ValueError: the message names a part that is in the way, and what is the matter with it.
    """
    _refuse(obstacle_today(model))
    assert isinstance(model, modern.LanguageModel)
    return model


def _refuse(reason: str | None) -> None:
    if reason is not None:
        raise ValueError(f'path="fast" must not change what is computed, but {reason}: take path="readable"')


def fastest_path(model: nn.Module) -> PathName:
    """Return "fast" if `model` can take that path as it is, else "readable"."""
    return "fast" if obstacle(model) is None else "readable"


def obstacle(model: nn.Module) -> str | None:
    """Return why `model` cannot take the fast path, or None if it can.

    It must be a `Transformer` as its config builds it. No method may have been replaced, on an object, on a class or of
    a cache, nor a function of this library that the model calls, and no hook may watch: the fast path would call none
    of these. (What is replaced inside PyTorch, such as a function of `torch.nn.functional`, is not looked for.)
    """
    return _obstacle(model, Transformer, "a Transformer")


def obstacle_today(model: nn.Module) -> str | None:
    """Return why a `modern.LanguageModel` cannot take the fast steps, or None if it can; as `obstacle`.

    Experts are refused, as each token reads weights of its own, and so are parts in different dtypes.
    """
    reason = _obstacle(model, modern.LanguageModel, "a modern.LanguageModel")
    if reason is not None:
        return reason
    assert isinstance(model, modern.LanguageModel)
    if model.config.feed_forward == "experts":
        return "feed_forward='experts', so that each token reads weights of its own"
    dtypes = sorted({str(weight.dtype) for weight in model.parameters()})
    return None if len(dtypes) == 1 else f"its weights are of several dtypes, {', '.join(dtypes)}"


def _obstacle(model: nn.Module, kind: type[Transformer | modern.LanguageModel], name: str) -> str | None:
    if "_orig_mod" in model._modules:
        return "the model is compiled; its ._orig_mod is not"
    if type(model) is not kind:
        return f"the model is a {type(model).__name__}, not {name}"
    if torch_module._has_any_global_hook() and not all(map(_only_tracks, _global_hooks())):
        return "a hook watches all modules"
    if not all(isinstance(mode, DeviceContext) for mode in _get_current_function_mode_stack()):
        return "a TorchFunctionMode is active"
    parts = _parts(model)
    unlike = _unlike_config(parts, model.config, COMPUTING | TRAINING if kind is Transformer else TRAINING)
    return unlike or _watched(parts) or _patched(parts) or _patched_functions(kind)


def unlike_config(model: Transformer, *, but: Collection[str] = TRAINING, inside_compiled: bool = False) -> str | None:
    """Return a part of `model` that is not as its config builds it, and how it differs, or None. Weights may differ.

    Args:
        but: attributes of parts that may differ, too; by default those that evaluation does not read, such as dropout's
            p. "table" stands for the constants of sinusoidal positions, "ties" for which tables are one.
        inside_compiled: whether of a compiled part what was compiled is looked at, as it has the weights.
    """
    parts = _parts(model)
    if inside_compiled:
        parts = {path.replace("._orig_mod", ""): part for path, part in parts.items()}
    reason = _unlike_config(parts, model.config, but)
    if reason is None and "ties" not in but:
        reason = _other_ties(model)
    return reason or (None if "table" in but else _other_table(model.position))


def _other_ties(model: Transformer) -> str | None:
    tables = (model.src_embedding.weight, model.tgt_embedding.weight, model.output_head.weight)
    distinct, tied = len(set(map(id, tables))), model.config.tie_embeddings
    return None if distinct == (1 if tied else 3) else f"it has {distinct} tables, where tie_embeddings={tied}"


def _other_table(position: nn.Module) -> str | None:
    if not isinstance(position, SinusoidalPosition):
        return None
    table = sinusoidal_encoding(*position.table.shape).to(position.table)
    same = torch.allclose(position.table, table, rtol=0, atol=1e-6)  # it may have been made in another dtype
    return None if same else "position.table holds other numbers than its config builds"


def _parts(model: nn.Module) -> Parts:
    """Return all modules by path: quicker than `named_modules`, as every training step asks."""
    by_path: Parts = {}
    to_do = [("", model)]
    while to_do:
        path, part = to_do.pop()
        by_path[path.lstrip(".")] = part
        to_do += [(f"{path}.{name}", child) for name, child in part._modules.items() if child is not None]
    return by_path


def _global_hooks() -> list[object]:
    kinds = ("forward_pre", "forward", "backward_pre", "backward")
    return [hook for kind in kinds for hook in getattr(torch_module, f"_global_{kind}_hooks").values()]


def _only_tracks(hook: object) -> bool:
    """Return whether a hook is of torch's counter of operations, which notes the module at work and changes nothing."""
    return isinstance(getattr(hook, "__self__", None), ModuleTracker)


def unlike(model: nn.Module, built: nn.Module, *, but: Collection[str]) -> str | None:
    """Return a part of `model` that is not as in `built`, which its config has built, and how it differs, or None.

    Args:
        but: attributes of parts that may differ. Weights may, but for their shapes.
    """
    return _difference(_parts(model), _description(built), but)


def _unlike_config(parts: Parts, config: Config, but: Collection[str]) -> str | None:
    return _difference(parts, _expected(config), but)


def _difference(parts: Parts, description: Description, but: Collection[str]) -> str | None:
    outline, (expected, attributes) = {path: _outline(part) for path, part in parts.items()}, description
    if outline != expected:
        path = min(path for path in outline.keys() | expected.keys() if outline.get(path) != expected.get(path))
        return f"{path} is {_in_words(outline.get(path))}, where its config builds {_in_words(expected.get(path))}"
    for path, name, value in attributes:
        own = parts[path].__dict__.get(name)
        if own != value and name not in but:
            return f"{path}.{name} is {own!r}, where its config builds {value!r}".lstrip(".")
    return None


@lru_cache(maxsize=8)
def _expected(config: Config) -> Description:
    return _description(_without_memory(config))


def _description(model: nn.Module) -> Description:
    parts = _parts(model)
    attributes = [(path, *pair) for path, part in parts.items() for pair in plain_attributes(part).items()]
    return {path: _outline(part) for path, part in parts.items()}, attributes


def plain_attributes(part: nn.Module) -> dict[str, Plain]:
    """Return the numbers, texts and flags that a part was made with and that nothing else of it tells."""
    return {
        name: value
        for name, value in vars(part).items()
        if not name.startswith("_")
        and name not in _DESCRIBING | _WATCHED
        and (value is None or isinstance(value, (bool, int, float, str)))
    }


def _without_memory(config: Config) -> Transformer | modern.LanguageModel:
    with WithoutMemory():
        return modern.LanguageModel(config) if isinstance(config, modern.Config) else Transformer(config)


def _outline(part: nn.Module) -> Outline:
    return type(part), tuple((name, weight.shape) for name, weight in part._parameters.items() if weight is not None)


def _in_words(outline: Outline | None) -> str:
    if outline is None:
        return "nothing"
    kind, shapes = outline
    details = [f"{name} {tuple(shape)}" for name, shape in shapes]
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
    for kind in kinds.union(_CACHES):
        now, before = kind.__dict__, _AS_DEFINED.get(kind, {})
        for name, function in before.items():
            if now.get(name) is not function:
                return f"{kind.__name__}.{name} has been replaced"
        for name in now.keys() - before.keys():  # a new name matters where it hides that of a base
            if _computes(name, now[name]) and any(name in vars(base) for base in kind.__mro__[1:]):
                return f"{kind.__name__}.{name} has been added"
    return None


def _patched_functions(kind: type) -> str | None:
    for module in _CALLED[kind]:
        for name, function in _FUNCTIONS[module].items():
            if getattr(module, name) is not function:
                return f"{module.__name__}.{name} has been replaced"
    return None


def _as_defined() -> dict[type, dict[str, object]]:
    """Return the functions of every class that the models are made of, as they are now."""
    sizes: dict[str, Any] = dict.fromkeys(("n_heads", "n_layers", "d_ff"), 1) | {"d_model": 4}
    pair: dict[str, Any] = sizes | {"src_vocab_size": 3, "tgt_vocab_size": 3}
    one: dict[str, Any] = sizes | {"vocab_size": 3, "qk_norm": True}
    configs: list[Config] = []
    configs += [TransformerConfig(**pair, position=kind, norm_first=pre) for kind in POSITIONS for pre in (False, True)]
    configs += [modern.Config(**one, norm=norm, feed_forward=kind) for norm, kind in _TODAY]
    parts = [part for config in configs for part in _without_memory(config).modules()]
    kinds = {base for part in parts for base in type(part).__mro__} | _CACHES
    return {kind: {name: value for name, value in vars(kind).items() if _computes(name, value)} for kind in kinds}


def _computes(name: str, value: object) -> bool:
    """Return whether an attribute of a class can change what is computed.

    torch.compile replaces the two that make a module, once something has been compiled; both compute nothing.
    """
    return (callable(value) or isinstance(value, property)) and name not in ("__init__", "__setstate__")


_TODAY = (("rms", "swiglu"), ("layer", "relu"), ("layer", "experts"))  # all norms and feed-forward networks
_CACHES: frozenset[type] = frozenset((KeyValueCache, LayerCache, DecoderCache, modern.LayerCache, modern.Cache))
# Now, before anybody can have replaced one.
_AS_DEFINED = _as_defined()
_FUNCTIONS: dict[ModuleType, dict[str, object]] = {
    module: {name: getattr(module, name) for name in names}
    for module, names in {
        attention: ("masked_softmax", "scaled_dot_product_attention"),
        multihead: ("fused_attention", "scaled_dot_product_attention"),
        transformer: ("causal_mask", "padding_mask"),
        modern: ("fused_attention", "window_mask", "causal_mask"),
    }.items()
}
_CALLED: dict[type, tuple[ModuleType, ...]] = {
    Transformer: (attention, multihead, transformer),
    modern.LanguageModel: (attention, modern),
}
