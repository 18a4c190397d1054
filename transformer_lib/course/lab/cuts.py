"""Look into a translator by changing it: silence heads, cut entries, hide or replace rows (notebook 15)."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Protocol

import torch
from torch import Tensor, nn

from ...decoding.translator import Translator
from ...model.decoder import Decoder
from ...model.encoder import Encoder
from ...model.interventions import masked, patch
from ...model.multihead import MultiHeadAttention
from ...model.recording import record_attention
from ...model.transformer import Transformer
from .questions import Questions, margins, nouns

Head = tuple[str, int]  # name of the attention in the model, number of the head from 0


class Batch(Protocol):
    """Sentences: `src` [n, src_len] in ids, and their number n."""

    src: Tensor

    def __len__(self) -> int: ...


def replace_heads(x: Tensor, other: Tensor, n_heads: int, heads: Iterable[int]) -> Tensor:
    """Return a copy of x [batch, seq_len, n_heads · d] in which these heads (from 0) have their features from other."""
    parts, chosen = x.unflatten(-1, (n_heads, -1)).clone(), sorted(heads)
    parts[..., chosen, :] = other.unflatten(-1, (n_heads, -1))[..., chosen, :]
    return parts.flatten(-2)


def silenced(model: Transformer, heads: Iterable[Head]) -> AbstractContextManager[None]:
    """Let these heads contribute nothing inside the `with` block: their values are zero."""
    return _projected_to_zero(model, heads, "w_v")


def evened(model: Transformer, heads: Iterable[Head]) -> AbstractContextManager[None]:
    """Let these heads give the same weight to every key that they may read: with queries of zero, all scores are."""
    return _projected_to_zero(model, heads, "w_q")


@contextmanager
def _projected_to_zero(model: Transformer, heads: Iterable[Head], projection: str) -> Iterator[None]:
    def zeroed(x: Tensor, here: list[int]) -> Tensor:
        return replace_heads(x, torch.zeros_like(x), model.config.n_heads, here)

    with ExitStack() as stack:
        for name, here in by_attention(heads).items():
            stack.enter_context(patch(model, f"{name}.{projection}", partial(zeroed, here=here)))
        yield


@torch.no_grad()
def head_outputs(model: Transformer, asked: Questions, src: Tensor) -> dict[str, Tensor]:
    """Return {attention: outputs of its heads side by side} while the translations asked about meet the source src."""
    outputs: dict[str, Tensor] = {}

    def keep(module: nn.Module, inputs: tuple[Tensor], name: str) -> None:
        outputs[name] = inputs[0]

    names = by_attention(heads_of(model))
    hooks = [model.get_submodule(name).w_o.register_forward_pre_hook(partial(keep, name=name)) for name in names]
    margins(model, asked, model.encode(src))
    for hook in hooks:
        hook.remove()
    return outputs


def strangers(asked: Questions, wanted: Sequence[str], seed: int = 0) -> Tensor:
    """Return for each sentence the number of another one, to lend its heads, [n]; its own if there is none.

    That one has the pronoun `wanted`[i] at the same position of its translation, the noun meant on the same side, and
    no noun in common. Which one it is, is drawn with `seed`. All `asked` are "it" sentences.
    """
    (meant, other), draw = nouns(asked), random.Random(seed)
    start = (asked.tgt[asked.right] != asked.tgt[~asked.right]).int().argmax(dim=1).tolist()
    kinds = [
        (pair.expected, place, bool(m < o)) for pair, place, m, o in zip(asked.pairs, start, meant, other, strict=True)
    ]
    named = [{row[m], row[o]} for row, m, o in zip(asked.words, meant, other, strict=True)]
    chosen_ones = []
    for i, (_, place, side) in enumerate(kinds):
        alike = [j for j, kind in enumerate(kinds) if kind == (wanted[i], place, side) and not named[i] & named[j]]
        chosen_ones.append(draw.choice(alike) if alike else i)
    return torch.tensor(chosen_ones)


def from_others(asked: Questions, outputs: Mapping[str, Tensor], others: Tensor) -> dict[str, Tensor]:
    """Return `outputs` of the decoder's heads as they are for the right translation of the sentences `others` [n]."""
    right = asked.right.nonzero()[:, 0]
    return {name: x[right[others]][asked.owner] for name, x in outputs.items() if name.startswith("decoder")}


def by_attention(heads: Iterable[Head]) -> dict[str, list[int]]:
    """Return {attention: numbers of its heads}."""
    numbers: dict[str, list[int]] = {}
    for name, head in heads:
        numbers.setdefault(name, []).append(head)
    return numbers


def all_but(asked: Batch, rows: Tensor, columns: Tensor) -> Tensor:
    """Return the mask [n, 1, src_len, src_len] that forbids row rows[i] to read columns[i] in sentence i."""
    n, length = asked.src.shape
    may = torch.ones(n, 1, length, length, dtype=torch.bool)
    may[torch.arange(n), 0, rows, columns] = False
    return may


def heads_of(model: Transformer) -> list[Head]:
    """Return every head of the model in its order: encoder, then decoder."""
    layers = {name: module for name, module in model.named_modules() if isinstance(module, MultiHeadAttention)}
    return [(name, head) for name, layer in layers.items() for head in range(layer.n_heads)]


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


def chosen(stack: Encoder | Decoder, layers: Sequence[int] | None) -> list[nn.Module]:
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
