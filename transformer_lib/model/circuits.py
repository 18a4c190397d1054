"""Taking a model apart: its residual stream as a sum, single heads replaced, one path changed (Elhage et al. 2021).

A stack in which every sub-layer adds to its input, as pre-norm stacks do, is a sum: the embedding plus what each head
and each feed-forward network adds. The functions here name these terms, follow them to the logits and exchange them
between two runs. They take an `AttentionOnly` model, a `LanguageModel` with `norm_first=True` or a
`modern.LanguageModel`, which must not be compiled; none changes a model.

Of a large model, ask for what you need: 30 layers of 9 heads are 301 pieces, 277 MB of them for 400 tokens of width
576. `trace(…, keep="streams", positions=…)` keeps what is named, and `patch_streams` and `patch_heads` go on from the
middle of a run instead of starting one for each change.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from .._validate import broadcasts, check_choice, check_flag, check_ids, check_int, check_tensor, check_width
from . import modern
from .evaluating import evaluating
from .interventions import Attention, Positions, check_not_compiled, checked_positions, chosen_rows, noting_cache
from .layers import LayerNorm
from .masks import causal_mask
from .multihead import MultiHeadAttention
from .one_stack import LanguageModel
from .positional import LearnedPosition, make_position, make_score_position, score_position
from .recording import record_attention

INTO = {"queries": "w_q", "keys": "w_k", "values": "w_v"}
"""What a head reads its input for, and the projection that does it."""
KEPT = ("pieces", "streams", "weights", "heads")
"""What `trace` can keep besides the logits."""
TOKENS_AT_ONCE = 4096
"""How many tokens, all changed copies of a text together, `patch_streams` and `patch_heads` run at once."""

Number = TypeVar("Number", float, Tensor)


class AttentionOnly(nn.Module):
    """A causal language model without feed-forward networks: x ← x + MultiHead(x), n_layers times, then the logits.

    Without norms, which is the default, all that bends is the softmax. The head has a table of its own, `unembedding`.

    Args:
        vocab_size, n_layers, d_model, n_heads: sizes. position: one of POSITIONS. max_len: longest sequence.
        norm_first: a LayerNorm in front of each layer, and one after the last.
    """

    def __init__(
        self,
        vocab_size: int,
        n_layers: int,
        d_model: int,
        n_heads: int,
        *,
        position: str = "learned",
        max_len: int = 64,
        norm_first: bool = False,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(check_int("vocab_size", vocab_size), check_int("d_model", d_model))
        self.position = make_position(position, check_int("max_len", max_len), d_model)
        if isinstance(self.position, LearnedPosition):
            nn.init.normal_(self.position.table)  # as large as the tokens' vectors, to be seen from the first step
        self.layers = nn.ModuleList(
            MultiHeadAttention(d_model, n_heads, position=make_score_position(score_position(position), n_heads))
            for _ in range(check_int("n_layers", n_layers))
        )
        wants_norm = check_flag("norm_first", norm_first)
        self.norms = nn.ModuleList(LayerNorm(d_model) if wants_norm else nn.Identity() for _ in self.layers)
        self.norm = LayerNorm(d_model) if wants_norm else nn.Identity()
        self.unembedding = nn.Linear(d_model, vocab_size, bias=False)
        self.max_len = max_len

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return logits [batch, seq_len, vocab_size].

        Args:
            ids: [batch, seq_len]. mask: boolean, True = may attend; causal by default.
        """
        ids = check_ids("ids", ids, self.embedding.num_embeddings, max_len=self.max_len)
        mask = causal_mask(ids.shape[1], device=ids.device) if mask is None else mask
        x = self.position(self.embedding(ids))
        for norm, attention in zip(self.norms, self.layers, strict=True):
            y = norm(x)
            x = x + attention(y, y, y, mask)
        logits: Tensor = self.unembedding(self.norm(x))
        return logits


Model = AttentionOnly | LanguageModel | modern.LanguageModel
Heads = Iterable[tuple[int, int]]  # (layer, head) each


def induction_score(weights: Tensor, period: int | Tensor) -> Tensor:
    """Return how much each head attends to the position after the last occurrence of the present token, [n_heads].

    In a sequence that repeats with a period p, this is the mean of weights[t, t − p + 1] over all t ≥ p.

    Args:
        weights: [batch, n_heads, seq_len, seq_len]. period: one for all sequences, or one each, [batch].
    """
    length = _square("weights", weights)
    periods = torch.as_tensor(period, device=weights.device)
    if periods.dim() > 1 or (periods.dim() == 1 and len(periods) != len(weights)):
        raise ValueError(f"period must be an int or have shape [batch] = [{len(weights)}], got {tuple(periods.shape)}")
    if int(periods.min()) < 1 or int(periods.max()) >= length:
        raise ValueError(f"period must lie in [1, {length}), the length of the sequences, got {period}")
    rows = torch.arange(length, device=weights.device)
    keys = rows - periods.expand(len(weights))[:, None] + 1  # [batch, seq_len]
    index = keys.clamp(0, length - 1)[:, None, :, None].expand(*weights.shape[:3], 1)
    read = weights.gather(3, index)[..., 0]  # [batch, n_heads, seq_len]
    counts = keys >= 1  # rows t ≥ p
    return (read * counts[:, None]).sum(dim=(0, 2)) / counts.sum()


