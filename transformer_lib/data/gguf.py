"""GGUF, the files in which language models are handed around for laptops, read with NumPy alone.

>>> file = tl.gguf.read("model.gguf")
>>> file.metadata["llama.block_count"]
30
>>> weights = file.tensors["blk.0.attn_q.weight"]
>>> weights.type, weights.shape
('Q4_1', (576, 576))
>>> weights.blocks().shape  # of 20 bytes, each with 32 weights
(10368, 20)
>>> weights.array().dtype
dtype('float32')

A file is a header; the metadata, each a key, a type and a value; a table of the tensors; and, from the next multiple of
the alignment on, their bytes. All numbers are little-endian. Most weights are rounded in blocks: a few of them share
a scale, and each is a small integer. The format is described in docs/gguf.md of the project ggml, and the blocks are
the structures of its ggml-common.h, decoded as in ggml-quants.c.
"""

from __future__ import annotations

import math
import mmap
import os
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[Any]  # of uint8, which the types of NumPy forget where bits are shifted
Weights = npt.NDArray[np.float32]

# --- Blocks: bytes [n_blocks, bytes of a block] → weights [n_blocks, weights of a block] -----------------------------


def half(two_bytes: Bytes) -> Weights:
    """Return the 16-bit float in each row: [n_blocks, 2] → [n_blocks, 1]."""
    return two_bytes.view("<f2").astype(np.float32)


def nibbles(packed: Bytes) -> Bytes:
    """Return two numbers from 0 to 15 of each byte, first all the low ones: [..., n] → [..., 2n]."""
    return np.concatenate([packed & 15, packed >> 4], axis=-1)


def bits(packed: Bytes) -> Bytes:
    """Return the eight bits of each byte, the lowest first: [..., n] → [..., 8n]."""
    return np.unpackbits(packed, axis=-1, bitorder="little")


def joined(upper: Bytes, lower: Bytes) -> Bytes:
    """Return the numbers whose lower four bits are given apart from the others, of the same shape."""
    return upper << 4 | lower


def _signed(numbers: Bytes, zero: int) -> npt.NDArray[np.int8]:
    """Return numbers that are stored without a sign, so that `zero` stands for 0."""
    return numbers.astype(np.int8) - np.int8(zero)


def decode_f32(blocks: Bytes) -> Weights:
    """4 bytes, one weight."""
    return blocks.view("<f4").astype(np.float32)


def decode_f16(blocks: Bytes) -> Weights:
    """2 bytes, one weight."""
    return half(blocks)


def decode_bf16(blocks: Bytes) -> Weights:
    """2 bytes, one weight: the upper half of its 32-bit float."""
    return (blocks.view("<u2").astype(np.uint32) << 16).view(np.float32)


def decode_q8_0(blocks: Bytes) -> Weights:
    """34 bytes, 32 weights: a scale of 2 bytes, then 32 signed bytes; weight = scale · number."""
    return half(blocks[:, :2]) * blocks[:, 2:].view(np.int8)  # [n, 1] · [n, 32]


def decode_q4_0(blocks: Bytes) -> Weights:
    """18 bytes, 32 weights: a scale, then 16 bytes with two numbers each; weight = scale · (number − 8)."""
    return half(blocks[:, :2]) * _signed(nibbles(blocks[:, 2:]), zero=8)  # [n, 1] · [n, 32]


def decode_q4_1(blocks: Bytes) -> Weights:
    """20 bytes, 32 weights: scale, minimum, then 16 bytes with two numbers each; weight = scale · number + minimum."""
    scale, minimum = half(blocks[:, 0:2]), half(blocks[:, 2:4])  # [n, 1] each
    return scale * nibbles(blocks[:, 4:]) + minimum  # [n, 32]


def decode_q5_0(blocks: Bytes) -> Weights:
    """22 bytes, 32 weights: a scale, the fifth bit of each number, then the other four; scale · (number − 16)."""
    numbers = joined(bits(blocks[:, 2:6]), nibbles(blocks[:, 6:]))  # [n, 32]
    return half(blocks[:, :2]) * _signed(numbers, zero=16)


def decode_q5_1(blocks: Bytes) -> Weights:
    """24 bytes, 32 weights: scale, minimum, fifth bits, the other four; weight = scale · number + minimum."""
    scale, minimum = half(blocks[:, 0:2]), half(blocks[:, 2:4])
    return scale * joined(bits(blocks[:, 4:8]), nibbles(blocks[:, 8:])) + minimum  # [n, 32]


