"""W12, the cost calculator: its numbers are those of a counted run, and doubling the length has the factors told."""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import transformer_lib as tl
from svg_parts import centre, number, parts, points
from transformer_lib.course.figures.svg import cost_bars
from transformer_lib.course.figures.widgets.costs_panel import draw_costs, spoken_bytes, spoken_count


def row(picture, name):
    return next(cells[1] for cells in picture.table if cells[0] == name)


@pytest.mark.parametrize(("seq_len", "n_heads", "n_layers"), [(16, 2, 1), (37, 4, 3)])
def test_the_total_is_what_a_run_counts(seq_len, n_heads, n_layers):
    encoder = tl.Encoder(n_layers, 64, n_heads, 256).eval()
    with FlopCounterMode(display=False) as counter, torch.no_grad(), tl.record_attention(encoder) as weights:
        encoder(torch.randn(1, seq_len, 64))
    picture = draw_costs(seq_len, 64, n_heads, n_layers)
    assert int(row(picture, "total").replace(",", "")) == counter.get_total_flops() // 2
    assert row(picture, "scores of one layer") == spoken_bytes(next(iter(weights.values())).nbytes)


def test_twice_the_length_takes_four_times_the_bytes_of_scores():
    small, large = draw_costs(1024, 512, 8, 6), draw_costs(2048, 512, 8, 6)
    name = "scores of one layer"
    assert (row(small, name), row(large, name)) == ("32 MiB", "128 MiB")
    assert row(small, "the same, at twice the length") == row(large, name)
    pairs = [int(row(picture, "pairs (scores, blends)").replace(",", "")) for picture in (small, large)]
    assert pairs[1] == 4 * pairs[0]


def test_half_of_the_work_is_in_pairs_at_the_crossover():
    says = draw_costs(3072, 512, 8, 6).says
    assert "50.0 % for pairs (half at n = 3,072)" in says
    assert says.startswith("n = 3,072, d_model 512, 8 heads, 6 layers: 116 billion multiply-adds, ")


def test_heads_change_bytes_and_no_multiply_adds():
    one, many = draw_costs(256, 64, 1, 1), draw_costs(256, 64, 32, 1)
    assert row(one, "total") == row(many, "total")
    assert (row(one, "scores of one layer"), row(many, "scores of one layer")) == ("256 KiB", "8 MiB")
    assert "1 head, 1 layer:" in one.says


@pytest.mark.parametrize(
    ("value", "expected"),
    [(999_999, "999,999"), (16_777_216, "16.8 million"), (2_500_000_000, "2.5 billion"), (7 * 10**14, "700 trillion")],
)
def test_counts_are_spoken(value, expected):
    assert spoken_count(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(512, "512 bytes"), (4 * 2**20, "4 MiB"), (2**30, "1 GiB"), (3 * 2**39, "1.5 TiB"), (384 * 2**20, "384 MiB")],
)
def test_bytes_are_spoken(value, expected):
    assert spoken_bytes(value) == expected


def test_lines_cross_at_the_crossover_and_rings_lie_on_them():
    lengths = (1, 2, 4, 8)
    series = {"a": ([1, 4, 16, 64], "#000"), "b": ([4, 8, 16, 32], "#fff")}
    drawn = cost_bars.length_chart(lengths, series, (0, 0, 90, 100), here=4, crossing=4)
    first, second = map(centre, parts(drawn, "circle"))
    assert first == second
    upright = [
        line for line in parts(drawn, "line") if line.get("stroke-dasharray") and line.get("x1") == line.get("x2")
    ]
    assert [number(line, "x1") for line in upright] == [first[0]]
    assert all(first in points(line) for line in parts(drawn, "polyline"))
    between = cost_bars.length_chart(lengths, series, (0, 0, 90, 100), here=3, crossing=9)
    assert "crossover" not in between
    (x, high), (same_x, low) = map(centre, parts(between, "circle"))
    assert x == same_x and high != low