def previous_token_score(weights: Tensor) -> Tensor:
    """Return how much each head attends to the position before its own: the mean of weights[t, t − 1], [n_heads].

    Args:
        weights: [batch, n_heads, seq_len, seq_len], at least two tokens long.
    """
    if _square("weights", weights) < 2:
        raise ValueError(f"weights must be of at least 2 tokens, got shape {tuple(weights.shape)}")
    return weights.diagonal(-1, 2, 3).mean(dim=(0, 2))


def ranked(scores: Tensor) -> list[tuple[int, int]]:
    """Return the heads as (layer, head), the one with the highest of the scores [n_layers, n_heads] first."""
    width = check_tensor("scores", scores, rank=2).shape[1]
    return [divmod(index, width) for index in scores.flatten().argsort(descending=True).tolist()]


def _square(name: str, weights: Tensor) -> int:
    """Return seq_len of weights [batch, n_heads, seq_len, seq_len]."""
    shape = tuple(check_tensor(name, weights, rank=4).shape)
    if shape[2] != shape[3]:
        raise ValueError(f"{name} must have shape [batch, n_heads, seq_len, seq_len], got {shape}")
    return shape[3]


@dataclass(frozen=True)
class Trace:
    """One run of a model, taken apart. What was not kept is empty; positions that were not named are left out.

    Attributes:
        logits: [batch, seq_len, vocab_size].
        pieces: {name: [batch, seq_len, d_model]}, the terms of the residual stream, in the order in which they are
            added: "token", "position" (where positions are added), then for each layer "layer.head" such as "0.0",
            and "bias 0" and "feed-forward 0" where there are such.
        streams: the residual stream after the embedding and after each layer, n_layers + 1 of
            [batch, seq_len, d_model].
        weights: of each layer, [batch, n_heads, seq_len, seq_len]; with positions, only these rows.
        heads: of each layer, what its heads return before W_O, [batch, n_heads, seq_len, d_v].
    """

    logits: Tensor
    pieces: dict[str, Tensor] = field(default_factory=dict)
    streams: list[Tensor] = field(default_factory=list)
    weights: list[Tensor] = field(default_factory=list)
    heads: list[Tensor] = field(default_factory=list)


@dataclass(frozen=True)
class _Layer:
    """One layer of any kind of model: its attention, the norm in front of it, and its feed-forward network."""

    attention: Attention
    norm: nn.Module
    feed_forward: nn.Module | None = None

    @property
    def n_heads(self) -> int:
        return self.attention.n_heads

    def split_heads(self, joined: Tensor) -> Tensor:
        """[batch, seq_len, n_heads · d_v] -> [batch, n_heads, seq_len, d_v]."""
        return joined.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    def rows(self, head: int, projection: str) -> slice:
        """Return which outputs of a projection (or inputs, of W_O) are this head's; a group has its keys in common."""
        count = self.n_heads
        if isinstance(self.attention, modern.GroupedQueryAttention) and projection in ("w_k", "w_v"):
            count = self.attention.n_kv_heads
        linear: nn.Linear = getattr(self.attention, projection)
        width = (linear.in_features if projection == "w_o" else linear.out_features) // count
        own = head // (self.n_heads // count)
        return slice(own * width, (own + 1) * width)


def _layers(model: Model) -> list[_Layer]:
    """Return the layers of a model whose sub-layers add to their input, and whose parts are called one by one."""
    if isinstance(model, (AttentionOnly, LanguageModel, modern.LanguageModel)):
        check_not_compiled(dict(model.named_modules()))  # all that is done here is done by hooks
    if isinstance(model, AttentionOnly):
        pairs = zip(model.layers, model.norms, strict=True)
        return [_Layer(cast(MultiHeadAttention, attention), norm) for attention, norm in pairs]
    if isinstance(model, modern.LanguageModel):
        blocks = cast("Iterable[modern.Block]", model.layers)
        return [_Layer(block.attention, block.attention_norm, block.feed_forward) for block in blocks]
    if not isinstance(model, LanguageModel):
        raise TypeError(f"model must be an AttentionOnly or a LanguageModel, got {type(model).__name__}")
    layers = [cast(Any, layer) for layer in model.stack.layers]
    if not all(layer.self_attention_residual.norm_first for layer in layers):
        raise ValueError("model must have norm_first=True: a post-norm stack is no sum, got norm_first=False")
    return [_Layer(layer.self_attention, layer.self_attention_residual.norm, layer.feed_forward) for layer in layers]


