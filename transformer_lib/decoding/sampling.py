"""One token at a time: the likeliest (greedy decoding), or one drawn from the model's distribution (sampling)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .._paths import PathName
from .._validate import check_int, check_not_negative, check_positive, check_tensor
from ..model.base import TranslationModel
from ..model.evaluating import evaluating
from .stepping import check_model, check_request, make_stepper

_NO_LOGIT = 1e30  # larger than any


@torch.no_grad()
def greedy_decode(
    model: TranslationModel,
    src: Tensor,
    *,
    max_new_tokens: int,
    stop_at_eos: bool = True,
    use_cache: bool = True,
    path: PathName = "readable",
) -> Tensor:
    """Translate by taking the likeliest token at each step.

    Args:
        model: used in evaluation mode; its mode is restored. src: source ids [batch, src_len].
        max_new_tokens: at most this many tokens after bos. stop_at_eos: end a sentence at eos (the rest is padding).
        use_cache: project only the newest token at each step; same result.
        path: "readable" calls the model; "fast" computes the same logits, to rounding, in fewer operations.

    Returns:
        ids [batch, 1 + up to max_new_tokens], beginning with bos.

    Raises:
        TypeError, ValueError: src or max_new_tokens does not fit the model; a weight of the model, used or not, is NaN
            or infinite; path="fast" for a model or a request that cannot take it, with the reason.
    """
    stepping: dict[str, Any] = {"max_new_tokens": max_new_tokens, "use_cache": use_cache, "path": path}
    return _extend(model, src, lambda logits: logits.argmax(dim=-1), stop_at_eos, **stepping)


@torch.no_grad()
def sample_decode(
    model: TranslationModel,
    src: Tensor,
    *,
    max_new_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
    use_cache: bool = True,
    path: PathName = "readable",
) -> Tensor:
    """Translate by drawing each token from the model's distribution, shaped by `filter_logits`.

    Args, Returns, Raises: as `greedy_decode` and `filter_logits`; `generator` makes the draw repeatable.
    """
    draw = drawing(temperature=temperature, top_k=top_k, top_p=top_p, generator=generator)
    return _extend(model, src, draw, True, max_new_tokens=max_new_tokens, use_cache=use_cache, path=path)


def drawing(*, generator: torch.Generator | None, **shape: Any) -> Callable[[Tensor], Tensor]:
    """Return what draws ids [batch] by logits [batch, vocab_size], which `filter_logits` shapes."""

    def draw(logits: Tensor) -> Tensor:
        probabilities = exact_softmax(filter_logits(logits, **shape))
        return torch.multinomial(probabilities, 1, generator=generator)[:, 0]

    return draw


def filter_logits(
    logits: Tensor, *, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Tensor:
    """Return logits / temperature [..., vocab_size] with the tokens outside top_k or the nucleus top_p at −∞.

    Where the quotients would be too large for their type, a row's largest logit is subtracted from it first: softmax is
    the same for all shifts of a row. So a tiny temperature leaves the likeliest token, or those that share its place.

    Args:
        temperature: > 0; below one sharpens, above one flattens.
        top_k: keep the k largest, and those equal to the last of them.
        top_p: keep the fewest largest whose probabilities sum to at least top_p, in (0, 1]; 1 keeps all.

    Raises:
        TypeError, ValueError: logits is no tensor, or one of the others is out of range.
    """
    if 0 in check_tensor("logits", logits, min_rank=1).shape[-1:]:
        raise ValueError(f"logits must have at least one word, got shape {tuple(logits.shape)} [..., vocab_size]")
    logits = _tempered(logits, check_positive("temperature", temperature))
    if top_k is not None:
        keep = min(check_int("top_k", top_k), logits.shape[-1])
        logits = logits.masked_fill(logits < logits.topk(keep).values[..., -1:], -math.inf)
    if top_p is not None and not 0 < check_not_negative("top_p", top_p) <= 1:
        raise ValueError(f"top_p must lie in (0, 1], got {top_p}")
    if top_p is not None and top_p < 1:  # rounded sums reach 1 before the last token
        ordered, order = logits.sort(dim=-1, descending=True)
        probabilities = exact_softmax(ordered)
        before = probabilities.cumsum(dim=-1) - probabilities  # mass of the tokens ranked above
        dropped = (before >= top_p).scatter(-1, order, before >= top_p)  # back to vocabulary order
        logits = logits.masked_fill(dropped, -math.inf)
    return logits


def exact_softmax(logits: Tensor) -> Tensor:
    """Return softmax(logits) over the last axis, in float32 at least: sums in 16 bits would lose their small terms."""
    return logits.softmax(dim=-1, dtype=torch.promote_types(logits.dtype, torch.float32))


def _tempered(logits: Tensor, temperature: float) -> Tensor:
    """Return logits / temperature, shifted where the largest quotient of a row would be infinite."""
    logits = logits if logits.is_floating_point() else logits.to(torch.get_default_dtype())
    exact = torch.promote_types(logits.dtype, torch.float32)  # in which torch divides, 16 bits too
    divisor = min(max(temperature, torch.finfo(exact).tiny), torch.finfo(exact).max)
    if divisor >= 1 or torch.finfo(logits.dtype).max * divisor > _NO_LOGIT:
        return logits / divisor
    largest = logits.detach().amax(dim=-1, keepdim=True)  # [..., 1]
    overflows = largest.isfinite() & ~(largest / divisor).isfinite()
    return (logits - largest.where(overflows, 0.0)) / divisor


def _extend(
    model: TranslationModel,
    src: Tensor,
    choose: Callable[[Tensor], Tensor],
    stop_at_eos: bool,
    *,
    max_new_tokens: int,
    use_cache: bool,
    path: PathName,
) -> Tensor:
    """Grow the target token by token with `choose`; finished sentences leave the batch and stop costing."""
    check_model("model", model)
    src = check_request(model, src, max_new_tokens)
    config = model.config
    with evaluating(model):
        stepper = make_stepper(model, src, max_new_tokens, use_cache=use_cache, path=path)
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
