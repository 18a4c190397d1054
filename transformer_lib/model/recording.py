"""Reading the attention weights of a model without changing how it is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn

from .attention import masked_softmax, scaled_scores
from .interventions import Attention, Positions, check_not_compiled, checked_positions, chosen_rows
from .modern import GroupedQueryAttention
from .multihead import MultiHeadAttention


class AttentionRecord(dict[str, Tensor]):
    """{layer name: weights [batch, n_heads, q_len, k_len]} of the latest call; `calls` has every call in order."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[str, list[Tensor]] = {}

    def add(self, name: str, weights: Tensor) -> None:
        """Store one call's weights."""
        self[name] = weights
        self.calls.setdefault(name, []).append(weights)


@contextmanager
def record_attention(
    model: nn.Module, *, layer: Positions = None, query: Positions = None
) -> Iterator[AttentionRecord]:
    """Record the attention weights of every call made inside the `with` block.

    A `MultiHeadAttention` that is recorded computes by the explicit formula, whose last bits are its own; of a
    `GroupedQueryAttention` the weights are computed besides, and what it returns stays as it was, bit for bit. All
    weights of one layer are batch · n_heads · q_len · k_len numbers: with 9 heads, 512 tokens and float32 9.4 MB, and
    283 MB in 30 layers; of the last row alone, 18 kB and 0.6 MB.

    Args:
        model: any module that contains `MultiHeadAttention`, or the `GroupedQueryAttention` of a
            `modern.LanguageModel`; names are as in `model.named_modules()`, for example
            "encoder.layers.0.self_attention" or "layers.23.attention".
        layer: from 0, one or several, of every stack in the model; None records all.
        query: the rows to keep, one or several, from 0 in each call; None keeps all.

    Raises:
        TypeError, ValueError: `model` is no module, or has no such attention or layer; a call has no such row; a
            `modern.LanguageModel` is compiled.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    kinds = (MultiHeadAttention, GroupedQueryAttention)
    found = {name: module for name, module in model.named_modules() if isinstance(module, kinds)}
    if not found:
        raise ValueError(f"model must contain a MultiHeadAttention, and {type(model).__name__} has none")
    record, rows = AttentionRecord(), checked_positions("query", query)
    with ExitStack() as stack:
        for name, module in _in_layers(found, checked_positions("layer", layer)).items():
            if isinstance(module, GroupedQueryAttention):
                check_not_compiled(dict(model.named_modules()))  # the weights are computed by a hook
                hook = module.attend.register_forward_hook(_computing(record, name, rows))
                stack.callback(hook.remove)
            else:
                stack.callback(setattr, module, "recorder", module.recorder)
                module.recorder = _keeping(record, name, rows)
        yield record


def _in_layers(found: Mapping[str, Attention], layers: list[int] | None) -> dict[str, Attention]:
    """Return the attentions of these layers, by the number that stands in their names."""
    if layers is None:
        return dict(found)
    numbers = {name: [int(part) for part in name.split(".") if part.isdigit()] for name in found}
    chosen = {name: module for name, module in found.items() if not set(numbers[name]).isdisjoint(layers)}
    missing = sorted(set(layers).difference(*numbers.values()))
    if missing:
        raise ValueError(f"layer must be one that has attention, got {missing[0]}; see model.named_modules()")
    return chosen


def _keeping(record: AttentionRecord, name: str, rows: list[int] | None) -> Callable[[Tensor], None]:
    """Return what takes a layer's weights and keeps these rows: a copy, as a view would hold on to the others."""

    def keep(weights: Tensor) -> None:
        record.add(name, weights if rows is None else weights[:, :, chosen_rows("query", rows, weights.shape[2])])

    return keep


def _computing(record: AttentionRecord, name: str, rows: list[int] | None) -> Callable[..., None]:
    """Return a hook that computes the weights of these rows from what went into the kernel, which keeps none."""

    def compute(module: nn.Module, args: tuple[Tensor, Tensor, Tensor, Tensor], output: Tensor) -> None:
        q, k, _, mask = args
        if rows is not None:
            chosen = chosen_rows("query", rows, q.shape[2])
            q, mask = q[:, :, chosen], mask[..., chosen, :]
        with torch.no_grad():
            record.add(name, masked_softmax(scaled_scores(q, k), mask).to(q.dtype))

    return compute
