"""Taking a model apart: its residual stream as a sum, single heads replaced, one path changed (Elhage et al. 2021).

A stack in which every sub-layer adds to its input, as pre-norm stacks do, is a sum: the embedding plus what each head
and each feed-forward network adds. The functions here name these terms, follow them to the logits and exchange them
between two runs. They take an `AttentionOnly` model or a `LanguageModel` with `norm_first=True`, which must not be
compiled; none changes a model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn

from .._validate import broadcasts, check_choice, check_flag, check_ids, check_int, check_tensor
from .evaluating import evaluating
from .interventions import check_not_compiled
from .layers import LayerNorm
from .masks import causal_mask
from .multihead import MultiHeadAttention
from .one_stack import LanguageModel
from .positional import LearnedPosition, make_position, make_score_position, score_position
from .recording import record_attention

INTO = {"queries": "w_q", "keys": "w_k", "values": "w_v"}
"""What a head reads its input for, and the projection that does it."""

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


Model = AttentionOnly | LanguageModel


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


def _square(name: str, weights: Tensor) -> int:
    """Return seq_len of weights [batch, n_heads, seq_len, seq_len]."""
    shape = tuple(check_tensor(name, weights, rank=4).shape)
    if shape[2] != shape[3]:
        raise ValueError(f"{name} must have shape [batch, n_heads, seq_len, seq_len], got {shape}")
    return shape[3]


@dataclass(frozen=True)
class Trace:
    """One run of a model, taken apart.

    Attributes:
        logits: [batch, seq_len, vocab_size].
        pieces: {name: [batch, seq_len, d_model]}, the terms of the residual stream, in the order in which they are
            added: "token", "position" (where positions are added), then for each layer "layer.head" such as "0.0",
            and "bias 0" and "feed-forward 0" where there are such.
        streams: the residual stream after the embedding and after each layer, n_layers + 1 of
            [batch, seq_len, d_model].
        weights: of each layer, [batch, n_heads, seq_len, seq_len].
        heads: of each layer, what its heads return before W_O, [batch, n_heads, seq_len, d_v].
    """

    logits: Tensor
    pieces: dict[str, Tensor]
    streams: list[Tensor]
    weights: list[Tensor]
    heads: list[Tensor]


@dataclass(frozen=True)
class _Layer:
    """One layer of either kind of model: its attention, the norm in front of it, and its feed-forward network."""

    attention: MultiHeadAttention
    norm: nn.Module
    feed_forward: nn.Module | None = None


def _layers(model: Model) -> list[_Layer]:
    """Return the layers of a model whose sub-layers add to their input, and whose parts are called one by one."""
    if isinstance(model, (AttentionOnly, LanguageModel)):
        check_not_compiled(dict(model.named_modules()))  # all that is done here is done by hooks
    if isinstance(model, AttentionOnly):
        pairs = zip(model.layers, model.norms, strict=True)
        return [_Layer(cast(MultiHeadAttention, attention), norm) for attention, norm in pairs]
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
    return model.stack.norm, model.embedding.weight


@torch.no_grad()
def trace(model: Model, ids: Tensor) -> Trace:
    """Run a model on ids [batch, seq_len], without dropout or gradients, and return everything in between."""
    layers = _layers(model)
    joined: list[Tensor] = []  # of each layer, its heads side by side
    wide: list[Tensor] = []  # of each layer, what its feed-forward network returns

    def keep_input(module: nn.Module, args: tuple[Tensor, ...]) -> None:
        joined.append(args[0])

    def keep_output(module: nn.Module, args: object, output: Tensor) -> None:
        wide.append(output)

    with ExitStack() as stack:
        stack.enter_context(evaluating(model))
        record = stack.enter_context(record_attention(model))
        for layer in layers:
            stack.callback(layer.attention.w_o.register_forward_pre_hook(keep_input).remove)
            if layer.feed_forward is not None:
                stack.callback(layer.feed_forward.register_forward_hook(keep_output).remove)
        logits = model(ids)
    heads = [layer.attention.split_heads(each) for layer, each in zip(layers, joined, strict=True)]
    named = _embedded(model, ids)
    streams = [_sum(named)]
    for number, (layer, z) in enumerate(zip(layers, heads, strict=True)):
        named |= _added(number, layer.attention, z)
        if wide:
            named[f"feed-forward {number}"] = wide[number]
        streams.append(_sum(named))
    return Trace(logits, named, streams, list(record.values()), heads)


def _embedded(model: Model, ids: Tensor) -> dict[str, Tensor]:
    """Return the pieces that the stream begins with."""
    token = model.embedding(ids) * (1.0 if isinstance(model, AttentionOnly) else model.scale)
    position = model.position(torch.zeros_like(token))
    return {"token": token, "position": position} if position.any() else {"token": token}


def _added(number: int, attention: MultiHeadAttention, heads: Tensor) -> dict[str, Tensor]:
    """Return what each head adds to the stream: its output [batch, seq_len, d_v] times its own columns of W_O."""
    own = attention.w_o.weight.unflatten(1, (attention.n_heads, -1))  # [d_model, n_heads, d_v]
    pieces_of_layer = {f"{number}.{head}": heads[:, head] @ own[:, head].T for head in range(attention.n_heads)}
    if attention.w_o.bias is not None:
        pieces_of_layer[f"bias {number}"] = attention.w_o.bias.expand_as(pieces_of_layer[f"{number}.0"])
    return pieces_of_layer


def _sum(named: dict[str, Tensor]) -> Tensor:
    return torch.stack(list(named.values())).sum(dim=0)


def pieces(model: Model, ids: Tensor) -> dict[str, Tensor]:
    """Return the terms of the last residual stream by name, each [batch, seq_len, d_model]; see `Trace.pieces`."""
    return trace(model, ids).pieces


@torch.no_grad()
def contributions(model: Model, ids: Tensor, letters: Tensor | None = None) -> dict[str, Tensor]:
    """Return what each piece of the residual stream contributes to the logits (direct logit attribution).

    The contributions sum to the logits. Where a final norm comes between, it is frozen: each piece is centred by
    itself and divided by the standard deviation of the whole stream in this run, and the norm's β is one more piece,
    "norm bias".

    Args:
        ids: [batch, seq_len]. letters: [batch, seq_len]: only the logit of this token at each position.

    Returns:
        {name: [batch, seq_len, vocab_size]}, or [batch, seq_len] with letters.
    """
    run = trace(model, ids)
    norm, table = _ending(model)
    named = dict(run.pieces)
    if isinstance(norm, LayerNorm):
        spread = (run.streams[-1].var(dim=-1, correction=0, keepdim=True) + norm.eps).sqrt()
        named = {name: norm.weight * (x - x.mean(dim=-1, keepdim=True)) / spread for name, x in named.items()}
        if norm.bias is not None:
            named["norm bias"] = norm.bias.expand_as(run.streams[-1])
    if letters is None:
        return {name: x @ table.T for name, x in named.items()}
    letters = check_ids("letters", letters, len(table))
    if letters.shape != ids.shape:
        raise ValueError(f"letters must have the shape of ids, {tuple(ids.shape)}, got {tuple(letters.shape)}")
    return {name: (x * table[letters]).sum(dim=-1) for name, x in named.items()}


@torch.no_grad()
def logit_lens(model: Model, ids: Tensor) -> Tensor:
    """Return the logits if the stack ended earlier, [n_layers + 1, batch, seq_len, vocab_size] (nostalgebraist 2020).

    Entry i is the final norm and the head on the residual stream after i layers; the last one is the model's logits.

    Args:
        ids: [batch, seq_len].
    """
    norm, table = _ending(model)
    return torch.stack([norm(stream) @ table.T for stream in trace(model, ids).streams])


def head_matrices(model: Model, layer: int, head: int) -> tuple[Tensor, Tensor]:
    """Return W_QK and W_OV of one head, [d_model, d_model] each: all that its weights say (Elhage et al. 2021).

    For rows x that the head reads, x @ W_QK @ x.T are its scores before the softmax, with the division by √d_k, and
    x @ W_OV is what a token adds to the stream of whoever attends to it.

    Args:
        layer, head: from 0.

    Raises:
        ValueError: there is no such head, its attention has biases, or positions that act on its scores.
    """
    attention, keys = _head(model, layer, head, "w_k")
    values = _head(model, layer, head, "w_v")[1]
    linears = (attention.w_q, attention.w_k, attention.w_v, attention.w_o)
    if attention.position is not None or any(linear.bias is not None for linear in linears):
        raise ValueError("model must have neither biases in its attention nor positions in its scores")
    w_q, w_k, w_v, w_o = (linear.weight.detach() for linear in linears)
    return w_q[keys].T @ w_k[keys] / attention.d_k**0.5, w_v[values].T @ w_o[:, values].T


@contextmanager
def replace_head(model: Model, layer: int, head: int, value: Tensor | Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Replace the output of one head, before W_O, inside the `with` block.

    With the output that the head has on another input this is activation patching.

    Args:
        layer, head: from 0. value: what takes its place, broadcastable to [batch, seq_len, d_v], such as
            `trace(model, other).heads[layer][:, head]`; or a function that makes it from the head's output.
    """
    attention, columns = _head(model, layer, head)
    if not callable(value):
        check_tensor("value", value)

    def replaced(module: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor]:
        joined = args[0].clone()
        old = joined[..., columns]
        new = check_tensor("value", value(old.clone()) if callable(value) else value)
        if not broadcasts(new.shape, old.shape):
            wanted = f"[batch, seq_len, d_v] = {list(old.shape)}"
            raise ValueError(f"value must broadcast to the head's output {wanted}, got {tuple(new.shape)}")
        joined[..., columns] = new
        return (joined,)

    hook = attention.w_o.register_forward_pre_hook(replaced)
    try:
        yield
    finally:
        hook.remove()


