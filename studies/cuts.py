"""Look into a translator by changing it: silence heads, cut entries, hide or replace rows (notebook 15)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn

from transformer_lib.course.lab.cuts import Head, by_attention, lent, replace_heads, rows_at
from transformer_lib.course.lab.questions import Questions, share
from transformer_lib.model.transformer import Transformer


@contextmanager
def replaced(model: Transformer, heads: Iterable[Head], outputs: Mapping[str, Tensor]) -> Iterator[None]:
    """Let these heads hand on, inside the `with` block, what `outputs` of `head_outputs` has for them."""

    def swap(module: nn.Module, inputs: tuple[Tensor], other: Tensor, here: list[int]) -> tuple[Tensor]:
        return (replace_heads(inputs[0], other, model.config.n_heads, here),)

    hooks = [
        model.get_submodule(name).w_o.register_forward_pre_hook(partial(swap, other=outputs[name], here=here))
        for name, here in by_attention(heads).items()
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def flipped(model: Transformer, asked: Questions, donor: Tensor, *places: Tensor) -> float:
    """Return the share of decisions that are wrong once these memory rows come from `donor`; with none, all rows do."""
    rows = rows_at(asked, *places) if places else torch.ones_like(asked.src, dtype=torch.bool)
    return round(1 - share(lent(model, asked, donor, rows)), 3)
