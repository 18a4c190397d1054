"""Look into a translator by changing it: silence heads, cut entries, hide or replace rows (notebook 15)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Protocol

import torch
from torch import Tensor

from ...decoding.translator import Translator
from ...model.decoder import Decoder
from ...model.encoder import Encoder
from ...model.interventions import masked
from ...model.multihead import MultiHeadAttention
from ...model.recording import record_attention
from ...model.transformer import Transformer
from .questions import Questions, margins, share


class Batch(Protocol):
    """Sentences: `src` [n, src_len] in ids, and their number n."""

    src: Tensor

    def __len__(self) -> int: ...


@contextmanager
def silenced(attention: MultiHeadAttention, head: int) -> Iterator[None]:
    """Multiply the output of one head (from 0) by zero inside the `with` block."""
    kept = torch.ones(attention.n_heads * attention.d_v)
    kept[head * attention.d_v : (head + 1) * attention.d_v] = 0.0
    hook = attention.w_o.register_forward_pre_hook(lambda module, args: (args[0] * kept,))
    try:
        yield
    finally:
        hook.remove()


@contextmanager
def evened(attention: MultiHeadAttention, head: int) -> Iterator[None]:
    """Give each query of one head (from 0) the same weight on every key it may read, inside the `with` block."""
    columns = slice(head * attention.d_v, (head + 1) * attention.d_v)
    found = {}

    def average(module: MultiHeadAttention, args: tuple) -> None:
        may = args[3][:, 0].float()  # [batch, 1 or q_len, k_len]
        found["mean"] = may / may.sum(dim=-1, keepdim=True) @ module.w_v(args[2])[..., columns]

    def replace(module: torch.nn.Linear, args: tuple) -> tuple[Tensor]:
        joined = args[0].clone()  # [batch, q_len, n_heads * d_v]
        joined[..., columns] = found["mean"]
        return (joined,)

    hooks = attention.register_forward_pre_hook(average), attention.w_o.register_forward_pre_hook(replace)
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def all_but(asked: Batch, rows: Tensor, columns: Tensor) -> Tensor:
    """Return the mask [n, 1, src_len, src_len] that forbids row rows[i] to read columns[i] in sentence i."""
    n, length = asked.src.shape
    may = torch.ones(n, 1, length, length, dtype=torch.bool)
    may[torch.arange(n), 0, rows, columns] = False
    return may


def attention_layers(model: Transformer) -> dict[str, MultiHeadAttention]:
    """Return {name: layer} of every attention in the model."""
    return {name: module for name, module in model.named_modules() if isinstance(module, MultiHeadAttention)}


@torch.no_grad()
def weights_between(model: Transformer, asked: Questions, rows: Tensor, columns: Tensor) -> dict[str, Tensor]:
    """Return {encoder layer: weights [n, n_heads] that row rows[i] gives to columns[i] in sentence i}."""
    with record_attention(model) as record:
        model.encode(asked.src)
    here = torch.arange(len(asked))
    return {name: weights[here, :, rows, columns] for name, weights in record.items() if name.startswith("encoder")}


@contextmanager
def masked_in(attentions: Iterable[MultiHeadAttention], may: Tensor) -> Iterator[None]:
    """Apply `masked` to several attentions."""
    with ExitStack() as stack:
        for attention in attentions:
            stack.enter_context(masked(attention, may))
        yield


def chosen(stack: Encoder | Decoder, layers: Sequence[int] | None) -> list[torch.nn.Module]:
    """Return these layers of the stack, or all."""
    return [layer for n, layer in enumerate(stack.layers) if layers is None or n in layers]


def cut_rows(
    model: Transformer, asked: Batch, rows: Tensor, *columns: Tensor, layers: Sequence[int] | None = None
) -> AbstractContextManager[None]:
    """Forbid the encoder's row rows[i] to read the columns[i], in all heads of `layers` (from 0; all by default)."""
    may = torch.stack([all_but(asked, rows, places) for places in columns]).all(dim=0)
    return masked_in([layer.self_attention for layer in chosen(model.encoder, layers)], may)


def only(model: Transformer, asked: Batch, rows: Tensor, columns: Tensor) -> AbstractContextManager[None]:
    """Let every row of the encoder read itself alone, except that rows[i] reads columns[i] as well."""
    may = ~all_but(asked, rows, columns) | torch.eye(asked.src.shape[1], dtype=torch.bool)
    return masked_in([layer.self_attention for layer in model.encoder.layers], may)


def hidden(
    model: Transformer, asked: Questions, *places: Tensor, layers: Sequence[int] | None = None
) -> AbstractContextManager[None]:
    """Forbid the decoder to read the memory at these places, in all heads of `layers` (from 0; all by default)."""
    may = torch.ones(len(asked), 1, 1, asked.src.shape[1], dtype=torch.bool)
    for place in places:
        may[torch.arange(len(asked)), 0, 0, place] = False
    attentions = [layer.cross_attention for layer in chosen(model.decoder, layers)]
    return masked_in(attentions, may[asked.owner])


def unread(model: Transformer, asked: Questions, *places: Tensor) -> AbstractContextManager[None]:
    """Forbid every other row of the encoder to read these places; each of them still reads itself."""
    n, length = asked.src.shape
    may, here = torch.ones(n, 1, length, length, dtype=torch.bool), torch.arange(n)
    for place in places:
        may[here, 0, :, place] = False
    for place in places:
        may[here, 0, place, place] = True
    return masked_in([layer.self_attention for layer in model.encoder.layers], may)


def rows_at(asked: Questions, *places: Tensor) -> Tensor:
    """Return the mask [n, src_len] that is True at these places of each sentence."""
    rows = torch.zeros_like(asked.src, dtype=torch.bool)
    for place in places:
        rows[torch.arange(len(asked)), place] = True
    return rows


@torch.no_grad()
def lent(model: Transformer, asked: Questions, donor: Tensor, rows: Tensor) -> Tensor:
    """Return the margins [n] once the memory rows where `rows` [n, src_len] is True come from `donor`."""
    memory = torch.where(rows[..., None], model.encode(donor), model.encode(asked.src))
    return margins(model, asked, memory)


def flipped(model: Transformer, asked: Questions, donor: Tensor, *places: Tensor) -> float:
    """Return the share of decisions that are wrong once these memory rows come from `donor`; with none, all rows do."""
    rows = rows_at(asked, *places) if places else torch.ones_like(asked.src, dtype=torch.bool)
    return round(1 - share(lent(model, asked, donor, rows)), 3)


@torch.no_grad()
def pronoun_rows(translator: Translator, asked: Questions) -> dict[str, Tensor]:
    """Return {cross-attention: weights [n, n_heads, src_len]} of the row that writes er, sie or es."""
    tgt, words = asked.tgt[asked.right], translator.tgt_tokenizer.words
    rows = []
    for ids, pair in zip(tgt.tolist(), asked.pairs, strict=True):
        rows.append([words[i].lower() for i in ids].index(pair.expected.lower()) - 1)
    with record_attention(translator.model) as record:
        translator.model(asked.src, tgt[:, :-1])
    return {name: grid[torch.arange(len(asked)), :, rows] for name, grid in record.items() if "cross" in name}