@contextmanager
def ablate_head(model: Model, layer: int, head: int, how: str = "zero") -> Iterator[None]:
    """Take one head out inside the `with` block.

    Args:
        layer, head: from 0. how: "zero", its output becomes 0; "mean", its mean over the sequences and positions of
            the call, so that what it says on average stays and what it says about these tokens goes.
    """
    check_choice("how", how, ("zero", "mean"))

    def without(output: Tensor) -> Tensor:
        return torch.zeros_like(output) if how == "zero" else output.mean(dim=(0, 1))

    with replace_head(model, layer, head, without):
        yield


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
    attention, columns = _head(model, layer, head, INTO[into])
    here, there = trace(model, ids), trace(model, other)
    known = [name for name in here.pieces if not _comes_after(name, layer)]
    check_choice("sender", sender, known)
    stream = here.streams[layer] - here.pieces[sender] + there.pieces[sender]
    projection: nn.Linear = getattr(attention, INTO[into])
    projected = projection(_layers(model)[layer].norm(stream))[..., columns]

    def replaced(module: nn.Module, args: object, output: Tensor) -> Tensor:
        changed = output.clone()
        changed[..., columns] = projected
        return changed

    hook = projection.register_forward_hook(replaced)
    try:
        with evaluating(model):
            logits: Tensor = model(ids)
    finally:
        hook.remove()
    return logits


def _comes_after(name: str, layer: int) -> bool:
    """Return whether a piece is added in this layer or a later one."""
    number = name.rpartition(" ")[2].partition(".")[0]
    return number.isdigit() and int(number) >= layer


def _head(model: Model, layer: int, head: int, projection: str = "w_o") -> tuple[MultiHeadAttention, slice]:
    """Return the attention of a layer, and which rows or columns of a projection belong to one head."""
    layers = _layers(model)
    if check_int("layer", layer, minimum=0) >= len(layers):
        raise ValueError(f"layer must be less than {len(layers)}, got {layer}")
    attention = layers[layer].attention
    if check_int("head", head, minimum=0) >= attention.n_heads:
        raise ValueError(f"head must be less than {attention.n_heads}, got {head}")
    width = attention.d_v if projection in ("w_o", "w_v") else attention.d_k
    return attention, slice(head * width, (head + 1) * width)


def recovered(patched: Number, clean: Number, corrupted: Number) -> Number:
    """Return (patched − corrupted) / (clean − corrupted): 1 if a patch restores the clean run, 0 if it does nothing."""
    return (patched - corrupted) / (clean - corrupted)