def _ending(model: Model) -> tuple[nn.Module, Tensor]:
    """Return the final norm and the table of the head, [vocab_size, d_model]."""
    if isinstance(model, AttentionOnly):
        return model.norm, model.unembedding.weight
    if isinstance(model, modern.LanguageModel):
        return model.norm, model.head.weight
    return model.stack.norm, model.embedding.weight


def _begun(model: Model, ids: Tensor) -> Tensor:
    """Return the residual stream that the layers begin with, [batch, seq_len, d_model]."""
    if isinstance(model, modern.LanguageModel):
        return model.embed(ids)
    ids = check_ids("ids", ids, model.embedding.num_embeddings, max_len=model.max_len)
    stream: Tensor = model.position(model.embedding(ids) * _scale(model))
    return stream


def _scale(model: AttentionOnly | LanguageModel) -> float:
    return 1.0 if isinstance(model, AttentionOnly) else model.scale


def _said(model: Model, stream: Tensor) -> Tensor:
    """Return what the final norm and the head say of a stream: [..., d_model] -> [..., vocab_size]."""
    norm, table = _ending(model)
    logits: Tensor = model.logits(stream) if isinstance(model, modern.LanguageModel) else norm(stream) @ table.T
    return logits


def _continued(model: Model, stream: Tensor, layer: int, cache: modern.Cache | None = None) -> Tensor:
    """Return the last residual stream of a run that goes on from the one in front of a layer."""
    if isinstance(model, modern.LanguageModel):
        return model.continue_from(stream, layer, cache=cache)
    mask = causal_mask(stream.shape[1], device=stream.device)
    if isinstance(model, LanguageModel):
        for block in list(model.stack.layers)[layer:]:
            stream = block(stream, mask)
        return stream
    for part in _layers(model)[layer:]:
        y = part.norm(stream)
        stream = stream + part.attention(y, y, y, mask)
    return stream


@torch.no_grad()
def trace(model: Model, ids: Tensor, *, keep: str | Collection[str] = KEPT, positions: Positions = None) -> Trace:
    """Run a model on ids [batch, seq_len], without dropout or gradients, and return what happens in between.

    Args:
        keep: one or several of KEPT; the logits are there always.
        positions: one or several, from 0: only these rows are kept, of everything; None keeps all.
    """
    rows = checked_positions("positions", positions)
    wanted = [check_choice("keep", name, KEPT) for name in ([keep] if isinstance(keep, str) else keep)]
    watched = _watched(model, ids, wanted, None if rows is None else chosen_rows("positions", rows, ids.shape[1]))
    named = dict(_terms(model, ids, watched)) if "pieces" in wanted else {}
    heads = watched.heads if "heads" in wanted else []
    return Trace(watched.logits, named, watched.streams, watched.weights, heads)


@dataclass
class _Watched:
    """What hooks saw of one run, at these positions."""

    logits: Tensor
    rows: Tensor | None
    streams: list[Tensor]
    weights: list[Tensor]
    heads: list[Tensor]
    wide: list[Tensor]  # of each layer, what its feed-forward network returns


def _watched(model: Model, ids: Tensor, wanted: Collection[str], rows: Tensor | None) -> _Watched:
    """Run a model and keep what is wanted; for pieces, what they are made from."""
    layers = _layers(model)
    streams, joined, wide = (list[Tensor]() for _ in range(3))
    weights: Mapping[str, Tensor] = {}
    with ExitStack() as stack:
        stack.enter_context(evaluating(model))
        if "weights" in wanted:
            query = None if rows is None else rows.tolist()
            weights = stack.enter_context(record_attention(model, query=query))
        if "streams" in wanted:
            for layer in layers:
                stack.callback(layer.norm.register_forward_pre_hook(_keeping_input(streams, rows)).remove)
        for layer in layers if {"heads", "pieces"} & set(wanted) else []:
            stack.callback(layer.attention.w_o.register_forward_pre_hook(_keeping_input(joined, rows)).remove)
            if layer.feed_forward is not None and "pieces" in wanted:
                stack.callback(layer.feed_forward.register_forward_hook(_keeping_output(wide, rows)).remove)
        last = _at(rows, _continued(model, _begun(model, ids), 0))
        logits = _said(model, last)  # a head of many words is asked for these rows alone
    streams += [last] if "streams" in wanted else []
    heads = [layer.split_heads(each) for layer, each in zip(layers, joined, strict=False)]
    return _Watched(logits, rows, streams, list(weights.values()), heads, wide)


def _at(rows: Tensor | None, x: Tensor) -> Tensor:
    """Return these rows of x [batch, seq_len, …]: a copy, as a view would hold on to the others."""
    return x if rows is None else x[:, rows]


def _keeping_input(kept: list[Tensor], rows: Tensor | None) -> Callable[..., None]:
    return lambda module, args: kept.append(_at(rows, args[0]))


def _keeping_output(kept: list[Tensor], rows: Tensor | None) -> Callable[..., None]:
    return lambda module, args, output: kept.append(_at(rows, output))


