"""Change what a model does while it runs, without changing the model: forbid a reading, replace a result.

Each function is a context manager. Inside the `with` block the model behaves otherwise; afterwards it is as it was.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from .._validate import check_choice, check_int, check_mask, check_tensor
from .cache import DecoderCache, KeyValueCache
from .modern import Cache, GroupedQueryAttention, LayerCache
from .multihead import MultiHeadAttention

ATTENTIONS = {
    "encoder": "encoder.layers.{}.self_attention",
    "decoder": "decoder.layers.{}.self_attention",
    "cross": "decoder.layers.{}.cross_attention",
}
"""The names of the three kinds of attention in a `Transformer`."""
OF_TODAY = "layers.{}.attention"
"""The name of the one kind in a `modern.LanguageModel`."""

Positions = int | Sequence[int] | None
Attention = MultiHeadAttention | GroupedQueryAttention
Entries = Callable[[int, int], Tensor]  # q_len and k_len -> a mask [q_len, k_len]


@contextmanager
def cut(
    model: nn.Module,
    *,
    query: Positions = None,
    key: Positions = None,
    mask: Tensor | None = None,
    layer: Positions = None,
    head: Positions = None,
    attention: str | None = None,
) -> Iterator[None]:
    """Forbid position `query` to read position `key` inside the `with` block: an entry of the mask becomes False.

    That entry's score does not enter the softmax, so what is left of the row still sums to one. A row that may read
    nothing any more gathers zeros.

    Args:
        model: a `Transformer`, or another module with an encoder and a decoder named as there; or a
            `modern.LanguageModel`.
        query, key: positions from 0, one or several; None means all of them, if the other one is given.
        mask: instead of query and key, all entries at once: boolean, [q_len, k_len], True = may attend.
        layer, head: from 0, one or several; None means all of them.
        attention: "encoder" and "decoder" for their self-attention, "cross" for the decoder's reading of the memory.
            None is the encoder's, or a language model's only one.
            While a translation or a text grows, positions count as soon as they are there.

    Raises:
        TypeError, ValueError: nothing is named; the model has no such attention, layer or head; a position lies
            outside of the (padded) sentences; rows of the decoder are named while it decodes with a cache, where
            each call has a single row; the model is compiled.
    """
    if attention is not None:
        check_choice("attention", attention, list(ATTENTIONS))
    layers = _attentions(model, attention, checked_positions("layer", layer))
    heads = checked_positions("head", head)
    if (query, key, mask) == (None, None, None):
        raise ValueError("query, key or mask must be given, got none of them")
    if mask is not None and (query, key) != (None, None):
        raise ValueError("mask must come without query and key, got both")
    of_today = isinstance(layers[0], GroupedQueryAttention)
    grows = of_today or attention not in (None, "encoder")
    entries = _given(mask, grows) if mask is not None else _entries(query, key, grows)

    def may(module: Attention, q_len: int, k_len: int) -> Tensor:
        allowed = entries(q_len, k_len)
        if heads is None:
            return allowed
        chosen = torch.zeros(module.n_heads, 1, 1, dtype=torch.bool)
        chosen[heads] = True
        return allowed | ~chosen  # [n_heads, q_len, k_len]

    with ExitStack() as stack:
        for module in layers:
            _check_indices("head", heads, module.n_heads)
            rows_known = of_today or not grows or (query is None and mask is None)
            stack.enter_context(masked(module, may, rows_known=rows_known))
        yield


def _entries(query: Positions, key: Positions, grows: bool) -> Entries:
    """Return a function that makes the mask in which these rows may not read these columns."""
    rows, columns = checked_positions("query", query), checked_positions("key", key)

    def made(q_len: int, k_len: int) -> Tensor:
        allowed = torch.ones(q_len, k_len, dtype=torch.bool)
        allowed[chosen_rows("query", rows, q_len, grows)[:, None], chosen_rows("key", columns, k_len, grows)] = False
        return allowed

    return made


def _given(mask: Tensor, grows: bool) -> Entries:
    """Return a function that gives this mask to calls of its size, or its first rows and columns to smaller ones."""
    check_mask("mask", mask)
    if mask.dim() != 2:
        raise ValueError(f"mask must have shape [q_len, k_len], got {tuple(mask.shape)}")

    def same(q_len: int, k_len: int) -> Tensor:
        part = mask[:q_len, :k_len] if grows else mask
        if part.shape != (q_len, k_len):
            raise ValueError(f"mask must have shape [q_len, k_len] = [{q_len}, {k_len}], got {tuple(mask.shape)}")
        return part

    return same


@contextmanager
def masked(
    attention: Attention,
    may: Tensor | Callable[[Any, int, int], Tensor],
    *,
    rows_known: bool = True,
) -> Iterator[None]:
    """Forbid the entries where `may` is False, besides those that are forbidden already, inside the `with` block.

    Args:
        attention: one attention of a model.
        may: boolean, broadcastable to [batch, n_heads, q_len, k_len]; or a function that makes it from the
            attention, q_len and k_len. For a `GroupedQueryAttention`, which knows where its tokens stand, q_len is
            k_len, the length of all tokens so far, and of the rows the last are taken, which are those of the call.
        rows_known: False where the rows of `may` are positions of a sentence, which a call with a cache does not know.
    """
    wanted = may if callable(may) else check_mask("may", may)
    signature = inspect.signature(attention.forward)
    allowed_in = _in_text if isinstance(attention, GroupedQueryAttention) else _in_call

    def narrow(module: Attention, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], Any]:
        call = signature.bind(*args, **kwargs)
        given = call.arguments
        if given.get("cache") is not None and not rows_known:
            raise ValueError("query and mask must be None while decoding with a cache: a call has only the newest row")
        allowed, mask = allowed_in(module, given, wanted), given.get("mask")
        given["mask"] = allowed if mask is None else mask & allowed
        return call.args, call.kwargs

    hook = attention.register_forward_pre_hook(narrow, with_kwargs=True)
    try:
        yield
    finally:
        hook.remove()


def _in_call(module: Any, given: Mapping[str, Any], wanted: Tensor | Callable[[Any, int, int], Tensor]) -> Tensor:
    """Return what a call of `MultiHeadAttention` may attend to: a row for each of its queries."""
    mask, query = given.get("mask"), given["query"]
    k_len = given["key"].shape[1] if mask is None else mask.shape[-1]  # with a cache, earlier keys too
    return (wanted(module, query.shape[1], k_len) if callable(wanted) else wanted).to(query.device)


def _in_text(module: Any, given: Mapping[str, Any], wanted: Tensor | Callable[[Any, int, int], Tensor]) -> Tensor:
    """Return what a call of `GroupedQueryAttention` may attend to: of the rows of the whole text, its own, the last."""
    x, cache = given["x"], given.get("cache")
    length = x.shape[1] + (0 if cache is None else cache.length)
    allowed = wanted(module, length, length) if callable(wanted) else wanted
    own = allowed if allowed.dim() < 2 or allowed.shape[-2] == 1 else allowed[..., -x.shape[1] :, :]
    return own.to(x.device)


@contextmanager
def patch(
    model: nn.Module, name: str, value: Tensor | Callable[[Tensor], Tensor], *, positions: Positions = None
) -> Iterator[None]:
    """Replace the output of one submodule inside the `with` block (activation patching).

    Args:
        model: any module.
        name: the submodule, as in `model.named_modules()`, such as "encoder" or "decoder.layers.0.feed_forward".
        value: what it returns instead, of the shape of its output, such as [batch, seq_len, d_model]; or a function
            that makes it from the output.
        positions: replace these positions (axis 1, from 0) and keep the others; None replaces all.

    Raises:
        TypeError, ValueError: there is no such submodule, or it returns no tensor; shapes or dtypes do not fit; a
            position lies outside of the (padded) sentences, or is named while decoding with a cache; the model is
            compiled.
    """
    modules = _modules(model)
    if not name or isinstance(modules.get(name, nn.ModuleList()), (nn.ModuleList, nn.ModuleDict)):
        whole = type(model).__name__
        raise ValueError(f"name must be a submodule of {whole} that is called, got {name!r}; see model.named_modules()")
    around = _around(name)
    check_not_compiled({part: modules[part] for part in around[:-1]})
    chosen = checked_positions("positions", positions)
    if not callable(value):
        check_tensor("value", value)
    cached: dict[str, bool] = {}
    hooks = [noting_cache(modules[part], cached, part) for part in around]
    hooks.append(modules[name].register_forward_hook(_replacing(name, value, chosen, cached)))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def noting_cache(module: nn.Module, cached: dict[str, bool], part: str = "") -> RemovableHandle:
    """Hook a module so that it notes, under a name, whether it is called with a cache."""
    kinds = (Cache, LayerCache, DecoderCache, KeyValueCache)

    def note(module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        cached[part] = kwargs.get("cache") is not None or any(isinstance(each, kinds) for each in args)

    return module.register_forward_pre_hook(note, with_kwargs=True)


def _replacing(
    name: str, value: Tensor | Callable[[Tensor], Tensor], positions: list[int] | None, cached: Mapping[str, bool]
) -> Callable[..., Tensor]:
    """Return a hook that puts `value` in place of a module's output, at these positions or at all."""

    def replace(module: nn.Module, args: object, output: Tensor) -> Tensor:
        if not isinstance(output, Tensor):
            raise TypeError(f"name must be a module that returns a tensor, and {name} returns {type(output).__name__}")
        if positions is not None and any(cached.values()):
            raise ValueError("positions must be None while decoding with a cache: a call has only the newest position")
        new = _fitting(value(output.clone()) if callable(value) else value, output, name)
        if positions is None:
            return new
        patched, rows = output.clone(), chosen_rows("positions", positions, output.shape[1])
        patched[:, rows] = new[:, rows]
        return patched

    return replace


