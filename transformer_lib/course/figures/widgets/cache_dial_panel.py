"""W30, the cache dial: what the KV cache of one conversation weighs, beside those of models whose shapes are public."""

from __future__ import annotations

from typing import NamedTuple

from ...._validate import check_choice
from ....costs import cache_bytes
from ..plotting.base import counted
from ..svg import cache_dial as drawing
from ..svg.elements import Picture
from .controls import choice, number
from .costs_panel import spoken_bytes
from .panel import Panel


class Shape(NamedTuple):
    """What decides the bytes of a cache: layers, heads of keys, their width, and a window or None."""

    n_layers: int
    n_kv_heads: int
    d_head: int
    window: int | None = None


NAMED = {
    "Llama 2 7B": Shape(32, 32, 128),
    "Llama 3 8B": Shape(32, 8, 128),
    "Qwen3 8B": Shape(36, 8, 128),
    "Mistral 7B v0.1": Shape(32, 8, 128, 4096),
}
HEADS = (1, 2, 4, 8, 16, 32, 64)
WINDOWS = (None, 1024, 4096, 16384)
NUMBERS = {4: "float32", 2: "bfloat16", 1: "int8"}
CARD = 24 * 2**30  # bytes


def cache_dial(
    *,
    n_layers: int = 32,
    n_kv_heads: int = 8,
    d_head: int = 128,
    window: int | None = None,
    context: int = 8192,
    itemsize: int = 2,
) -> Panel:
    """Turn what decides the size of a KV cache, and see its bytes, and how many such caches fit into 24 GiB.

    Args:
        n_layers: 1 to 128. n_kv_heads: heads of keys and values, one of HEADS. d_head: their width, 64, 128 or 256.
        window: how many positions a query sees, one of WINDOWS; None for all. context: tokens so far, 16 to 131072.
        itemsize: bytes of a number, one of NUMBERS.

    Raises:
        ValueError: a value that the panel does not offer.
    """
    offered = {"n_kv_heads": HEADS, "d_head": (64, 128, 256), "window": WINDOWS, "itemsize": tuple(NUMBERS)}
    given = {"n_kv_heads": n_kv_heads, "d_head": d_head, "window": window, "itemsize": itemsize}
    for name, values in offered.items():
        check_choice(name, given[name], values)
    windows = [f"{size:,}" if size else "none" for size in WINDOWS]
    controls = {
        "context": number("tokens so far", context, 16, 131072, powers=True),
        "n_layers": number("layers", n_layers, 1, 128),
        "n_kv_heads": choice("heads of keys", HEADS, n_kv_heads),
        "d_head": choice("width of a head", offered["d_head"], d_head),
        "window": choice("window", [size or 0 for size in WINDOWS], window or 0, names=windows),
        "itemsize": choice("numbers", list(NUMBERS), itemsize, names=list(NUMBERS.values())),
    }
    few = {"context": [2**k for k in range(11, 18)], "n_layers": (16, 32, 80), "n_kv_heads": (1, 4, 8, 32)}
    return Panel(draw_caches, controls, widget_id="W30", says_lines=2, carried=few)


def bytes_of(shape: Shape, context: int, itemsize: int) -> int:
    """Return the bytes of all keys and values of one conversation; a window keeps its last positions alone."""
    kept = context if shape.window is None else min(context, shape.window)
    return cache_bytes(kept, shape.n_kv_heads * shape.d_head, shape.n_layers, itemsize=itemsize)


def draw_caches(context: int, n_layers: int, n_kv_heads: int, d_head: int, window: int, itemsize: int) -> Picture:
    """Draw the reader's shape above the named ones; a window of 0 is none."""
    context, yours = round(context), Shape(n_layers, n_kv_heads, d_head, window or None)
    rows = [_row(name, shape, context, itemsize) for name, shape in {"yours": yours, **NAMED}.items()]
    title = f"{context:,} tokens, numbers in {NUMBERS[itemsize]}"
    size, users = rows[0].bytes, CARD // rows[0].bytes
    says = f"{_words(yours)}, {title}: {spoken_bytes(size)} for each conversation; {users:,} of them in 24 GiB"
    table = [["model", "shape", "bytes", "in 24 GiB"]]
    table += [[row.name, row.shape, f"{row.bytes:,}", row.users] for row in rows]
    body = drawing.bars(rows, title, "fit into 24 GiB")
    alt = f"A bar for each model, as long as its cache has bytes. {says}."
    return Picture(body, drawing.WIDTH, drawing.height(len(rows)), alt, says, table=table)


def _row(name: str, shape: Shape, context: int, itemsize: int) -> drawing.Row:
    size, whole = (bytes_of(each, context, itemsize) for each in (shape, shape._replace(window=None)))
    short = f"{shape.n_layers} layers, {shape.n_kv_heads} × {shape.d_head}{_window(shape)}"
    return drawing.Row(name, short, size, whole, spoken_bytes(size), f"{CARD // size:,}")


def _words(shape: Shape) -> str:
    layers, heads = counted(shape.n_layers, "layer"), counted(shape.n_kv_heads, "head")
    return f"{layers}, {heads} of {shape.d_head}{_window(shape)}"


def _window(shape: Shape) -> str:
    return f", window {shape.window:,}" if shape.window else ""
