"""The block of today's open language models (Touvron et al. 2023): what changed around attention since 2017.

`RMSNorm` for `LayerNorm`, `SwiGLU` or a `MixtureOfExperts` for `FeedForward`, `GroupedQueryAttention` with rotary
positions, normed queries and keys, and a sliding window. Each change is one field of `Config`, so that one at a time
can be tried. `tl.interop.load_hf` fills a `LanguageModel` with the weights of Llama or a relative.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .._validate import (
    check_choice,
    check_flag,
    check_ids,
    check_int,
    check_mask,
    check_positive,
    check_sequence,
    check_width,
)
from .attention import fused_attention
from .cache import check_depth, check_kept
from .layers import FeedForward, LayerNorm
from .masks import causal_mask
from .positional import PAIRS, NoPosition, RotaryPosition, RotaryScaling, check_scaling

NORMS = ("rms", "layer")
FEED_FORWARDS = ("relu", "gelu", "swiglu", "experts")


@dataclass(frozen=True, kw_only=True)
class Config:
    """Sizes and choices of a `LanguageModel`; `dataclasses.replace(config, norm="layer")` changes one thing.

    Raises:
        TypeError, ValueError: a field has the wrong type, is out of range, or contradicts another.
    """

    vocab_size: int  # rows of the table of words, and width of the logits
    d_model: int  # width of the residual stream
    n_heads: int  # query heads of a layer
    n_layers: int
    d_ff: int  # hidden width of the feed-forward network, or of one expert
    n_kv_heads: int | None = None  # heads of keys and values, each shared by n_heads / n_kv_heads; n_heads by default
    d_head: int | None = None  # width of one head; d_model / n_heads by default
    norm: str = "rms"  # one of NORMS
    eps: float = 1e-6  # ε of every norm
    feed_forward: str = "swiglu"  # one of FEED_FORWARDS
    rope_base: float = 10000.0  # of the rotary frequencies
    rope_scaling: RotaryScaling | None = None  # of these frequencies, for long texts (Llama 3.1)
    rotary_layers: tuple[bool, ...] | None = None  # which layers have rotary positions (SmolLM3); all by default
    pairs: str = "halves"  # which features are rotated together, as in `RotaryPosition`
    qkv_bias: bool = False  # queries, keys and values have biases (Qwen2)
    qk_norm: bool = False  # RMSNorm of each head's queries and keys, before they are rotated
    window: int | None = None  # positions that a query sees, itself included; all before it by default
    n_experts: int = 4  # with feed_forward="experts"
    experts_per_token: int = 2  # how many of them a token goes to
    tied: bool = True  # the table of words is the output head, too
    embedding_scale: float = 1.0  # what the words are multiplied by; Vaswani et al. (2017) have √d_model

    def __post_init__(self) -> None:
        for name in ("vocab_size", "d_model", "n_heads", "n_layers", "d_ff", "n_experts", "experts_per_token"):
            check_int(name, getattr(self, name))
        for name in ("n_kv_heads", "d_head", "window"):
            if getattr(self, name) is not None:
                check_int(name, getattr(self, name))
        for name, choices in (("norm", NORMS), ("feed_forward", FEED_FORWARDS), ("pairs", PAIRS)):
            check_choice(name, getattr(self, name), choices)
        for name in ("eps", "rope_base", "embedding_scale"):
            check_positive(name, getattr(self, name))
        for name in ("qkv_bias", "qk_norm", "tied"):
            check_flag(name, getattr(self, name))
        self._check_heads()
        self._check_positions()
        if self.experts_per_token > self.n_experts:
            raise ValueError(
                f"experts_per_token must be at most n_experts = {self.n_experts}, got {self.experts_per_token}"
            )

    def _check_heads(self) -> None:
        if self.d_head is None and self.d_model % self.n_heads:
            raise ValueError(
                "d_model must be divisible by n_heads unless d_head is given, "
                f"got d_model={self.d_model}, n_heads={self.n_heads}"
            )
        if self.head_width % 2:
            raise ValueError(f"d_head must be even (rotary positions turn pairs of features), got {self.head_width}")
        if self.n_heads % self.kv_heads:
            raise ValueError(
                f"n_heads must be divisible by n_kv_heads, got n_heads={self.n_heads}, n_kv_heads={self.n_kv_heads}"
            )

    def _check_positions(self) -> None:
        check_scaling("rope_scaling", self.rope_scaling)
        layers = self.rotary_layers
        if layers is None:
            return
        if not isinstance(layers, tuple) or not all(isinstance(one, bool) for one in layers):
            raise TypeError(f"rotary_layers must be a tuple of True and False or None, got {layers!r}")
        if len(layers) != self.n_layers:
            raise ValueError(f"rotary_layers must say it of n_layers = {self.n_layers} layers, got {len(layers)}")

    @property
    def kv_heads(self) -> int:
        """Heads of keys and values."""
        return self.n_heads if self.n_kv_heads is None else self.n_kv_heads

    @property
    def head_width(self) -> int:
        """Features of one head."""
        return self.d_model // self.n_heads if self.d_head is None else self.d_head

    def cache_bytes(self, length: int, bytes_each: int = 4) -> int:
        """Return how many bytes the keys and values of one sequence take, all layers together.

        Args:
            length: tokens seen so far; a window keeps the last `window` of them. bytes_each: of one number, 4 in
                float32 and 2 in bfloat16.
        """
        kept = length if self.window is None else min(length, self.window)
        return 2 * self.n_layers * self.kv_heads * self.head_width * kept * bytes_each


class RMSNorm(nn.Module):
    """RMSNorm(x) = γ ⊙ x / √(mean(x²) + ε) (Zhang and Sennrich 2019): no mean is subtracted, and there is no bias."""

    def __init__(self, d_model: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = check_positive("eps", eps)
        self.weight = nn.Parameter(torch.ones(check_int("d_model", d_model)))  # γ, the gain

    def forward(self, x: Tensor) -> Tensor:
        """Return x [..., d_model] divided, token by token, by its root mean square."""
        check_width("x", x, len(self.weight), "d_model")
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


class SwiGLU(nn.Module):
    """SwiGLU(x) = (silu(x W_gate) ⊙ x W_up) W_down with silu(z) = z · σ(z) (Shazeer 2020), without biases.

    Three matrices in place of two: a d_ff of 2/3 of `FeedForward`'s gives as many parameters.
    """

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.gate = nn.Linear(check_int("d_model", d_model), check_int("d_ff", d_ff), bias=False)
        self.up = nn.Linear(d_model, d_ff, bias=False)
        self.down = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return SwiGLU(x); x is [..., d_model]."""
        check_width("x", x, self.gate.in_features, "d_model")
        hidden = F.silu(self.gate(x)) * self.up(x)  # [..., d_ff]
        return self.down(hidden)