def _fitting(value: object, output: Tensor, name: str) -> Tensor:
    """Return the value if it can replace this output."""
    new = check_tensor("value", value)
    for what, wanted, got in (("shape", tuple(output.shape), tuple(new.shape)), ("dtype", output.dtype, new.dtype)):
        if got != wanted:
            raise ValueError(f"value must have the {what} of {name}'s output, {wanted}, got {got}")
    return new


def _modules(model: object) -> Mapping[str, nn.Module]:
    if not isinstance(model, nn.Module):
        hint = "; take its .model" if isinstance(getattr(model, "model", None), nn.Module) else ""
        raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}{hint}")
    check_not_compiled({"": model})
    return dict(model.named_modules())


def _around(name: str) -> list[str]:
    """Return the names of the submodules around a submodule, from outside, and its own."""
    pieces = name.split(".")
    return [".".join(pieces[:count]) for count in range(1, len(pieces) + 1)]


def check_not_compiled(parts: Mapping[str, nn.Module]) -> None:
    """Raise if one of these modules, by name, is compiled: its graph would pass by a hook that a part of it gets now.

    Raises:
        ValueError: one is; the message says which.
    """
    for name, part in parts.items():
        if "_orig_mod" in part._modules:
            raise ValueError(f"model must not be compiled, but {name or 'it'} is: take its ._orig_mod, which is not")
        if vars(part).get("_compiled_call_impl") is not None:
            raise ValueError(f"model must not be compiled, but {name or 'it'} is: take a copy.deepcopy, which is not")