def decode_q4_k(blocks: Bytes) -> Weights:
    """144 bytes, 256 weights in 8 groups of 32, each with a scale and a minimum of its own, rounded to six bits.

    2 bytes with the scale of the scales, 2 with that of the minima, 12 with both of all groups, 128 with the numbers.
    """
    numbers = nibbles(blocks[:, 16:].reshape(-1, 4, 32))  # [n, 4, 64]: each 32 bytes hold two groups
    return _scale_groups(blocks, numbers.reshape(-1, 8, 32))


def decode_q5_k(blocks: Bytes) -> Weights:
    """176 bytes, 256 weights: as Q4_K, and before the numbers 32 bytes, bit g of byte j for weight j of group g."""
    fifth = bits(blocks[:, 16:48, None]).swapaxes(1, 2)  # [n, 32, 1] → [n, 32, 8] → [n, 8, 32]
    numbers = nibbles(blocks[:, 48:].reshape(-1, 4, 32)).reshape(-1, 8, 32)
    return _scale_groups(blocks, joined(fifth, numbers))


def _scale_groups(blocks: Bytes, numbers: Bytes) -> Weights:
    """Return scale · number − minimum, where each group has its own: numbers [n, 8, 32] → [n, 256]."""
    scales, minima = _six_bits(blocks[:, 4:16])  # [n, 8] each
    scale, minimum = half(blocks[:, 0:2]) * scales, half(blocks[:, 2:4]) * minima
    return (scale[:, :, None] * numbers - minimum[:, :, None]).reshape(-1, 256)


def _six_bits(packed: Bytes) -> tuple[Bytes, Bytes]:
    """Return the scales and the minima of 8 groups: [n, 12] → [n, 8] twice.

    Four bytes have the first four scales, four the first four minima; the upper two bits of each belong to the others,
    whose lower four are in the last four bytes, of a scale and a minimum each.
    """
    first, second, last = packed[:, 0:4], packed[:, 4:8], packed[:, 8:12]
    scales = np.concatenate([first & 63, joined(first >> 6, last & 15)], axis=1)
    return scales, np.concatenate([second & 63, joined(second >> 6, last >> 4)], axis=1)


def decode_q6_k(blocks: Bytes) -> Weights:
    """210 bytes, 256 weights in 16 groups of 16, each with a scale of its own; weight = scale · (number − 32).

    128 bytes with the lower four bits of each number, 64 with the upper two, 16 signed bytes with the scales of the
    groups, 2 with the scale of these.
    """
    lower = nibbles(blocks[:, 0:128].reshape(-1, 2, 64))  # [n, 2, 128]: each half of the weights by itself
    upper = blocks[:, 128:192].reshape(-1, 2, 1, 32) >> np.array([[0], [2], [4], [6]], np.uint8) & 3  # [n, 2, 4, 32]
    numbers = _signed(joined(upper.reshape(-1, 2, 128), lower), zero=32)
    scale = half(blocks[:, 208:210]) * blocks[:, 192:208].view(np.int8)  # [n, 16]
    return (scale[:, :, None] * numbers.reshape(-1, 16, 16)).reshape(-1, 256)


class Type(NamedTuple):
    """How weights are stored: a block has `n_weights` in `n_bytes`; `decode` is None where this module cannot."""

    name: str
    n_weights: int
    n_bytes: int
    decode: Callable[[Bytes], Weights] | None = None


# By the number that the table of tensors has. What is not decoded here can still be measured and passed over.
TYPES = {
    0: Type("F32", 1, 4, decode_f32),
    1: Type("F16", 1, 2, decode_f16),
    2: Type("Q4_0", 32, 18, decode_q4_0),
    3: Type("Q4_1", 32, 20, decode_q4_1),
    6: Type("Q5_0", 32, 22, decode_q5_0),
    7: Type("Q5_1", 32, 24, decode_q5_1),
    8: Type("Q8_0", 32, 34, decode_q8_0),
    9: Type("Q8_1", 32, 40),
    10: Type("Q2_K", 256, 84),
    11: Type("Q3_K", 256, 110),
    12: Type("Q4_K", 256, 144, decode_q4_k),
    13: Type("Q5_K", 256, 176, decode_q5_k),
    14: Type("Q6_K", 256, 210, decode_q6_k),
    15: Type("Q8_K", 256, 292),
    16: Type("IQ2_XXS", 256, 66),
    17: Type("IQ2_XS", 256, 74),
    18: Type("IQ3_XXS", 256, 98),
    19: Type("IQ1_S", 256, 50),
    20: Type("IQ4_NL", 32, 18),
    21: Type("IQ3_S", 256, 110),
    22: Type("IQ2_S", 256, 82),
    23: Type("IQ4_XS", 256, 136),
    24: Type("I8", 1, 1),
    25: Type("I16", 1, 2),
    26: Type("I32", 1, 4),
    27: Type("I64", 1, 8),
    28: Type("F64", 1, 8),
    29: Type("IQ1_M", 256, 56),
    30: Type("BF16", 1, 2, decode_bf16),
    34: Type("TQ1_0", 256, 54),
    35: Type("TQ2_0", 256, 66),
    39: Type("MXFP4", 32, 17),
    40: Type("NVFP4", 64, 36),
    41: Type("Q1_0", 128, 18),
}