class MixtureOfExperts(nn.Module):
    """A router sends each token to k of n `SwiGLU` networks and adds up what they return (Shazeer et al. 2017).

    The weights of the chosen k are the softmax of their scores alone, as in Mixtral.

    Args:
        d_model: width of input and output. d_ff: hidden width of one expert. n_experts: n. experts_per_token: k.

    Attributes:
        loads: the share of all choices that went to each expert in the last forward pass, [n_experts]; None before.
    """

    def __init__(self, d_model: int, d_ff: int, n_experts: int, experts_per_token: int) -> None:
        super().__init__()
        self.k = check_int("experts_per_token", experts_per_token)
        if self.k > check_int("n_experts", n_experts):
            raise ValueError(f"experts_per_token must be at most n_experts = {n_experts}, got {experts_per_token}")
        self.router = nn.Linear(check_int("d_model", d_model), n_experts, bias=False)
        self.experts = nn.ModuleList(SwiGLU(d_model, d_ff) for _ in range(n_experts))
        self.loads: Tensor | None = None

    def route(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return for x [..., d_model] the weights of the chosen experts, and which these are, both [..., k]."""
        scores, chosen = self.router(x).topk(self.k, dim=-1)
        return scores.softmax(dim=-1), chosen

    def forward(self, x: Tensor) -> Tensor:
        """Return for each token of x [..., d_model] the weighted sum of what its k experts make of it."""
        check_width("x", x, self.router.in_features, "d_model")
        tokens = x.reshape(-1, x.shape[-1])  # [tokens, d_model]
        weights, chosen = self.route(tokens)
        self.loads = torch.bincount(chosen.flatten(), minlength=len(self.experts)) / chosen.numel()
        output = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            rows, rank = (chosen == number).nonzero(as_tuple=True)  # which tokens chose it, and as which of their k
            output = output.index_add(0, rows, weights[rows, rank, None] * expert(tokens[rows]))
        return output.view_as(x)


def window_mask(
    q_len: int, k_len: int | None = None, window: int | None = None, *, device: torch.device | None = None
) -> Tensor:
    """Return a causal mask [1, 1, q_len, k_len], True = may attend, under which a query sees `window` keys at most.

    These are its own and the window − 1 before it. As in `causal_mask` the queries are the last q_len positions.
    """
    visible = causal_mask(q_len, k_len, device=device)
    if window is None:
        return visible
    return visible.triu((visible.shape[-1] - q_len) - (check_int("window", window) - 1))


class LayerCache:
    """The keys and values of one layer, [batch, n_kv_heads, kept, d_head] each; a window keeps the last ones only."""

    def __init__(self, window: int | None) -> None:
        self.window, self.length = window, 0  # length: tokens seen, kept or not
        self.kept: tuple[Tensor, Tensor] | None = None

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add the keys and values of new tokens; return them behind those that were kept before."""
        self.length += keys.shape[2]
        if self.kept is not None:
            if len(keys) != len(self.kept[0]):
                raise ValueError(f"ids must have the cache's batch size {len(self.kept[0])}, got {len(keys)}")
            keys, values = (torch.cat(pair, dim=2) for pair in zip(self.kept, (keys, values), strict=True))
        first = 0 if self.window is None else max(0, keys.shape[2] - self.window)
        # a copy, where something is cut off: a view would hold on to what is not kept
        self.kept = (keys, values) if not first else (keys[:, :, first:].clone(), values[:, :, first:].clone())
        return keys, values

    @property
    def complete(self) -> bool:
        """Whether all tokens seen are kept; a window lets earlier ones go."""
        return self.kept is None or self.kept[0].shape[2] == self.length

    def crop(self, length: int) -> None:
        """Forget all tokens but the first `length` of those kept; see `Cache.crop`."""
        if self.kept is not None:
            self.kept = self.kept[0][:, :, :length], self.kept[1][:, :, :length]
        self.length = length


class Cache:
    """One `LayerCache` for each layer of a `LanguageModel`."""

    def __init__(self, n_layers: int, window: int | None = None) -> None:
        self.layers = [LayerCache(window) for _ in range(n_layers)]

    @property
    def length(self) -> int:
        """Tokens seen so far."""
        return self.layers[0].length

    @property
    def bytes(self) -> int:
        """Bytes of all keys and values that are kept."""
        kept = [tensor for layer in self.layers if layer.kept is not None for tensor in layer.kept]
        return sum(tensor.numel() * tensor.element_size() for tensor in kept)

    def crop(self, length: int) -> None:
        """Forget all tokens but the first `length`, so that another continuation of these can be read.

        Raises:
            ValueError: so many tokens were not seen, or a window has let some go that would be needed again.
        """
        if check_kept(length, self.length) == self.length:
            return
        if not all(layer.complete for layer in self.layers):
            raise ValueError(
                f"length must be {self.length}, all tokens seen, where a window has let some of them go, got {length}"
            )
        for layer in self.layers:
            layer.crop(length)

    def repeated(self, times: int) -> Cache:
        """Return a cache for `times` as many sequences, the whole batch again and again; this one stays as it is."""
        check_int("times", times)
        copies = Cache(len(self.layers))
        for mine, copy in zip(self.layers, copies.layers, strict=True):
            copy.window, copy.length = mine.window, mine.length
            if mine.kept is not None:
                keys, values = (kept.repeat(times, 1, 1, 1) for kept in mine.kept)
                copy.kept = keys, values
        return copies


class Attend(nn.Module):
    """softmax(q kᵀ / √d_head) v, head by head: a module of its own, so that a hook may watch or change what goes in."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        """Return what the heads gather, side by side, [batch, q_len, n_heads · d_head].

        Args:
            q: [batch, n_heads, q_len, d_head]. k, v: [batch, n_heads, k_len, d_head]. mask: as in `fused_attention`.
        """
        return fused_attention(q, k, v, mask).transpose(1, 2).flatten(2)


class GroupedQueryAttention(nn.Module):
    """Causal self-attention in which query heads share keys and values (Ainslie et al. 2023).

    Query head i reads key head i // (n_heads / n_kv_heads). One key head is multi-query attention (Shazeer 2019), as
    many as query heads is multi-head attention. With `qk_norm` queries and keys are normed before they are rotated
    (after Henry et al. 2020, who divide by the length and multiply by one learned number).

    Args:
        config: sizes and choices. rotary: whether queries and keys are rotated by their position.
    """

    def __init__(self, config: Config, *, rotary: bool = True) -> None:
        super().__init__()
        self.window, width = config.window, config.head_width
        self.n_heads, self.n_kv_heads = config.n_heads, config.kv_heads
        self.w_q = nn.Linear(config.d_model, self.n_heads * width, bias=config.qkv_bias)
        self.w_k = nn.Linear(config.d_model, self.n_kv_heads * width, bias=config.qkv_bias)
        self.w_v = nn.Linear(config.d_model, self.n_kv_heads * width, bias=config.qkv_bias)
        self.w_o = nn.Linear(self.n_heads * width, config.d_model, bias=False)
        self.q_norm = RMSNorm(width, config.eps) if config.qk_norm else nn.Identity()
        self.k_norm = RMSNorm(width, config.eps) if config.qk_norm else nn.Identity()
        self.position = RotaryPosition(config.rope_base, config.pairs, config.rope_scaling) if rotary else NoPosition()
        self.attend = Attend()

    def forward(self, x: Tensor, cache: LayerCache | None = None, mask: Tensor | None = None) -> Tensor:
        """Return [batch, seq_len, d_model] for x [batch, seq_len, d_model], the tokens after those in the cache.

        Args:
            mask: what may be attended to besides being in sight: boolean, broadcastable to [batch, n_heads, seq_len,
                length] with the length of all tokens so far, those in the cache included; True = may attend.
        """
        check_sequence("x", x, self.w_q.in_features)
        start = 0 if cache is None else cache.length
        q, k, v = self.queries(x, start), self.keys(x, start), self.values(x)
        if cache is not None:
            k, v = cache.append(k, v)
        visible = window_mask(x.shape[1], k.shape[2], self.window, device=x.device)
        if mask is not None:
            check_mask("mask", mask, (len(x), self.n_heads, x.shape[1], start + x.shape[1]))
            visible = visible & mask[..., -k.shape[2] :]  # without what a window has dropped from the cache
        return self.w_o(self.attend(q, self.for_each_head(k), self.for_each_head(v), visible))

    def queries(self, x: Tensor, start: int = 0) -> Tensor:
        """Return what x [batch, seq_len, d_model], whose first position is `start`, looks for: [batch, n_heads, …]."""
        q = self.w_q(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)  # [batch, n_heads, seq_len, d_head]
        return self.position.rotate(self.q_norm(q), start)

    def keys(self, x: Tensor, start: int = 0) -> Tensor:
        """Return what x is found by, [batch, n_kv_heads, seq_len, d_head]."""
        k = self.w_k(x).unflatten(-1, (self.n_kv_heads, -1)).transpose(1, 2)  # [batch, n_kv_heads, seq_len, d_head]
        return self.position.rotate(self.k_norm(k), start)

    def values(self, x: Tensor) -> Tensor:
        """Return what x hands over, [batch, n_kv_heads, seq_len, d_head]."""
        return self.w_v(x).unflatten(-1, (self.n_kv_heads, -1)).transpose(1, 2)

    def for_each_head(self, shared: Tensor) -> Tensor:
        """[batch, n_kv_heads, k_len, d_head] -> [batch, n_heads, k_len, d_head], each as often as it is shared."""
        return shared.repeat_interleave(self.n_heads // self.n_kv_heads, dim=1)


def _norm(config: Config) -> nn.Module:
    kind = RMSNorm if config.norm == "rms" else LayerNorm
    return kind(config.d_model, config.eps)


def _feed_forward(config: Config) -> nn.Module:
    if config.feed_forward == "experts":
        return MixtureOfExperts(config.d_model, config.d_ff, config.n_experts, config.experts_per_token)
    if config.feed_forward == "swiglu":
        return SwiGLU(config.d_model, config.d_ff)
    return FeedForward(config.d_model, config.d_ff, activation=config.feed_forward)


class Block(nn.Module):
    """x + Attention(norm(x)), then x + FeedForward(norm(x)): pre-norm, and nothing on the residual stream itself."""

    def __init__(self, config: Config, *, rotary: bool = True) -> None:
        super().__init__()
        self.attention = GroupedQueryAttention(config, rotary=rotary)
        self.feed_forward = _feed_forward(config)
        self.attention_norm, self.feed_forward_norm = _norm(config), _norm(config)

    def forward(self, x: Tensor, cache: LayerCache | None = None) -> Tensor:
        """Return x [batch, seq_len, d_model] after both sub-layers."""
        x = x + self.attention(self.attention_norm(x), cache)
        return x + self.feed_forward(self.feed_forward_norm(x))


class LanguageModel(nn.Module):
    """Words, layers of type `Block`, a norm and a head: row t gives the logits of word t + 1.

    Args:
        config: a `Config`. With norm="layer", feed_forward="gelu", pairs="neighbours" and embedding_scale=√d_model it
            is `tl.LanguageModel` with norm_first=True, activation="gelu" and rotary positions.
    """

    def __init__(self, config: Config) -> None:
        super().__init__()
        if not isinstance(config, Config):
            raise TypeError(f"config must be a modern.Config, got {type(config).__name__}")
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        nn.init.normal_(self.embedding.weight, std=config.d_model**-0.5)
        rotary = config.rotary_layers or (True,) * config.n_layers
        self.layers = nn.ModuleList(Block(config, rotary=turned) for turned in rotary)
        self.norm = _norm(config)
        self.head = nn.Linear(config.d_model, config.vocab_size, bias=False)
        if config.tied:
            self.head.weight = self.embedding.weight

    def forward(self, ids: Tensor, cache: Cache | None = None) -> Tensor:
        """Return logits [batch, seq_len, vocab_size].

        Args:
            ids: [batch, seq_len]; with a cache, only those after the ones it has seen.
            cache: from `new_cache`; grows by the keys and values of these tokens.
        """
        return self.head(self.states(ids, cache))

    def states(self, ids: Tensor, cache: Cache | None = None) -> Tensor:
        """Return what the head reads, [batch, seq_len, d_model]; arguments as for `forward`."""
        return cast(Tensor, self.norm(self.continue_from(self.embed(ids), cache=cache)))

    def embed(self, ids: Tensor) -> Tensor:
        """Return the residual stream in front of layer 0, [batch, seq_len, d_model], for ids [batch, seq_len]."""
        ids = check_ids("ids", ids, self.config.vocab_size)
        return self.embedding(ids) * self.config.embedding_scale

    def continue_from(self, stream: Tensor, layer: int = 0, *, cache: Cache | None = None) -> Tensor:
        """Return the residual stream behind the last layer for the one in front of `layer`, a run's middle.

        Args:
            stream: [batch, seq_len, d_model]. layer: from 0; n_layers, behind which nothing comes, is allowed.
            cache: as in `forward`; the layers before `layer` are not run, and what it keeps of them does not grow.
        """
        check_sequence("stream", stream, self.config.d_model)
        if check_int("layer", layer, minimum=0) > len(self.layers):
            raise ValueError(f"layer must be at most n_layers = {len(self.layers)}, got {layer}")
        if cache is not None:
            check_depth(cache.layers, self.layers)
        for number, block in enumerate(islice(self.layers, layer, None), layer):
            stream = block(stream, None if cache is None else cache.layers[number])
        return stream

    def logits(self, stream: Tensor) -> Tensor:
        """Return what the last norm and the head say of a residual stream: [..., d_model] -> [..., vocab_size]."""
        return self.head(self.norm(stream))

    def new_cache(self) -> Cache:
        """Return an empty cache for `forward`; each layer keeps what its own window sees."""
        cache = Cache(len(self.layers))
        for kept, layer in zip(cache.layers, cast("Iterable[Block]", self.layers), strict=True):
            kept.window = layer.attention.window
        return cache
