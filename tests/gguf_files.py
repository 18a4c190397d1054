"""A writer of small GGUF files, so that tests can say each byte of them."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from transformer_lib.data import gguf

NUMBER_OF = {kind.name: number for number, kind in gguf.TYPES.items()}
FORMS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<B", 10: "<Q", 11: "<q", 12: "<d"}
U32, F32, BOOL, TEXT, LIST = 4, 6, 7, 8, 9


def text(content: str | bytes) -> bytes:
    content = content.encode() if isinstance(content, str) else content
    return struct.pack("<Q", len(content)) + content


def plain(kind: int, value) -> bytes:
    return text(value) if kind == TEXT else struct.pack(FORMS[kind], value)


def value(kind: int, given) -> bytes:
    """A value with its type before it; a list is given as (type of its values, values)."""
    if kind != LIST:
        return struct.pack("<I", kind) + plain(kind, given)
    inner, values = given
    return struct.pack("<IIQ", LIST, inner, len(values)) + b"".join(plain(inner, one) for one in values)


def guessed(given) -> bytes:
    """As `value`, of the type that llama.cpp writes for such a Python object."""
    if isinstance(given, list):
        return value(LIST, (kind_of(given[0]), given))
    return value(kind_of(given), given)


def kind_of(given) -> int:
    return {bool: BOOL, int: U32, float: F32, str: TEXT}[type(given)]


def entry(name: str, shape: tuple[int, ...], kind: int, offset: int) -> bytes:
    axes = struct.pack(f"<I{len(shape)}Q", len(shape), *reversed(shape))
    return text(name) + axes + struct.pack("<IQ", kind, offset)


def file_bytes(metadata=(), entries=(), data=b"", *, magic=b"GGUF", version=3, counts=None, alignment=32) -> bytes:
    """A whole file of parts that are bytes already: (key, value) pairs, rows of the table, what follows the padding."""
    counts = counts or (len(entries), len(metadata))
    head = magic + struct.pack("<IQQ", version, *counts)
    head += b"".join(text(key) + given for key, given in metadata) + b"".join(entries)
    return head + bytes(-len(head) % alignment) + data


def stored_bytes(metadata: dict, tensors: dict[str, tuple[str, tuple[int, ...], bytes]], alignment=32) -> bytes:
    """A file of Python values and of tensors, each with its type, shape and bytes."""
    entries, data = [], b""
    for name, (kind, shape, content) in tensors.items():
        entries.append(entry(name, shape, NUMBER_OF[kind], len(data)))
        data += content + bytes(-len(content) % alignment)
    return file_bytes([(key, guessed(given)) for key, given in metadata.items()], entries, data, alignment=alignment)


def write(path: Path, *args, **options) -> Path:
    path.write_bytes(stored_bytes(*args, **options))
    return path


def random_blocks(kind: gguf.Type, n_blocks: int, seed: int = 0) -> np.ndarray:
    """Random bytes [n_blocks, bytes of a block] whose 16-bit scales are ordinary numbers."""
    rng = np.random.default_rng(seed)
    blocks = rng.integers(0, 256, (n_blocks, kind.n_bytes), dtype=np.uint8)
    for at in scales_at(kind):
        blocks[:, at : at + 2] = rng.normal(size=(n_blocks, 1)).astype("<f2").view(np.uint8)
    if kind.name in ("F32", "BF16"):
        wide = rng.normal(size=(n_blocks, 1)).astype("<f4").view(np.uint8)
        blocks = wide[:, 4 - kind.n_bytes :].copy()
    return blocks


def scales_at(kind: gguf.Type) -> tuple[int, ...]:
    """Where in a block 16-bit floats stand."""
    if kind.name in ("F32", "BF16"):
        return ()
    if kind.name == "Q6_K":
        return (208,)
    return (0, 2) if kind.name in ("Q4_1", "Q5_1", "Q4_K", "Q5_K") else (0,)