def _attentions(model: nn.Module, attention: str | None, chosen: list[int] | None) -> list[Attention]:
    """Return this kind of attention in these layers, or in all."""
    modules = _modules(model)
    of_today = attention is None and isinstance(modules.get(OF_TODAY.format(0)), GroupedQueryAttention)
    name = OF_TODAY if of_today else ATTENTIONS[attention or "encoder"]
    attentions: list[Attention] = []
    while isinstance(module := modules.get(name.format(len(attentions))), (MultiHeadAttention, GroupedQueryAttention)):
        attentions.append(module)
    if not attentions:
        raise ValueError(f"model must have a module {name.format(0)}, and {type(model).__name__} has none")
    _check_indices("layer", chosen, len(attentions))
    numbers = list(range(len(attentions))) if chosen is None else chosen
    for number in numbers:
        check_not_compiled({part: modules[part] for part in _around(name.format(number))[:-1]})
    return [attentions[number] for number in numbers]


def _check_indices(name: str, indices: list[int] | None, count: int) -> None:
    if indices is not None and max(indices) >= count:
        raise ValueError(f"{name} must be less than {count}, got {max(indices)}")


def checked_positions(name: str, value: object) -> list[int] | None:
    """Return positions (or layers, or heads) as a list of integers, which may come as tensors or NumPy's, too."""
    if value is None:
        return None
    values = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    if not values:
        raise ValueError(f"{name} must hold at least one position, got none")
    numbers = [
        operator.index(each) if not isinstance(each, bool) and hasattr(each, "__index__") else each for each in values
    ]
    return [check_int(name, number, minimum=0) for number in numbers]


def chosen_rows(name: str, positions: list[int] | None, length: int, grows: bool = False) -> Tensor:
    """Return the positions as indices, all of them for None; where a sentence grows, those that are there already."""
    if positions is None:
        return torch.arange(length)
    if max(positions) >= length and not grows:
        raise ValueError(f"{name} must be less than {length}, the number of positions, got {max(positions)}")
    return torch.tensor([position for position in positions if position < length], dtype=torch.long)
