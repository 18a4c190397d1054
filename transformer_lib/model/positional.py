"""Five ways to tell a Transformer where a token is.

`sinusoidal` and `learned` are added to the token embeddings; `rotary` and `relative` act inside self-attention;
`none` does nothing, for comparison.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .._validate import check_choice, check_int, check_not_negative, check_positive, check_tensor, check_width

POSITIONS = ("sinusoidal", "learned", "rotary", "relative", "none")
AT_SCORES = ("rotary", "relative", "none")  # those that a layer can be made with
PAIRS = ("neighbours", "halves")  # which features `RotaryPosition` turns together


def sinusoidal_encoding(seq_len: int, d_model: int) -> Tensor:
    """Return the table of Vaswani et al. §3.5, [seq_len, d_model], angles in radians.

    PE[pos, 2j] = sin(pos · ω_j) and PE[pos, 2j+1] = cos(pos · ω_j) with ω_j = 10000^(−2j/d_model).

    Raises:
        TypeError, ValueError: a size is not a positive int, or d_model is odd.
    """
    check_int("seq_len", seq_len)
    angles = torch.arange(seq_len).double()[:, None] * _frequencies("d_model", d_model)  # [seq_len, d_model / 2]
    pairs = torch.stack((angles.sin(), angles.cos()), dim=-1)  # [seq_len, d_model / 2, 2]
    return pairs.flatten(1).to(torch.get_default_dtype())  # sine and cosine interleaved: [seq_len, d_model]


def _frequencies(name: str, width: int, base: float = 10000.0, device: torch.device | None = None) -> Tensor:
    """Return ω_j = base^(−2j/width), [width / 2], in float64 so that far positions keep their phase."""
    check_int(name, width, minimum=2)
    if width % 2:
        raise ValueError(f"{name} must be even (sine and cosine come in pairs), got {width}")
    return base ** (-torch.arange(0, width, 2, device=device, dtype=torch.float64) / width)


class SinusoidalPosition(nn.Module):
    """Adds `sinusoidal_encoding` to x. The table is a constant, not a parameter, and is not saved."""

    table: Tensor  # [max_len, d_model]

    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        self.register_buffer("table", sinusoidal_encoding(max_len, d_model), persistent=False)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """Return x + PE[start : start + seq_len]; x is [batch, seq_len, d_model]."""
        return x + _rows(self.table, x, start).to(x.dtype)


class LearnedPosition(nn.Module):
    """Adds a learned vector per position (a row of a table) to x; knows no position past max_len."""

    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_len, d_model) * 0.02)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """Return x + table[start : start + seq_len]; x is [batch, seq_len, d_model]."""
        return x + _rows(self.table, x, start)


def _rows(table: Tensor, x: Tensor, start: int) -> Tensor:
    stop = start + x.shape[1]
    if stop > table.shape[0]:
        raise ValueError(f"x must end before max_len = {table.shape[0]}, got {x.shape[1]} tokens from position {start}")
    check_width("x", x, table.shape[1], "d_model")
    return table[start:stop]


class NoPosition(nn.Module):
    """Returns x unchanged: the model without absolute positions, or a layer whose queries and keys are not rotated."""

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """Return x."""
        return x

    def rotate(self, x: Tensor, start: int = 0) -> Tensor:
        """Return x, where `RotaryPosition` would rotate it."""
        return x


@dataclass(frozen=True, kw_only=True)
class RotaryScaling:
    """Slower rotary frequencies, with which a model reads longer texts than those of its first training.

    A feature pair that makes fewer than `low` turns in `original_length` positions has not been seen at every angle:
    its frequency ω is divided by `factor`. One that makes more than `high` stays, and in between lies
    s ω + (1 − s) ω / factor, where s rises from 0 to 1 (Llama 3.1, Grattafiori et al. 2024; "llama3" in a config.json).

    Args:
        factor: what slow frequencies are divided by. original_length: of texts in the first training, in tokens.
            Without it all frequencies are divided ("linear" in a config.json).
        low, high: turns of a pair.

    Raises:
        TypeError, ValueError: factor is not above 0, original_length no positive int, or not 0 ≤ low < high.
    """

    factor: float
    original_length: int | None = None
    low: float = 1.0
    high: float = 4.0

    def __post_init__(self) -> None:
        check_positive("factor", self.factor)
        if self.original_length is not None:
            check_int("original_length", self.original_length)
        if check_not_negative("low", self.low) >= check_positive("high", self.high):
            raise ValueError(f"low must be below high, got low={self.low}, high={self.high}")

    def scaled(self, frequencies: Tensor) -> Tensor:
        """Return the frequencies, in radians per position, as they are after scaling."""
        if self.original_length is None:
            return frequencies / self.factor
        turns = self.original_length * frequencies / (2 * math.pi)
        kept = ((turns - self.low) / (self.high - self.low)).clamp(0, 1)
        return kept * frequencies + (1 - kept) * frequencies / self.factor


class RotaryPosition(nn.Module):
    """Rotates queries and keys by their position (Su et al. 2021, RoPE), so scores depend on offsets alone.

    Args:
        base: the frequencies are ω_j = base^(−2j/d_k); a larger base turns the slow pairs more slowly.
        pairs: which features turn together. "neighbours" are 2j and 2j + 1, as in the paper; "halves" are j and
            j + d_k/2, as in the files of Llama and its relatives. Weights trained with one need that one.
        scaling: a `RotaryScaling` of the frequencies, for long texts; none by default.

    Raises:
        TypeError, ValueError: base is not above 0, pairs is not one of PAIRS, or scaling is of another type.
    """

    def __init__(self, base: float = 10000.0, pairs: str = "neighbours", scaling: RotaryScaling | None = None) -> None:
        super().__init__()
        self.base, self.pairs = check_positive("base", base), check_choice("pairs", pairs, PAIRS)
        self.scaling = check_scaling("scaling", scaling)

    def rotate(self, x: Tensor, start: int = 0) -> Tensor:
        """Return x [..., seq_len, d_k] with feature pair j of position pos turned by the angle pos · ω_j."""
        check_tensor("x", x, min_rank=2)
        return self.rotate_at(x, torch.arange(start, start + x.shape[-2], device=x.device))

    def rotate_at(self, x: Tensor, positions: Tensor) -> Tensor:
        """Return x [..., seq_len, d_k], each row turned by its own position.

        positions: whole numbers, broadcastable to [..., seq_len], as where sentences of a batch are of different
        lengths.
        """
        omega = _frequencies("d_k", x.shape[-1], self.base, positions.device)
        omega = omega if self.scaling is None else self.scaling.scaled(omega)
        angles = positions.double()[..., None] * omega  # [..., seq_len, d_k / 2]
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        if self.pairs == "halves":
            first, second = x.chunk(2, dim=-1)  # [..., seq_len, d_k / 2] each
            return torch.cat((first * cos - second * sin, first * sin + second * cos), dim=-1)
        even, odd = x[..., 0::2], x[..., 1::2]
        turned = torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1)  # [..., seq_len, d_k / 2, 2]
        return turned.flatten(-2)


def check_scaling(name: str, value: object) -> RotaryScaling | None:
    """Return `value` if it is a `RotaryScaling` or None."""
    if value is not None and not isinstance(value, RotaryScaling):
        raise TypeError(f"{name} must be a RotaryScaling or None, got {value!r}")
    return value


class RelativeBias(nn.Module):
    """Adds a learned number per head and clipped offset to the scaled scores (after Shaw et al. 2018; T5's form).

    Offsets j − i beyond ±max_offset share the outermost entry, so no length is out of range.
    """

    def __init__(self, n_heads: int, max_offset: int = 16) -> None:
        super().__init__()
        self.max_offset = check_int("max_offset", max_offset)
        self.table = nn.Parameter(torch.zeros(check_int("n_heads", n_heads), 2 * max_offset + 1))

    def forward(self, q_len: int, k_len: int) -> Tensor:
        """Return the bias [n_heads, q_len, k_len]; the queries are the last q_len of the k_len positions."""
        return self.at(torch.arange(k_len - q_len, k_len, device=self.table.device), k_len)

    def at(self, queries: Tensor, k_len: int) -> Tensor:
        """Return the bias [n_heads, q_len, k_len] of queries at these positions [q_len], in any order."""
        offsets = torch.arange(k_len, device=self.table.device)[None, :] - queries[:, None]  # [q_len, k_len]
        return self.table[:, offsets.clamp(-self.max_offset, self.max_offset) + self.max_offset]


def make_position(kind: str, max_len: int, d_model: int) -> nn.Module:
    """Return the module that is applied to the embeddings for `kind`; rotary and relative act elsewhere.

    Raises:
        ValueError: `kind` is not one of POSITIONS.
    """
    check_choice("position", kind, POSITIONS)
    if kind == "sinusoidal":
        return SinusoidalPosition(max_len, d_model)
    if kind == "learned":
        return LearnedPosition(max_len, d_model)
    return NoPosition()


def score_position(kind: str) -> str:
    """Return what the layers of a model with positions of this kind are made with: one of AT_SCORES.

    Raises:
        ValueError: `kind` is not one of POSITIONS.
    """
    return kind if check_choice("position", kind, POSITIONS) in AT_SCORES else "none"


def make_score_position(kind: str, n_heads: int) -> RotaryPosition | RelativeBias | None:
    """Return the module that acts inside self-attention for `kind`, or None for "none".

    Raises:
        ValueError: `kind` is not one of AT_SCORES; what is added to the embeddings is added outside the layers.
    """
    if kind in POSITIONS and kind not in AT_SCORES:
        raise ValueError(
            f"position must be one of {', '.join(map(repr, AT_SCORES))} in a layer or stack, got {kind!r}: "
            f"apply {type(make_position(kind, 2, 2)).__name__}(max_len, d_model) to the embeddings instead"
        )
    check_choice("position", kind, AT_SCORES)
    if kind == "rotary":
        return RotaryPosition()
    return RelativeBias(n_heads) if kind == "relative" else None
