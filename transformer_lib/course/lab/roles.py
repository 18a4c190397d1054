"""What are queries, keys and values each for? Heads in which two roles share one matrix (notebook 03).

`load_results()["versions"]["Q = K"]["8"]["300"]["right"]` has a share for each seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from . import stored

load_results = stored.loader("roles.json")
SYMBOLS, COLOURS, BATCH_SIZE = 8, 4, 64
FEATURES = SYMBOLS + COLOURS
RATE = 0.03  # of Adam
TESTED = (1000, 99)  # sentences on which a head is measured, and their seed


@dataclass(frozen=True)
class Version:
    """Which roles share a matrix, and what else is different.

    Args:
        widths: the widths d_k = d_v at which it is trained.
        query: "own" matrix; the "key" itself; the key "shifted" by one component, or with the "signs" of half of its
            components flipped; or "token": queries and keys are the tokens themselves, and only d_v is a width.
        value_is_key: W_V = W_K.
        keys_see, values_see: what keys (and queries that are keys) or values are made of: "all", "symbol" or "colour".
        not_itself: no token may read itself.
        unit_keys: keys are divided by their length, after queries that are keys have been made from them.
        rate: the learning rate.
    """

    widths: tuple[int, ...]
    query: str = "own"
    value_is_key: bool = False
    keys_see: str = "all"
    values_see: str = "all"
    not_itself: bool = False
    unit_keys: bool = False
    rate: float = RATE


FEATURES_OF = {"all": slice(0, FEATURES), "symbol": slice(0, SYMBOLS), "colour": slice(SYMBOLS, FEATURES)}
VERSIONS = {
    "three matrices": Version((1, 2, 3, 4, 8)),
    "Q = K": Version((2, 3, 4, 8, 12), query="key"),
    "Q = K, rate .01": Version((2, 3, 4, 8, 12), query="key", rate=0.01),
    "shifted": Version((4, 8), query="shifted"),
    "signs": Version((4, 8), query="signs"),
    "not itself": Version((4, 8), query="key", not_itself=True),
    "not itself, blind": Version((8,), query="key", not_itself=True, keys_see="symbol"),
    "not itself, unit keys": Version((4, 8), query="key", not_itself=True, unit_keys=True),
    "V = K": Version((2, 3, 4, 8), value_is_key=True),
    "V = K, found by symbol alone": Version((2, 3), value_is_key=True, keys_see="symbol"),
    "V = K, handing over colour alone": Version((2, 3), value_is_key=True, values_see="colour"),
    "no projections": Version((8,), query="token"),
}


class Sentences(NamedTuple):
    """Sentences in which each of eight symbols occurs once, in random order, and each token has a colour.

    x: [..., 8, 12], the symbol and the colour as one 1 each. symbol, colour: [..., 8].
    answer: [..., 8], the colour of the token whose symbol comes next, which after the last is the first.
    """

    x: Tensor
    symbol: Tensor
    colour: Tensor
    answer: Tensor


def sentences(size: int, generator: torch.Generator) -> Sentences:
    """Return `size` random sentences."""
    symbol = torch.rand(size, SYMBOLS, generator=generator).argsort(dim=-1)
    colour = torch.randint(COLOURS, (size, SYMBOLS), generator=generator)
    x = torch.cat([torch.eye(SYMBOLS)[symbol], torch.eye(COLOURS)[colour]], dim=-1)
    return Sentences(x, symbol, colour, answers(symbol, colour))


def answers(symbol: Tensor, colour: Tensor) -> Tensor:
    """Return for each token [..., 8] the colour of the token with the next symbol."""
    position = symbol.argsort(dim=-1)  # of each symbol
    return colour.gather(-1, position.gather(-1, (symbol + 1) % SYMBOLS))


def tested() -> Sentences:
    """Return the sentences on which every head is measured; none is trained on them."""
    size, seed = TESTED
    return sentences(size, torch.Generator().manual_seed(seed))


def only(x: Tensor, features: str) -> Tensor:
    """Return tokens [..., 12] with all features but these, a key of FEATURES_OF, set to 0."""
    seen = torch.zeros(FEATURES)
    seen[FEATURES_OF[features]] = 1
    return x * seen


def flip_half(key: Tensor) -> Tensor:
    """Return keys [..., d_k] with the sign of the second half of their components flipped."""
    first = key.shape[-1] // 2
    return torch.cat([key[..., :first], -key[..., first:]], dim=-1)


TURNS: dict[str, Callable[[Tensor], Tensor]] = {
    "key": lambda key: key,
    "shifted": lambda key: key.roll(1, dims=-1),
    "signs": flip_half,
}


def after_swap(given: Sentences, order: Sequence[int]) -> dict[str, Tensor]:
    """Return what the answers [..., 8] may be once the tokens have taken vectors of others, those in `order`."""
    return {
        "as before": given.answer,
        "questions swapped": given.answer[..., order],
        "colours swapped": answers(given.symbol, given.colour[..., order]),
    }


def most_frequent_of_others(given: Sentences) -> float:
    """Return the share of answers that are right if each token names the commonest colour of the others."""
    each = F.one_hot(given.colour)  # [..., 8, 4]
    others = each.sum(dim=-2, keepdim=True) - each
    return (others.argmax(dim=-1) == given.answer).float().mean().item()


class Heads:
    """Heads of one version side by side, each with W_Q, W_K, W_V and W_O, and nothing behind them.

    Args:
        version: a key of VERSIONS. d_k: width of queries, keys and values.
        seeds: one for each head, which decides its first matrices and its batches.
    """

    def __init__(self, version: str, d_k: int, seeds: Sequence[int]) -> None:
        if version not in VERSIONS:
            raise ValueError(f"version must be one of {', '.join(map(repr, VERSIONS))}, got {version!r}")
        self.version = VERSIONS[version]
        self.generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        shapes = {"Q": (FEATURES, d_k), "K": (FEATURES, d_k), "V": (FEATURES, d_k), "O": (d_k, COLOURS)}
        self.matrices = {name: self._draw(*shape).requires_grad_() for name, shape in shapes.items()}

    def _draw(self, height: int, width: int) -> Tensor:
        """Return a matrix for each head, [heads, 1, height, width]; the 1 is broadcast over a batch."""
        drawn = [torch.randn(1, height, width, generator=generator) for generator in self.generators]
        return torch.stack(drawn) / math.sqrt(height)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values of tokens [..., 8, 12], each [heads, ..., 8, width]."""
        version = self.version
        key = only(x, version.keys_see) @ self.matrices["K"]
        value = only(x, version.values_see) @ self.matrices["K" if version.value_is_key else "V"]
        if version.query == "token":
            everywhere = x.expand(len(self.generators), *x.shape[-3:])
            return everywhere, everywhere, value
        if version.query == "own":
            return x @ self.matrices["Q"], key, value
        return TURNS[version.query](key), F.normalize(key, dim=-1) if version.unit_keys else key, value

    def weights(self, query: Tensor, key: Tensor) -> Tensor:
        """Return the attention weights [heads, ..., 8, 8]."""
        scores = query @ key.mT / math.sqrt(query.shape[-1])
        if self.version.not_itself:
            scores = scores.masked_fill(torch.eye(SYMBOLS, dtype=torch.bool), -torch.inf)
        return scores.softmax(dim=-1)

    def attend(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the weights [heads, ..., 8, 8] and a logit for each colour [heads, ..., 8, 4]."""
        query, key, value = self.project(x)
        weights = self.weights(query, key)
        return weights, weights @ value @ self.matrices["O"]

    @torch.no_grad()
    def named(self, x: Tensor, order: Sequence[int] | None = None, moved: Sequence[str] = ()) -> Tensor:
        """Return the colour that each token of x [batch, 8, 12] names, [heads, batch, 8].

        Args:
            order: the tokens from which the eight tokens of a sentence take what is `moved`; by default their own.
            moved: some of "query", "key" and "value".

        Raises:
            ValueError: something else is moved.
        """
        if unknown := set(moved) - {"query", "key", "value"}:
            raise ValueError(f"moved must be some of query, key and value, got {', '.join(sorted(unknown))}")
        places = torch.arange(SYMBOLS) if order is None else torch.as_tensor(order)
        parts = dict(zip(("query", "key", "value"), self.project(x), strict=True))
        parts |= {role: parts[role][..., places, :] for role in moved}
        received = self.weights(parts["query"], parts["key"]) @ parts["value"]
        return (received @ self.matrices["O"]).argmax(dim=-1)

    def train(self, steps: int, rate: float | None = None) -> Heads:
        """Take steps of Adam on new batches, at this rate or the version's, and return the heads themselves."""
        optimizer = torch.optim.Adam(self.matrices.values(), self.version.rate if rate is None else rate)
        for _ in range(steps):
            drawn = [sentences(BATCH_SIZE, one) for one in self.generators]
            batch = Sentences(*map(torch.stack, zip(*drawn, strict=True)))
            logits = self.attend(batch.x)[1].movedim(-1, 1)  # [heads, colours, batch, 8]
            loss = F.cross_entropy(logits, batch.answer, reduction="none").mean(dim=(1, 2))
            optimizer.zero_grad()
            loss.sum().backward()  # no matrix is shared between heads, so each gets the gradient of its own loss
            optimizer.step()
        self.matrices = {name: matrix.detach().requires_grad_() for name, matrix in self.matrices.items()}
        return self

    @torch.no_grad()
    def share_right(self) -> list[float]:
        """Return for each head the share of right answers on the tested sentences."""
        test = tested()
        return (self.attend(test.x)[1].argmax(dim=-1) == test.answer).float().mean(dim=(1, 2)).tolist()

    @torch.no_grad()
    def by_symbol(self) -> Tensor:
        """Return the mean weight that symbol s gives to symbol t, [heads, s, t], on the tested sentences."""
        test = tested()
        weights, position = self.attend(test.x)[0], test.symbol.argsort(dim=-1)
        heads, size = weights.shape[:2]
        rows = weights.gather(2, position[:, :, None].expand(heads, size, SYMBOLS, SYMBOLS))
        return rows.gather(3, position[:, None, :].expand(heads, size, SYMBOLS, SYMBOLS)).mean(dim=1)

    @torch.no_grad()
    def tokens_ahead(self) -> list[float]:
        """Return for each head how many of the eight tokens of a sentence look ahead, on average.

        A token looks ahead if it gives its successor more weight than its predecessor.
        """
        test = tested()
        weights, position = self.attend(test.x)[0], test.symbol.argsort(dim=-1)
        neighbours = [position.gather(-1, (test.symbol + step) % SYMBOLS) for step in (1, -1)]
        ahead, behind = (weights.gather(-1, at[..., None].expand(len(weights), -1, -1, 1)) for at in neighbours)
        return (ahead > behind).float().sum(dim=(2, 3)).mean(dim=1).tolist()

    @torch.no_grad()
    def moved_by_colours(self) -> list[float]:
        """Return for each head the share of a token's weight that moves when tokens get their neighbours' colours."""
        x = tested().x
        recoloured = torch.cat([x[..., :SYMBOLS], x[..., SYMBOLS:].roll(1, dims=1)], dim=-1)
        before, after = (self.attend(tokens)[0] for tokens in (x, recoloured))
        return ((before - after).abs().sum(dim=-1).mean(dim=(1, 2)) / 2).tolist()