def _terms(model: Model, ids: Tensor, watched: _Watched) -> Iterator[tuple[str, Tensor]]:
    """Yield the pieces of a run in the order in which they are added, a layer at a time."""
    yield from ((name, _at(watched.rows, piece)) for name, piece in _embedded(model, ids).items())
    for number, (layer, heads) in enumerate(zip(_layers(model), watched.heads, strict=True)):
        yield from _added(number, layer.attention, heads).items()
        if watched.wide:
            yield f"feed-forward {number}", watched.wide[number]


def _names(model: Model, ids: Tensor) -> list[str]:
    """Return the names of the pieces in their order."""
    names = list(_embedded(model, ids))
    for number, layer in enumerate(_layers(model)):
        names += [f"{number}.{head}" for head in range(layer.n_heads)]
        names += [f"bias {number}"] if layer.attention.w_o.bias is not None else []
        names += [f"feed-forward {number}"] if layer.feed_forward is not None else []
    return names


def _embedded(model: Model, ids: Tensor) -> dict[str, Tensor]:
    """Return the pieces that the stream begins with."""
    if isinstance(model, modern.LanguageModel):
        return {"token": model.embed(ids)}
    token = model.embedding(ids) * _scale(model)
    position = model.position(torch.zeros_like(token))
    return {"token": token, "position": position} if position.any() else {"token": token}


def _added(number: int, attention: Attention, heads: Tensor) -> dict[str, Tensor]:
    """Return what each head adds to the stream: its output [batch, seq_len, d_v] times its own columns of W_O."""
    own = attention.w_o.weight.unflatten(1, (attention.n_heads, -1))  # [d_model, n_heads, d_v]
    pieces_of_layer = {f"{number}.{head}": heads[:, head] @ own[:, head].T for head in range(attention.n_heads)}
    if attention.w_o.bias is not None:
        pieces_of_layer[f"bias {number}"] = attention.w_o.bias.expand_as(pieces_of_layer[f"{number}.0"])
    return pieces_of_layer


@torch.no_grad()
def pieces(
    model: Model, ids: Tensor, *, names: Collection[str] | None = None, positions: Positions = None
) -> dict[str, Tensor]:
    """Return the terms of the last residual stream by name, each [batch, seq_len, d_model]; see `Trace.pieces`.

    Args:
        names: only these. positions: only these rows, as in `trace`.
    """
    rows = checked_positions("positions", positions)
    known = _names(model, ids)
    wanted = known if names is None else [check_choice("names", name, known) for name in names]
    watched = _watched(model, ids, ["pieces"], None if rows is None else chosen_rows("positions", rows, ids.shape[1]))
    return {name: piece for name, piece in _terms(model, ids, watched) if name in wanted}


@torch.no_grad()
def contributions(
    model: Model, ids: Tensor, letters: Tensor | None = None, *, positions: Positions = None
) -> dict[str, Tensor]:
    """Return what each piece of the residual stream contributes to the logits (direct logit attribution).

    The contributions sum to the logits. Where a final norm comes between, it is frozen at what it divides by in this
    run, so that it is linear: a LayerNorm centres each piece by itself and divides it by the standard deviation of the
    whole stream, √(variance + ε), and its β is one more piece, "norm bias"; an RMSNorm divides each piece by the root
    mean square of the whole stream, √(mean(x²) + ε), and centres nothing. Both then multiply by γ. What a piece would
    change by making the stream longer or shorter is not counted.

    Args:
        ids: [batch, seq_len]. letters: [batch, seq_len]: only the logit of this token at each position.
        positions: only these rows, as in `trace`; letters then has one entry for each.

    Returns:
        {name: [batch, seq_len, vocab_size]}, or [batch, seq_len] with letters.
    """
    rows = checked_positions("positions", positions)
    index = None if rows is None else chosen_rows("positions", rows, ids.shape[1])
    table = _ending(model)[1]
    if letters is not None:
        letters = check_ids("letters", letters, len(table))
        shape = (len(ids), ids.shape[1] if rows is None else len(rows))
        if letters.shape != shape:
            of = "the shape of ids" if rows is None else "a column for each position"
            raise ValueError(f"letters must have {of}, {shape}, got {tuple(letters.shape)}")
    watched = _watched(model, ids, ["pieces", "streams"], index)
    normed = _frozen(model, watched.streams[-1], _terms(model, ids, watched))
    if letters is None:
        return {name: x @ table.T for name, x in normed}
    return {name: (x * table[letters]).sum(dim=-1) for name, x in normed}