# --- What a file holds ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Entry:
    """A tensor of a file, of which nothing is read before it is asked for.

    Args:
        name: such as "blk.0.attn_q.weight". shape: as NumPy has it, the last axis being the one whose weights lie side
            by side (the file lists axes the other way round). type: such as "Q4_1". offset: its first byte in the file.
    """

    name: str
    shape: tuple[int, ...]
    type: str
    offset: int
    stored: Type = field(repr=False)
    data: mmap.mmap = field(repr=False)

    @property
    def n_bytes(self) -> int:
        """How many bytes of the file it takes."""
        return math.prod(self.shape) // self.stored.n_weights * self.stored.n_bytes

    def blocks(self) -> Bytes:
        """Return its bytes as they are, a block a row: uint8 [n_blocks, bytes of a block], a read-only view."""
        return np.frombuffer(self.data, np.uint8, self.n_bytes, self.offset).reshape(-1, self.stored.n_bytes)

    def array(self) -> Weights:
        """Return its weights, decoded: float32 of its shape.

        Raises:
            ValueError: they are of a type that is not decoded here, which is named.
        """
        if self.stored.decode is None:
            known = ", ".join(kind.name for kind in TYPES.values() if kind.decode)
            raise ValueError(f"{self.name} must be of one of the types {known}, got {self.type}")
        return self.stored.decode(self.blocks()).reshape(self.shape)


@dataclass(frozen=True, eq=False)
class File:
    """What `read` returns.

    Args:
        version: of the format, 2 or 3. metadata: names → numbers, booleans, texts or lists of these. Those of the
            tokenizer begin with "tokenizer.": its tokens in the order of their ids, merges, types, special ids, and the
            template of a chat. tensors: names → entries, in the order of the file.
    """

    path: Path
    version: int
    metadata: Mapping[str, Any] = field(repr=False)
    tensors: Mapping[str, Entry] = field(repr=False)


# --- Reading --------------------------------------------------------------------------------------------------------

