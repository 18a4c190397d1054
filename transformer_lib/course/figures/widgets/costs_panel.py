"""W12, the cost calculator: what a stack of encoder layers takes, and from which length the pairs dominate."""

from __future__ import annotations

from collections.abc import Mapping

from ...._validate import check_choice
from ....costs import cache_bytes, crossover_length, encoder_layer_cost, score_bytes
from ..plotting.base import counted
from ..svg import cost_bars
from ..svg.elements import Picture, text
from .controls import choice, number
from .panel import Panel

WIDTHS = (64, 128, 256, 512, 1024, 2048, 4096)
HEADS = (1, 2, 4, 8, 16, 32, 64)
_LENGTHS = tuple(2**k for k in range(4, 18))


def cost_calculator(*, seq_len: int = 1024, d_model: int = 512, n_heads: int = 8, n_layers: int = 6) -> Panel:
    """Choose the sizes of a stack with d_ff = 4 · d_model; see its multiply-adds, the bytes of its scores, and more.

    Everything is for one sentence in float32. Raises ValueError when seq_len is not 16 to 131072, d_model not one of
    WIDTHS, n_heads not one of HEADS, or n_layers not 1 to 96.
    """
    controls = {
        "seq_len": number("length (tokens)", seq_len, 16, 131072, powers=True),
        "d_model": choice("d_model", WIDTHS, check_choice("d_model", d_model, WIDTHS)),
        "n_heads": choice("heads", HEADS, check_choice("n_heads", n_heads, HEADS)),
        "n_layers": number("layers", n_layers, 1, 96),
    }
    return Panel(draw_costs, controls, widget_id="W12", carried={"n_layers": (1, 6, 24, 96)})


def draw_costs(seq_len: int, d_model: int, n_heads: int, n_layers: int) -> Picture:
    """Draw the shares of the multiply-adds, their growth with the length, and the bytes of scores and cache."""
    seq_len = round(seq_len)
    d_ff = 4 * d_model
    cost = encoder_layer_cost(seq_len, d_model, d_ff).times(n_layers)
    crossing = crossover_length(d_model, d_ff)
    shares = dict(zip(cost_bars.PARTS, (cost.projections, cost.pairs, cost.feed_forward), strict=True))
    costs = [encoder_layer_cost(n, d_model, d_ff).times(n_layers) for n in _LENGTHS]
    colours = list(cost_bars.PARTS.values())
    series = {
        "pairs: grow with n²": ([c.pairs for c in costs], colours[1]),
        "the rest: grows with n": ([c.linear for c in costs], colours[2]),
    }
    layer, doubled = (score_bytes(n, n, n_heads) for n in (seq_len, 2 * seq_len))
    rows = {
        "scores of one layer": spoken_bytes(layer),
        "the same, at twice the length": spoken_bytes(doubled),
        "attention weights kept to train, all layers": spoken_bytes(n_layers * layer),
        "one 256 × 256 block, all heads": spoken_bytes(score_bytes(256, 256, n_heads)),
        "KV cache, if these were decoder layers": spoken_bytes(cache_bytes(seq_len, d_model, n_layers)),
    }
    body = text(10, 16, f"multiply-adds: {spoken_count(cost.total)}", "bold") + cost_bars.share_bar(shares, 10, 26, 690)
    body += text(60, 98, "multiply-adds over the length n", "bold")
    body += cost_bars.length_chart(_LENGTHS, series, (60, 122, 310, 150), here=seq_len, crossing=crossing)
    body += cost_bars.byte_table("bytes, one sentence, float32", rows, 400, 100, 300)
    says = f"n = {seq_len:,}, d_model {d_model}, {counted(n_heads, 'head')}, {counted(n_layers, 'layer')}: "
    says += f"{spoken_count(cost.total)} multiply-adds, "
    says += f"{100 * cost.pairs / cost.total:.1f} % for pairs (half at n = {crossing:,}); "
    says += f"scores {spoken_bytes(layer)} a layer"
    table = [
        ["multiply-adds", "count"],
        *([name, f"{value:,}"] for name, value in shares.items()),
        ["total", f"{cost.total:,}"],
        ["bytes", "size"],
        *([name, size] for name, size in rows.items()),
    ]
    alt = f"A bar of shares, two lines over the length that cross, and a table of bytes. {says}."
    return Picture(body, cost_bars.WIDTH, cost_bars.HEIGHT, alt, says, table=table)


def spoken_count(value: int) -> str:
    """Write a count with three digits and a word: 16.8 million."""
    return _in_units(value, {"trillion": 10**12, "billion": 10**9, "million": 10**6}) or f"{value:,}"


def spoken_bytes(value: int) -> str:
    """Write bytes with three digits and a binary unit: 32 MiB."""
    return _in_units(value, {"TiB": 2**40, "GiB": 2**30, "MiB": 2**20, "KiB": 2**10}) or f"{value} bytes"


def _in_units(value: int, units: Mapping[str, int]) -> str:
    """Write three digits and the largest unit that fits; "" where the value is smaller than all of them."""
    for name, size in units.items():
        if value >= size:
            return (f"{value / size:,.0f}" if value >= 100 * size else f"{value / size:.3g}") + f" {name}"
    return ""