def _frozen(model: Model, whole: Tensor, named: Iterable[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
    """Yield each piece behind the final norm, which divides by what it finds in the whole stream."""
    norm = _ending(model)[0]
    if isinstance(norm, modern.RMSNorm):
        size = (whole.square().mean(dim=-1, keepdim=True) + norm.eps).sqrt()
        yield from ((name, norm.weight * x / size) for name, x in named)
        return
    if not isinstance(norm, LayerNorm):
        yield from named
        return
    spread = (whole.var(dim=-1, correction=0, keepdim=True) + norm.eps).sqrt()
    yield from ((name, norm.weight * (x - x.mean(dim=-1, keepdim=True)) / spread) for name, x in named)
    if norm.bias is not None:
        yield "norm bias", norm.bias.expand_as(whole)


@torch.no_grad()
def logit_lens(model: Model, ids: Tensor, *, positions: Positions = None) -> Tensor:
    """Return the logits if the stack ended earlier, [n_layers + 1, batch, seq_len, vocab_size] (nostalgebraist 2020).

    Entry i is the final norm and the head on the residual stream after i layers; the last one is the model's logits.

    Args:
        ids: [batch, seq_len]. positions: only these rows, as in `trace`.
    """
    streams = trace(model, ids, keep="streams", positions=positions).streams
    return torch.stack([_said(model, stream) for stream in streams])


def head_matrices(model: Model, layer: int, head: int) -> tuple[Tensor, Tensor]:
    """Return W_QK and W_OV of one head, [d_model, d_model] each: all that its weights say (Elhage et al. 2021).

    For rows x that the head reads, x @ W_QK @ x.T are its scores before the softmax, with the division by √d_k, and
    x @ W_OV is what a token adds to the stream of whoever attends to it.

    Args:
        layer, head: from 0.

    Raises:
        ValueError: there is no such head, its attention has biases, or positions that act on its scores.
    """
    part = _head(model, layer, head)
    attention, keys, values = part.attention, part.rows(head, "w_k"), part.rows(head, "w_v")
    linears = (attention.w_q, attention.w_k, attention.w_v, attention.w_o)
    if attention.position is not None or any(linear.bias is not None for linear in linears):
        raise ValueError("model must have neither biases in its attention nor positions in its scores")
    w_q, w_k, w_v, w_o = (linear.weight.detach() for linear in linears)
    return w_q[keys].T @ w_k[keys] / (keys.stop - keys.start) ** 0.5, w_v[values].T @ w_o[:, values].T


def head_value(model: Model, layer: int, head: int, stream: Tensor) -> Tensor:
    """Return what a head takes from tokens with these residual streams, W_V norm(x): [..., d_model] -> [..., d_v].

    A head that attends to one token alone returns just this, so it can take the place of its output (`replace_head`).

    Args:
        layer, head: from 0. stream: in front of this layer, such as `trace(model, ids).streams[layer]`, or any
            vectors, such as `model.embedding.weight`.
    """
    part = _head(model, layer, head)
    stream = check_width("stream", check_tensor("stream", stream), part.attention.w_v.in_features, "d_model")
    value: Tensor = part.attention.w_v(part.norm(stream))[..., part.rows(head, "w_v")]
    return value


def head_writes(model: Model, layer: int, head: int, stream: Tensor) -> Tensor:
    """Return what a head adds to the stream of whoever attends to these tokens alone: W_O W_V norm(x), [..., d_model].

    Arguments as in `head_value`; a bias of W_O, which belongs to no head, is left out. With the final norm and the
    head of the model this says which words the head would speak for.
    """
    part = _head(model, layer, head)
    return head_value(model, layer, head, stream) @ part.attention.w_o.weight[:, part.rows(head, "w_o")].T


@contextmanager
def replace_head(
    model: Model, layer: int, head: int, value: Tensor | Callable[[Tensor], Tensor], *, positions: Positions = None
) -> Iterator[None]:
    """Replace the output of one head, before W_O, inside the `with` block.

    With the output that the head has on another input this is activation patching.

    Args:
        layer, head: from 0. value: what takes its place, broadcastable to [batch, seq_len, d_v], such as
            `trace(model, other).heads[layer][:, head]`; or a function that makes it from the head's output.
        positions: replace it at these positions, from 0, and keep it elsewhere; None replaces all.
    """
    part = _head(model, layer, head)
    columns, rows = part.rows(head, "w_o"), checked_positions("positions", positions)
    if not callable(value):
        check_tensor("value", value)
    cached: dict[str, bool] = {}

    def replaced(module: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor]:
        if rows is not None and any(cached.values()):
            raise ValueError("positions must be None while decoding with a cache: a call has only the newest position")
        joined = args[0].clone()
        old = joined[..., columns]
        new = check_tensor("value", value(old.clone()) if callable(value) else value)
        if not broadcasts(new.shape, old.shape):
            wanted = f"[batch, seq_len, d_v] = {list(old.shape)}"
            raise ValueError(f"value must broadcast to the head's output {wanted}, got {tuple(new.shape)}")
        chosen = chosen_rows("positions", rows, old.shape[1])
        joined[:, chosen, columns] = new.expand_as(old)[:, chosen]
        return (joined,)

    with ExitStack() as stack:
        stack.callback(noting_cache(part.attention, cached).remove)
        stack.callback(part.attention.w_o.register_forward_pre_hook(replaced).remove)
        yield


@contextmanager
def ablate_head(
    model: Model, layer: int, head: int, how: str = "zero", *, positions: Positions = None
) -> Iterator[None]:
    """Take one head out inside the `with` block.

    Args:
        layer, head: from 0. how: "zero", its output becomes 0; "mean", its mean over the sequences and positions of
            the call, so that what it says on average stays and what it says about these tokens goes.
        positions: take it out at these positions only, as in `replace_head`; the mean is still over all.
    """
    check_choice("how", how, ("zero", "mean"))

    def without(output: Tensor) -> Tensor:
        return torch.zeros_like(output) if how == "zero" else output.mean(dim=(0, 1))

    with replace_head(model, layer, head, without, positions=positions):
        yield


@contextmanager
def ablate_heads(model: Model, heads: Heads, how: str = "zero", *, positions: Positions = None) -> Iterator[None]:
    """Take several heads out inside the `with` block, as `ablate_head` does one.

    Args:
        heads: (layer, head) each, such as `ranked(scores)[:8]`. A later head's mean is of the call without the earlier.
    """
    with ExitStack() as stack:
        for layer, head in heads:
            stack.enter_context(ablate_head(model, layer, head, how, positions=positions))
        yield


@contextmanager
def replace_input(model: Model, heads: Heads, into: str, value: Tensor | Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Let some heads read another residual stream, for their queries, keys or values alone, inside the `with` block.

    Nothing else changes: other heads of the layer read what they read, also those that share keys and values with one
    that is named. With `value=lambda x: x - piece` a piece of the stream is taken out of what these heads see.

    Args:
        heads: (layer, head) each. into: "queries", "keys" or "values". value: what they read in place of the residual
            stream in front of their layer, broadcastable to [batch, seq_len, d_model]; or a function that makes it
            from that stream.
    """
    check_choice("into", into, INTO)
    if not callable(value):
        check_tensor("value", value)
    of_layer: dict[int, list[int]] = {}
    parts: dict[int, _Layer] = {}
    for layer, head in heads:
        parts[layer] = _head(model, layer, head)
        of_layer.setdefault(layer, []).append(head)
    with ExitStack() as stack:
        for layer, chosen in of_layer.items():
            other: list[Tensor] = []  # what this layer reads instead, normed
            stack.callback(parts[layer].norm.register_forward_hook(_norming(other, value)).remove)
            stack.callback(_reading(parts[layer], chosen, into, other).remove)
        yield


def _norming(other: list[Tensor], value: Tensor | Callable[[Tensor], Tensor]) -> Callable[..., None]:
    """Return a hook on the norm of a layer that keeps what it makes of the stream that is read instead."""

    def norm_another(module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
        stream = args[0]
        new = check_tensor("value", value(stream.clone()) if callable(value) else value)
        if not broadcasts(new.shape, stream.shape):
            wanted = f"[batch, seq_len, d_model] = {list(stream.shape)}"
            raise ValueError(f"value must broadcast to the residual stream {wanted}, got {tuple(new.shape)}")
        other[:] = [module.forward(new.expand_as(stream))]  # not called, which would come here again

    return norm_another


def _reading(part: _Layer, heads: list[int], into: str, other: list[Tensor]) -> RemovableHandle:
    """Hook an attention so that these heads have their queries, keys or values from another input."""
    attention, projection = part.attention, INTO[into]
    if isinstance(attention, modern.GroupedQueryAttention):
        return attention.attend.register_forward_pre_hook(_reading_shared(attention, heads, into, other))

    def project_again(module: nn.Module, args: object, output: Tensor) -> Tensor:
        changed, projected = output.clone(), module.forward(other[0])
        for head in heads:
            rows = part.rows(head, projection)
            changed[..., rows] = projected[..., rows]
        return changed

    linear: nn.Linear = getattr(attention, projection)
    return linear.register_forward_hook(project_again)


def _reading_shared(
    attention: modern.GroupedQueryAttention, heads: list[int], into: str, other: list[Tensor]
) -> Callable[..., tuple[Tensor, ...]]:
    """Return a hook that changes what these heads attend with, where each has its own copy of what is shared."""

    def attend_with(module: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        if args[0].shape[2] != args[1].shape[2]:
            raise ValueError(
                "heads cannot read another input while decoding with a cache, which has the keys before it"
            )
        made = getattr(attention, into)(other[0])
        made = made if into == "queries" else attention.for_each_head(made)
        place = list(INTO).index(into)
        changed = args[place].clone()
        changed[:, heads] = made[:, heads]
        return (*args[:place], changed, *args[place + 1 :])

    return attend_with


@torch.no_grad()
def patch_path(model: Model, ids: Tensor, other: Tensor, *, sender: str, layer: int, head: int, into: str) -> Tensor:
    """Return the logits on `ids` if one head reads one piece of its input from the run on `other` (path patching).

    Only the queries, keys or values of that head change; every other path from the sender keeps its run on `ids`,
    and all layers behind the head follow from what it now returns (Wang et al. 2023).

    Args:
        ids, other: [batch, seq_len], of one shape. sender: a piece that is there before the layer, such as "0.0".
        layer, head: the reader, from 0. into: "queries", "keys" or "values".

    Returns:
        logits [batch, seq_len, vocab_size].
    """
    check_choice("into", into, INTO)
    if ids.shape != other.shape:
        raise ValueError(f"other must have the shape of ids, {tuple(ids.shape)}, got {tuple(other.shape)}")
    _head(model, layer, head)
    check_choice("sender", sender, [name for name in _names(model, ids) if not _comes_after(name, layer)])
    here, there = (pieces(model, each, names=[sender])[sender] for each in (ids, other))
    with evaluating(model), replace_input(model, [(layer, head)], into, lambda stream: stream - here + there):
        logits: Tensor = model(ids)
    return logits


def _comes_after(name: str, layer: int) -> bool:
    """Return whether a piece is added in this layer or a later one."""
    number = name.rpartition(" ")[2].partition(".")[0]
    return number.isdigit() and int(number) >= layer


def _head(model: Model, layer: int, head: int) -> _Layer:
    """Return the layer of one head, if there is such a head."""
    layers = _layers(model)
    if check_int("layer", layer, minimum=0) >= len(layers):
        raise ValueError(f"layer must be less than {len(layers)}, got {layer}")
    if check_int("head", head, minimum=0) >= layers[layer].n_heads:
        raise ValueError(f"head must be less than {layers[layer].n_heads}, got {head}")
    return layers[layer]


@torch.no_grad()
def patch_streams(
    model: Model,
    ids: Tensor,
    other: Tensor,
    measure: Callable[[Tensor], Tensor],
    *,
    layers: Positions = None,
    positions: Sequence[int | Sequence[int]] | None = None,
) -> Tensor:
    """Return a measure of the runs on `ids` whose residual stream is that of `other` at one place, for many places.

    Args:
        ids, other: [batch, seq_len], of one shape.
        measure: from the logits behind the last position, [copies, batch, vocab_size], to one number each,
            [copies, batch], such as `lambda logits: logit_difference(logits, right, wrong)`.
        layers: in front of which of them, from 0; n_layers is behind the last. None means all n_layers + 1.
        positions: which one, from 0, or which several together, for each patch; None means each one by itself.

    Returns:
        [layers, positions, batch]. `recovered` turns it into shares of the difference between the two runs.
    """
    if ids.shape != other.shape:
        raise ValueError(f"other must have the shape of ids, {tuple(ids.shape)}, got {tuple(other.shape)}")
    count, length = len(_layers(model)), ids.shape[1]
    asked = list(range(length)) if positions is None else list(positions)
    places = [chosen_rows("positions", checked_positions("positions", each), length) for each in asked]
    chosen = checked_positions("layers", layers) or list(range(count + 1))
    if max(chosen) > count:
        raise ValueError(f"layers must be at most n_layers = {count}, got {max(chosen)}")
    with evaluating(model):
        begun = _Begun.at(model, ids, min(int(place.min()) for place in places))
        source = trace(model, other, keep="streams").streams
        found = [begun.with_streams(layer, source[layer], places, measure) for layer in chosen]
    return torch.stack(found)


@torch.no_grad()
def patch_heads(
    model: Model,
    ids: Tensor,
    values: Tensor | Sequence[Tensor],
    measure: Callable[[Tensor], Tensor],
    *,
    positions: Positions = None,
) -> Tensor:
    """Return a measure of the runs on `ids` in which one head's output is replaced, for each head of the model.

    Where only late positions change, the earlier ones are run once for all heads.

    Args:
        ids: [batch, seq_len].
        values: of each layer what takes the place of its heads' outputs, broadcastable to
            [batch, n_heads, seq_len, d_v]: `trace(model, other).heads` patches each head from another run,
            [heads.mean(0) for heads in …] puts in the mean over its sequences, and one tensor serves all layers, as
            `torch.zeros(())` does to take each head out.
        measure: as in `patch_streams`.
        positions: replace them at these positions, from 0, and keep them elsewhere; None replaces all.

    Returns:
        [n_layers, n_heads, batch].
    """
    layers = _layers(model)
    values = [values] * len(layers) if isinstance(values, Tensor) else list(values)
    if len(values) != len(layers):
        raise ValueError(f"values must be one tensor, or one for each of {len(layers)} layers, got {len(values)}")
    rows = chosen_rows("positions", checked_positions("positions", positions), ids.shape[1])
    with evaluating(model):
        begun = _Begun.at(model, ids, int(rows.min()))
        found = [begun.with_heads(number, value, rows, measure) for number, value in enumerate(values)]
    return torch.stack(found)


@dataclass(frozen=True)
class _Begun:
    """A run to go on from, at any layer: its streams from a position on, and the keys and values before this."""

    model: Model
    streams: list[Tensor]  # [batch, seq_len, d_model] in front of each layer and behind the last
    start: int  # the position of their first row
    before: modern.Cache | None

    @classmethod
    def at(cls, model: Model, ids: Tensor, position: int) -> _Begun:
        """Run a model on ids; what is before a position is not run again, if the model has a cache for it."""
        if not isinstance(model, modern.LanguageModel) or not position:
            return cls(model, trace(model, ids, keep="streams").streams, 0, None)
        cache = model.new_cache()
        model.continue_from(model.embed(ids[:, :position]), cache=cache)
        rows = list(range(position, ids.shape[1]))
        return cls(model, trace(model, ids, keep="streams", positions=rows).streams, position, cache)

    def with_streams(
        self, layer: int, source: Tensor, places: list[Tensor], measure: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """Return the measure [places, batch] if the stream in front of a layer comes from another run."""
        found = []
        for part in self._in_parts(places):
            copies = torch.stack([self.streams[layer]] * len(part))  # [copies, batch, seq_len, d_model]
            for copy, place in zip(copies, part, strict=True):
                copy[:, place - self.start] = source[:, place]
            found.append(self._measured(copies, layer, measure))
        return torch.cat(found)

    def with_heads(self, layer: int, value: Tensor, rows: Tensor, measure: Callable[[Tensor], Tensor]) -> Tensor:
        """Return the measure [n_heads, batch] if one head of a layer returns something else at these rows."""
        part = _layers(self.model)[layer]
        batch, length = self.streams[layer].shape[:2]
        width = part.attention.w_o.in_features // part.n_heads
        shape = (batch, part.n_heads, length + self.start, width)
        if not broadcasts(check_tensor("values", value).shape, shape):
            wanted = f"[batch, n_heads, seq_len, d_v] = {list(shape)}"
            raise ValueError(f"values must broadcast to the heads' outputs {wanted}, got {tuple(value.shape)}")
        new, found = value.expand(shape)[:, :, rows], []
        for heads in self._in_parts(list(range(part.n_heads))):
            hook = _each_replaced(heads, part.n_heads, new, rows - self.start)
            handle = part.attention.w_o.register_forward_pre_hook(hook)
            try:
                copies = torch.stack([self.streams[layer]] * len(heads))
                found.append(self._measured(copies, layer, measure))
            finally:
                handle.remove()
        return torch.cat(found)

    def _in_parts(self, changes: list[Any]) -> list[list[Any]]:
        """Return the changes in lists of as many as may run at once."""
        batch, length = self.streams[0].shape[:2]
        size = max(1, TOKENS_AT_ONCE // (batch * length))
        return [changes[first : first + size] for first in range(0, len(changes), size)]

    def _measured(self, copies: Tensor, layer: int, measure: Callable[[Tensor], Tensor]) -> Tensor:
        """Go on from copies [copies, batch, seq_len, d_model] of the stream in front of a layer to [copies, batch]."""
        cache = None if self.before is None else self.before.repeated(len(copies))
        last = _continued(self.model, copies.flatten(0, 1), layer, cache)[:, -1]
        found = check_tensor("measure's result", measure(_said(self.model, last).unflatten(0, copies.shape[:2])))
        if found.shape != copies.shape[:2]:
            wanted = f"[copies, batch] = {list(copies.shape[:2])}"
            raise ValueError(f"measure must return {wanted} from [copies, batch, vocab_size], got {tuple(found.shape)}")
        return found


def _each_replaced(heads: list[int], n_heads: int, new: Tensor, rows: Tensor) -> Callable[..., tuple[Tensor]]:
    """Return a hook on W_O: of one copy of the batch for each of these heads, its own head is replaced."""

    def replaced(module: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor]:
        joined = args[0].clone()  # [copies · batch, seq_len, n_heads · d_v]
        apart = joined.view(len(heads), -1, joined.shape[1], n_heads, joined.shape[2] // n_heads)
        for copy, head in zip(apart, heads, strict=True):
            copy[:, rows, head] = new[:, head]
        return (joined,)

    return replaced


def logit_difference(logits: Tensor, right: int | Tensor, wrong: int | Tensor) -> Tensor:
    """Return by how much the logit of one word exceeds that of another: [..., batch, vocab_size] -> [..., batch].

    Args:
        right, wrong: the words' ids, one for all sequences or one each, [batch].
    """
    check_tensor("logits", logits, min_rank=2)
    batch = logits.shape[-2]
    rows = torch.arange(batch, device=logits.device)
    first, second = (
        logits[..., rows, check_ids(name, torch.as_tensor(ids).expand(1, batch), logits.shape[-1])[0]]
        for name, ids in (("right", right), ("wrong", wrong))
    )
    return first - second


def recovered(patched: Number, clean: Number, corrupted: Number) -> Number:
    """Return (patched − corrupted) / (clean − corrupted): 1 if a patch restores the clean run, 0 if it does nothing."""
    return (patched - corrupted) / (clean - corrupted)
