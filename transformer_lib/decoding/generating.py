"""Going on with a text, token by token, as a `modern.LanguageModel` does: each one is handed over when it is chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, overload

import torch
from torch import Tensor

from .._lists import check_items, check_rows
from .._paths import PATHS, PathName
from .._validate import check_choice, check_flag, check_id_batch, check_id_range, check_int, check_not_negative
from ..fast.modern_stepper import ModernStepper
from ..model import modern
from ..model.evaluating import evaluating
from .sampling import drawing, filter_logits
from .stepping import check_weights

Choose = Callable[[Tensor], Tensor]  # logits [batch, vocab_size] -> ids [batch]
Kept = modern.Cache | ModernStepper  # what remembers the tokens that have been read


@overload
def generate(
    model: modern.LanguageModel,
    ids: Sequence[int],
    *,
    max_new_tokens: int,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
    stop: int | Iterable[int] = (),
    use_cache: bool = True,
    cache: Kept | None = None,
    path: PathName = "readable",
) -> Iterator[int]: ...
@overload
def generate(
    model: modern.LanguageModel,
    ids: Tensor,
    *,
    max_new_tokens: int,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
    stop: int | Iterable[int] = (),
    use_cache: bool = True,
    cache: Kept | None = None,
    path: PathName = "readable",
) -> Iterator[Tensor]: ...
def generate(
    model: modern.LanguageModel,
    ids: Sequence[int] | Tensor,
    *,
    max_new_tokens: int,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
    stop: int | Iterable[int] = (),
    use_cache: bool = True,
    cache: Kept | None = None,
    path: PathName = "readable",
) -> Iterator[int] | Iterator[Tensor]:
    """Return an iterator over the tokens that the model says after `ids`, each computed when it is asked for.

    >>> for piece in tokenizer.decode_stream(tl.generate(model, tokenizer.encode("Once upon"), max_new_tokens=20)):
    ...     print(piece, end="", flush=True)

    Args:
        model: used in evaluation mode, and without gradients. ids: a list of ids, or [batch, seq_len], whose rows are
            equally long texts (there is no padding).
        max_new_tokens: at most so many tokens of each text.
        temperature: 0 takes the likeliest token, more draws one from softmax(logits / temperature).
        top_k, top_p: draw from the likeliest tokens only, as `filter_logits` has it. generator: repeats a draw.
        stop: an id, or several, after which a text ends; it is handed over, too.
        use_cache: keep keys and values, so that each token is read once; False reads the whole text for each.
        cache: of `model.new_cache()`, which has seen the first `cache.length` of these ids, and reads on; for
            path="fast" a `ModernStepper` of `fast.modern_stepper` instead, with room for all tokens.
        path: "readable" calls the model; "fast" computes the same logits, to rounding, in fewer operations. Without a
            `cache` it lays out the model's weights anew for each call, which takes about as long as ten tokens.

    Returns:
        the ids for a list, and tensors [batch] for a batch. In a batch a row that has ended repeats its last token
        until all rows have ended.

    Raises:
        TypeError, ValueError: an argument is out of range or does not fit the model; a weight of the model is NaN or
            infinite. They are raised at once, before a token is asked for.
    """
    choose = check_options(temperature=temperature, top_k=top_k, top_p=top_p, generator=generator, path=path)
    batch = _check_prompt(model, ids, cache)
    check_int("max_new_tokens", max_new_tokens)
    _check_kept(model, cache, use_cache, path)
    if use_cache and cache is None:
        most = batch.shape[1] + max_new_tokens
        cache = model.new_cache() if path == "readable" else ModernStepper(model, len(batch), most)
    stops = torch.tensor(_check_stop(stop), dtype=torch.int64, device=batch.device)
    steps = _steps(model, batch, choose, max_new_tokens, stops, cache)
    return steps if isinstance(ids, Tensor) else (int(chosen) for chosen in steps)


def _steps(
    model: modern.LanguageModel,
    ids: Tensor,
    choose: Choose,
    max_new_tokens: int,
    stops: Tensor,
    cache: Kept | None,
) -> Iterator[Tensor]:
    """Yield the next ids [batch] of texts ids [batch, seq_len], which grow by them."""
    ended = torch.zeros(len(ids), dtype=torch.bool, device=ids.device)
    for _ in range(max_new_tokens):
        chosen = choose(_next_logits(model, ids, cache)).where(~ended, ids[:, -1])
        ids = torch.cat((ids, chosen[:, None]), dim=1)  # [batch, seq_len + 1]
        ended |= torch.isin(chosen, stops)
        yield chosen
        if ended.all():
            return


@torch.no_grad()
def _next_logits(model: modern.LanguageModel, ids: Tensor, cache: Kept | None) -> Tensor:
    """Return the logits [batch, vocab_size] of the token after ids [batch, seq_len]; a cache reads the new ones."""
    new = ids if cache is None else ids[:, cache.length :]
    if isinstance(cache, ModernStepper):
        return cache.next_logits(new)
    with evaluating(model):
        logits: Tensor = model(new, cache)[:, -1]
    return logits


# Checks ----------------------------------------------------------------------------------------------------
def check_language_model(model: object) -> modern.LanguageModel:
    """Return the model if it is a `modern.LanguageModel` with finite weights."""
    if not isinstance(model, modern.LanguageModel):
        raise TypeError(f"model must be a modern.LanguageModel, got {type(model).__name__}")
    check_weights("model", model)
    return model


def check_options(
    *,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    generator: torch.Generator | None,
    path: PathName,
) -> Choose:
    """Return what chooses ids by logits as these options of `generate` say: the likeliest at temperature 0, or a draw.

    Raises:
        TypeError, ValueError: one is out of range, or would have no effect.
    """
    check_choice("path", path, PATHS)
    if check_not_negative("temperature", temperature) == 0:
        for name, value in (("top_k", top_k), ("top_p", top_p), ("generator", generator)):
            if value is not None:
                raise ValueError(f"{name} must be None at temperature 0, where nothing is drawn, got {value}")
        return lambda logits: logits.argmax(dim=-1)
    shape: dict[str, Any] = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    filter_logits(torch.zeros(1), **shape)  # refuses now what it would refuse at the first token
    return drawing(generator=generator, **shape)


def _check_kept(model: modern.LanguageModel, cache: Kept | None, use_cache: bool, path: PathName) -> None:
    """Raise unless the path has this cache."""
    if not check_flag("use_cache", use_cache):
        if cache is not None:
            raise ValueError("cache must be None with use_cache=False, got one")
        if path == "fast":
            raise ValueError('path="fast" must have use_cache=True, as it always keeps keys and values')
    wanted = ModernStepper if path == "fast" else modern.Cache
    if cache is not None and not isinstance(cache, wanted):
        raise TypeError(f'cache must be a {wanted.__name__} with path="{path}", got {type(cache).__name__}')
    if isinstance(cache, ModernStepper) and cache.weights.model is not model:
        raise ValueError("cache must be a ModernStepper of this model, got that of another")


def _check_prompt(model: object, ids: Sequence[int] | Tensor, cache: Kept | None) -> Tensor:
    """Return the prompt as int64 [batch, seq_len] on the model's device, with at least one id that is not yet read."""
    model = check_language_model(model)
    rows = ids if isinstance(ids, Tensor) else torch.tensor(check_rows("ids", [ids], fewest=1))
    rows = check_id_range("ids", check_id_batch("ids", rows), model.config.vocab_size)
    if cache is not None and cache.length >= rows.shape[1]:
        raise ValueError(f"ids must go on after the {cache.length} tokens of the cache, got {rows.shape[1]} with those")
    return rows.to(model.embedding.weight.device)


def _check_stop(stop: int | Iterable[int]) -> list[int]:
    ids = [stop] if isinstance(stop, int) else check_items("stop", stop, "ids", ordered=False)
    return [check_int("stop", i, minimum=0) for i in ids]