NUMBERS = {0: "u1", 1: "i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 10: "<u8", 11: "<i8", 12: "<f8"}
BOOLEAN, TEXT, LIST = 7, 8, 9
MAX_AXES = 4
DEFAULT_ALIGNMENT = 32


def read(path: str | os.PathLike[str]) -> File:
    """Return the metadata and the table of tensors of a GGUF file of version 2 or 3; the weights stay where they are.

    The file stays mapped into memory as long as something of what is returned is in use.

    Raises:
        OSError: there is no such file, or it cannot be read.
        ValueError: it is of another kind or version, cut off, or contradicts itself, such as two tensors of one name.
            Nothing is allocated for numbers that the file only claims to have.
    """
    path = Path(path)
    with path.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            raise ValueError(f"{path.name} must be a GGUF file, got an empty one")
        place = _Place(path.name, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    version = _version(place)
    n_tensors = place.count("tensors", smallest=24)
    n_keys = place.count("entries of metadata", smallest=13)
    metadata = dict(_unique(place, "a key", [(place.text("a key"), _value(place)) for _ in range(n_keys)]))
    listed = _unique(place, "a tensor", [(place.text("a tensor's name"), _where(place)) for _ in range(n_tensors)])
    alignment = _alignment(place, metadata)
    start = -(-place.at // alignment) * alignment
    tensors = {name: _entry(place, name, *where, start=start, alignment=alignment) for name, where in listed}
    _check_apart(place, tensors)
    return File(path, version, metadata, tensors)


class _Place:
    """A place in the bytes of a file, from which it is read on."""

    def __init__(self, name: str, data: mmap.mmap) -> None:
        self.name, self.data, self.at = name, data, 0

    def take(self, n_bytes: int, what: str) -> bytes:
        left = len(self.data) - self.at
        if n_bytes > left:
            raise self.error(f"have {n_bytes} bytes of {what} here", f"the last {left} of a file that is cut off")
        self.at += n_bytes
        return self.data[self.at - n_bytes : self.at]

    def number(self, form: str, what: str) -> int:
        (number,) = struct.unpack(form, self.take(struct.calcsize(form), what))
        return int(number)

    def count(self, what: str, *, smallest: int) -> int:
        """Return how many of something follow, of which each takes at least `smallest` bytes."""
        count, left = self.number("<Q", f"the number of {what}"), len(self.data) - self.at
        if count * smallest > left:
            raise self.error(f"have {count} {what} from here", f"{left} bytes, too few")
        return count

    def text(self, what: str) -> str:
        content = self.take(self.number("<Q", f"the length of {what}"), what)
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise self.error(f"have {what} in UTF-8 before here", f"{content[:40]!r}") from error

    def error(self, expected: str, got: str) -> ValueError:
        return ValueError(f"{self.name} must {expected} (byte {self.at}), got {got}")


def _version(place: _Place) -> int:
    magic = place.take(4, "the word GGUF")
    if magic != b"GGUF":
        raise ValueError(f"{place.name} must be a GGUF file, which begins with b'GGUF', got {magic!r}")
    version = place.number("<I", "the version")
    if version not in (2, 3):
        raise place.error("be of version 2 or 3 of GGUF, little-endian", f"version {version}")
    return version


def _unique(place: _Place, what: str, pairs: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen or not name:
            raise place.error(f"have {what} of each name once before here", f"{name!r} {'twice' if name else 'as one'}")
        seen.add(name)
    return pairs


def _value(place: _Place) -> Any:
    """Return one value of the metadata; a list has its type, its length, then its values side by side."""
    kind = place.number("<I", "the type of a value")
    if kind != LIST:
        return _values(place, kind, 1)[0]
    kind = place.number("<I", "the type of a list")
    return _values(place, kind, place.count("values", smallest=8 if kind == TEXT else 1))


def _values(place: _Place, kind: int, count: int) -> list[Any]:
    if kind == TEXT:
        return [place.text("a text") for _ in range(count)]
    if kind != BOOLEAN and kind not in NUMBERS:
        raise place.error("have a type of values from 0 to 12, and no lists of lists, before here", f"type {kind}")
    dtype = np.dtype(NUMBERS.get(kind, "u1"))
    values = np.frombuffer(place.take(count * dtype.itemsize, "values"), dtype)
    if kind == BOOLEAN and count and values.max() > 1:
        raise place.error("have booleans of 0 or 1 before here", f"{values.max()}")
    return (values.astype(bool) if kind == BOOLEAN else values).tolist()


def _where(place: _Place) -> tuple[tuple[int, ...], int, int]:
    """Return shape, number of the type, and offset of the next tensor in the table."""
    n_axes = place.number("<I", "the number of axes")
    if n_axes > MAX_AXES:
        raise place.error(f"have at most {MAX_AXES} axes of a tensor before here", f"{n_axes}")
    lengths = [place.number("<Q", "a tensor's shape") for _ in range(n_axes)]
    return tuple(reversed(lengths)), place.number("<I", "a type"), place.number("<Q", "an offset")


def _alignment(place: _Place, metadata: Mapping[str, Any]) -> int:
    alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if type(alignment) is not int or alignment < 1 or alignment & (alignment - 1):
        raise ValueError(f"{place.name} must have a power of two as general.alignment, got {alignment!r}")
    return alignment


def _entry(
    place: _Place, name: str, shape: tuple[int, ...], number: int, offset: int, *, start: int, alignment: int
) -> Entry:
    if number not in TYPES:
        raise ValueError(f"{place.name} must have a type of GGUF for {name!r}, got number {number}, which is unknown")
    kind, row = TYPES[number], shape[-1] if shape else 1
    if 0 in shape or row % kind.n_weights:
        whole = f"whole blocks of {kind.n_weights} weights ({kind.name}) in each row of {name!r}"
        raise ValueError(f"{place.name} must have {whole}, got shape {shape}")
    entry = Entry(name, shape, kind.name, start + offset, kind, place.data)
    if offset % alignment or entry.offset + entry.n_bytes > len(place.data):
        within = f"{entry.n_bytes} bytes of {name!r} within its {len(place.data)}, at a multiple of {alignment}"
        raise ValueError(f"{place.name} must have the {within}, got them {offset} after byte {start}")
    return entry


def _check_apart(place: _Place, tensors: Mapping[str, Entry]) -> None:
    in_order = sorted(tensors.values(), key=lambda entry: entry.offset)
    for entry, following in zip(in_order, in_order[1:], strict=False):
        if entry.offset + entry.n_bytes > following.offset:
            names = f"{entry.name!r} and {following.name!r}"
            raise ValueError(f"{place.name} must have each tensor in bytes of its own, got {names} in the same")
