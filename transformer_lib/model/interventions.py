"""Change what a model does while it runs, without changing the model: forbid a reading, replace a result.

Each function is a context manager. Inside the `with` block the model behaves otherwise; afterwards it is as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from .._validate import check_choice, check_int, check_mask, check_tensor
from .multihead import MultiHeadAttention

ATTENTIONS = {
    "encoder": "encoder.layers.{}.self_attention",
    "decoder": "decoder.layers.{}.self_attention",
    "cross": "decoder.layers.{}.cross_attention",
}
"""Where the three kinds of attention stand in a `Transformer`."""

Positions = int | Sequence[int] | None


@contextmanager
def cut(
    model: nn.Module,
    *,
    query: Positions = None,
    key: Positions = None,
    mask: Tensor | None = None,
    layer: int | None = None,
    head: int | None = None,
    attention: str = "encoder",
) -> Iterator[None]:
    """Forbid position `query` to read position `key` inside the `with` block: an entry of the mask becomes False.

    Args:
        model: a `Transformer`, or another module with an encoder and a decoder named as there.
        query, key: positions from 0, one or several; None stands for all of them.
        mask: instead of query and key, all entries at once: boolean, [q_len, k_len], True = may attend.
        layer, head: from 0; None stands for all of them.
        attention: "encoder" and "decoder" for their self-attention, "cross" for the decoder's reading of the memory.

    Raises:
        TypeError, ValueError: the model has no such attention, layer or head; a position lies outside a sentence;
            rows of the decoder are named while it decodes with a cache, where each call has a single row.
    """
    check_choice("attention", attention, ATTENTIONS)
    layers = _attentions(model, attention, layer)
    if mask is not None and (query, key) != (None, None):
        raise ValueError("mask must come without query and key, got both")
    entries = _entries(_positions("query", query), _positions("key", key)) if mask is None else _given(mask)

    def may(module: MultiHeadAttention, q_len: int, k_len: int) -> Tensor:
        allowed = entries(q_len, k_len).expand(module.n_heads, q_len, k_len).clone()
        if head is not None:
            allowed[torch.arange(module.n_heads) != head] = True
        return allowed

    with ExitStack() as stack:
        for module in layers:
            _check_index("head", head, module.n_heads)
            rows_known = attention == "encoder" or (query is None and mask is None)
            stack.enter_context(masked(module, may, rows_known=rows_known))
        yield


def _entries(rows: list[int] | None, columns: list[int] | None) -> Callable[[int, int], Tensor]:
    """Return a function that makes the mask [q_len, k_len] in which these rows may not read these columns."""

    def mask(q_len: int, k_len: int) -> Tensor:
        allowed = torch.ones(q_len, k_len, dtype=torch.bool)
        allowed[_chosen("query", rows, q_len)[:, None], _chosen("key", columns, k_len)] = False
        return allowed

    return mask


def _given(mask: Tensor) -> Callable[[int, int], Tensor]:
    """Return a function that gives this mask to calls of its size."""
    check_mask("mask", mask)

    def same(q_len: int, k_len: int) -> Tensor:
        return check_mask("mask", mask, (q_len, k_len))

    return same


@contextmanager
def masked(
    attention: MultiHeadAttention,
    may: Tensor | Callable[[MultiHeadAttention, int, int], Tensor],
    *,
    rows_known: bool = True,
) -> Iterator[None]:
    """Forbid the entries where `may` is False, besides those that are forbidden already, inside the `with` block.

    Args:
        attention: one attention of a model.
        may: boolean, broadcastable to [batch, n_heads, q_len, k_len]; or a function that makes it from the
            attention, q_len and k_len.
        rows_known: False where the rows of `may` are positions of a sentence, which a call with a cache does not know.
    """
    wanted = may if callable(may) else check_mask("may", may)

    def narrow(
        module: MultiHeadAttention, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        query, key, value, mask = (*args, None)[:4]
        cache = kwargs.get("cache")
        if cache is not None and not rows_known:
            raise ValueError("query and mask must be None while decoding with a cache: a call has only the newest row")
        k_len = key.shape[1] if mask is None else mask.shape[-1]  # with a cache, the keys of earlier calls too
        allowed = wanted(module, query.shape[1], k_len) if callable(wanted) else wanted
        allowed = allowed.to(query.device)
        return (query, key, value, allowed if mask is None else mask & allowed), kwargs

    hook = attention.register_forward_pre_hook(narrow, with_kwargs=True)
    try:
        yield
    finally:
        hook.remove()


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
        TypeError, ValueError: there is no such submodule; shapes do not fit; a position lies outside the sentence.
    """
    modules = _modules(model)
    if name not in modules or not name:
        raise ValueError(f"name must be a submodule of {type(model).__name__}, got {name!r}; see model.named_modules()")
    chosen = _positions("positions", positions)
    if not callable(value):
        check_tensor("value", value)

    def replace(module: nn.Module, args: object, output: Tensor) -> Tensor:
        new = value(output) if callable(value) else value
        check_tensor("value", new)
        if new.shape != output.shape:
            shapes = f"{tuple(output.shape)}, got {tuple(new.shape)}"
            raise ValueError(f"value must have the shape of {name}'s output, {shapes}")
        if chosen is None:
            return new
        patched = output.clone()
        rows = _chosen("positions", chosen, output.shape[1])
        patched[:, rows] = new[:, rows]
        return patched

    hook = modules[name].register_forward_hook(replace)
    try:
        yield
    finally:
        hook.remove()


def _modules(model: object) -> Mapping[str, nn.Module]:
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    return dict(model.named_modules())


def _attentions(model: nn.Module, attention: str, layer: int | None) -> list[MultiHeadAttention]:
    """Return this kind of attention in one layer, or in all."""
    modules, name = _modules(model), ATTENTIONS[attention]
    found: list[MultiHeadAttention] = []
    while isinstance(module := modules.get(name.format(len(found))), MultiHeadAttention):
        found.append(module)
    if not found:
        raise ValueError(f"model must have a module {name.format(0)}, and {type(model).__name__} has none")
    _check_index("layer", layer, len(found))
    return found if layer is None else [found[layer]]


def _check_index(name: str, index: int | None, count: int) -> None:
    if index is not None and check_int(name, index, minimum=0) >= count:
        raise ValueError(f"{name} must be less than {count}, got {index}")


def _positions(name: str, value: Positions) -> list[int] | None:
    if value is None:
        return None
    values = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    return [check_int(name, each, minimum=0) for each in values]


def _chosen(name: str, positions: list[int] | None, length: int) -> Tensor:
    """Return the positions as indices, all of them for None."""
    if positions is None:
        return torch.arange(length)
    if positions and max(positions) >= length:
        raise ValueError(f"{name} must be less than {length}, the number of positions, got {max(positions)}")
    return torch.tensor(positions, dtype=torch.long)
