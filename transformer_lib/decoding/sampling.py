"""From logits to sentences: greedy choice, sampling, and beam search, each with or without a key/value cache."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from .._validate import check_ids, check_int
from ..fast import forward as fast
from ..fast.stepper import FastStepper
from ..model.transformer import Transformer


def make_stepper(model: Transformer, src: Tensor, max_new_tokens: int, use_cache: bool) -> Stepper | FastStepper:
    """Return what gives the next token's logits; a plain `Transformer` has a faster one with the same numbers."""
    exact = not torch.is_autocast_enabled(src.device.type)  # it would round the fast one's residual sums, too
    if use_cache and exact and fast.applies_to(model) and (src != model.config.pad_id).any(dim=1).all():
        return FastStepper(model, src, max_new_tokens)
    return Stepper(model, src, use_cache)


class Stepper:
    """Gives the next token's logits for a growing target, re-reading all of it or through a cache."""

    def __init__(self, model: Transformer, src: Tensor, use_cache: bool) -> None:
        self.model, self.src = model, src
        self.memory = model.encode(src)
        self.cache = model.new_cache() if use_cache else None

    def next_logits(self, tgt: Tensor) -> Tensor:
        """Return [batch, tgt_vocab_size] for the token after tgt [batch, tgt_len]."""
        if self.cache is None:
            return self.model.decode(tgt, self.memory, self.src)[:, -1]
        new = tgt[:, self.cache.length :]
        return self.model.decode(new, self.memory, self.src, cache=self.cache)[:, -1]

    def select(self, rows: Tensor) -> None:
        """Keep the batch rows `rows`, in that order."""
        self.src, self.memory = self.src[rows], self.memory[rows]
        if self.cache is not None:
            self.cache.select(rows)


@torch.no_grad()
def greedy_decode(
    model: Transformer, src: Tensor, *, max_new_tokens: int, stop_at_eos: bool = True, use_cache: bool = True
) -> Tensor:
    """Translate by taking the likeliest token at each step.

    Args:
        model: used in evaluation mode; its mode is restored. src: source ids [batch, src_len].
        max_new_tokens: at most so many tokens after bos. stop_at_eos: end a sentence at eos (the rest is padding).
        use_cache: project only the newest token at each step; same result.

    Returns:
        ids [batch, 1 + up to max_new_tokens], beginning with bos.
    """
    return _extend(model, src, lambda logits: logits.max(dim=-1).indices, max_new_tokens, stop_at_eos, use_cache)


@torch.no_grad()
def sample_decode(
    model: Transformer,
    src: Tensor,
    *,
    max_new_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
    use_cache: bool = True,
) -> Tensor:
    """Translate by drawing each token from the model's distribution, shaped by `filter_logits`.

    Args, Returns: as `greedy_decode` and `filter_logits`; `generator` makes the draw repeatable.
    """

    def draw(logits: Tensor) -> Tensor:
        probabilities = filter_logits(logits, temperature=temperature, top_k=top_k, top_p=top_p).softmax(dim=-1)
        return torch.multinomial(probabilities, 1, generator=generator)[:, 0]

    return _extend(model, src, draw, max_new_tokens, True, use_cache)


def filter_logits(
    logits: Tensor, *, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Tensor:
    """Return logits / temperature [..., vocab_size] with the tokens outside top_k or the nucleus top_p at −∞.

    Args:
        temperature: > 0; below one sharpens, above one flattens.
        top_k: keep the k largest. top_p: keep the fewest largest whose probabilities sum to at least p, in (0, 1].
    """
    if not temperature > 0:
        raise ValueError(f"temperature must be positive, got {temperature}")
    logits = logits / temperature
    if top_k is not None:
        keep = min(check_int("top_k", top_k), logits.shape[-1])
        logits = logits.masked_fill(logits < logits.topk(keep).values[..., -1:], -math.inf)
    if top_p is not None:
        if not 0 < top_p <= 1:
            raise ValueError(f"top_p must lie in (0, 1], got {top_p}")
        ordered, order = logits.sort(dim=-1, descending=True)
        probabilities = ordered.softmax(dim=-1)
        before = probabilities.cumsum(dim=-1) - probabilities  # mass of the tokens ranked above
        dropped = (before >= top_p).scatter(-1, order, before >= top_p)  # back to vocabulary order
        logits = logits.masked_fill(dropped, -math.inf)
    return logits


def _extend(
    model: Transformer,
    src: Tensor,
    choose: Callable[[Tensor], Tensor],
    max_new_tokens: int,
    stop_at_eos: bool,
    use_cache: bool,
) -> Tensor:
    """Grow the target token by token with `choose`; finished sentences leave the batch and stop costing."""
    config = model.config
    check_request(model, src, max_new_tokens)
    with evaluating(model):
        stepper = make_stepper(model, src, max_new_tokens, use_cache)
        result = src.new_full((len(src), 1 + max_new_tokens), config.pad_id)
        result[:, 0] = config.bos_id
        rows = torch.arange(len(src), device=src.device)  # the sentences still growing
        length = 1
        while length <= max_new_tokens and len(rows):
            chosen = choose(stepper.next_logits(result[rows, :length]))
            result[rows, length] = chosen
            length += 1
            if stop_at_eos and (ended := chosen == config.eos_id).any():
                going_on = (~ended).nonzero()[:, 0]
                rows = rows[going_on]
                stepper.select(going_on)
        return result[:, :length]


def check_request(model: Transformer, src: Tensor, max_new_tokens: int) -> None:
    """Raise unless src holds ids of the model's vocabulary and max_new_tokens fits its max_len."""
    check_int("max_new_tokens", max_new_tokens)
    if max_new_tokens > model.config.max_len:
        raise ValueError(
            f"max_new_tokens must not exceed the model's max_len = {model.config.max_len}, got {max_new_tokens}"
        )
    check_ids("src", src, model.config.src_vocab_size, max_len=model.config.max_len)


class evaluating:
    """Context: the model in evaluation mode, and back in its old mode afterwards."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.model, self.was_training = model, model.training

    def __enter__(self) -> None:
        self.model.eval()

    def __exit__(self, *_: object) -> None:
        self.model.train(self.was_training)
