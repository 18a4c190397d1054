"""W4 and W5: the dial turns as the library's encodings do, and shuffled outputs are those of the library."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest
import torch

import transformer_lib as tl
from factories import default_dtype
from small_panels import matrices, normal, panel
from svg_parts import assert_inside
from transformer_lib.course.figures.svg import dial, reorder
from transformer_lib.course.figures.widgets import positions_panel as dials
from transformer_lib.course.figures.widgets.reordering_panel import attend

# W4, the position dial


def test_the_encodings_are_the_librarys():
    with default_dtype(torch.float64):
        table = tl.sinusoidal_encoding(37, 10)
    np.testing.assert_allclose(dials.encodings(np.arange(37), 10), table, rtol=0, atol=1e-12)


def test_a_shift_is_a_rotation_for_every_position_offset_and_pair():
    table, omega = dials.encodings(np.arange(-dials.REACH, 100)), dials.frequencies()
    for p, k, j in itertools.product(range(12, 48), range(-12, 13), range(4)):
        pair = slice(2 * j, 2 * j + 2)
        start, end = table[dials.REACH + p, pair], table[dials.REACH + p + k, pair]
        np.testing.assert_allclose(dials.rotation(k * omega[j]) @ start, end, rtol=0, atol=1e-12)


def test_the_line_says_turn_verdict_and_both_similarities():
    says = panel("position_dial", position=17, offset=-3, pair=1).picture.says
    sums = np.cos(3 * dials.frequencies()).sum()
    assert says == (
        f"p 17, k −3: pair 1 turns −0.30 rad (−17.19°); turned PE(17) and PE(14) are equal to 1e-12; "
        f"similarity {sums:.2f} at 14, {sums:.2f} at 20"
    )


def test_a_wrong_turn_would_be_reported():
    wrong = dials.encodings(np.arange(60) * 1.01)
    assert "off by" in dials.describe(wrong, 20, 5, 1)


def test_hands_point_to_sine_and_cosine():
    drawn = dial.dial(100, 100, (0.0, math.pi / 2), "j", False)
    tips = [tuple(map(float, tip.split(","))) for tip in re.findall(r'polygon points="([^ ]+) ', drawn)]
    directions = [math.degrees(math.atan2(100 - y, x - 100)) for x, y in tips]
    assert directions == pytest.approx([90, 0], abs=1)  # p at the top (sine 0, cosine 1), p + k at the right (1, 0)


@pytest.mark.parametrize(("end", "flags"), [(1.0, "0 0 1"), (4.0, "0 1 1"), (-1.0, "0 0 0"), (-4.0, "0 1 0")])
def test_the_slice_follows_the_turn(end, flags):
    assert f"A27.6 27.6 {flags} " in dial.dial(100, 100, (0.0, end), "j", False)


def test_more_than_one_turn_is_the_whole_disc():
    assert dial.dial(100, 100, (0.0, 7.0), "j", False).count("<circle") == 2


# W5, shuffle


@pytest.mark.parametrize("causal", [False, True])
def test_the_outputs_are_the_librarys(causal):
    X, W_Q, W_K, W_V = map(torch.from_numpy, matrices().values())
    mask = tl.causal_mask(5)[0, 0] if causal else None
    output, _ = tl.scaled_dot_product_attention(X @ W_Q, X @ W_K, X @ W_V, mask)
    np.testing.assert_allclose(attend(*matrices().values(), causal), output, rtol=0, atol=1e-12)


def test_every_order_has_a_number_and_is_named_by_its_sentence():
    shown = panel("shuffle", X=normal(4, 6), tokens=["the", "cat", "saw", "the"])
    assert shown.picture.says.startswith("the₂ cat saw the₁: without positions, no mask; ")
    assert shown.controls["order"].slider.max == 24
    sentences = [shown.set(order=order).picture.says.split(":")[0] for order in range(1, 25)]
    assert len(set(sentences)) == 24
    assert sentences[0] == "the₁ cat saw the₂"


@pytest.mark.parametrize("order", [[1, 0, 2, 3, 4], [4, 3, 2, 1, 0], [1, 2, 3, 4, 0]])
def test_without_positions_outputs_move_with_their_tokens_and_otherwise_they_change(order):
    picture = panel("shuffle", order=order).picture
    assert "every token has the output it had before" in picture.says and picture.body.count(">same<") == 5
    for setting in ("positions", "causal"):
        picture = panel("shuffle", order=order, **{setting: True}).picture
        assert "outputs are the same; the largest change is" in picture.says and picture.body.count(">same<") < 5


def test_the_change_said_is_that_of_the_library():
    X, W_Q, W_K, W_V = map(torch.from_numpy, matrices().values())
    with default_dtype(torch.float64):
        place = tl.sinusoidal_encoding(5, 6)

    def output(x):
        return tl.scaled_dot_product_attention(x @ W_Q, x @ W_K, x @ W_V)[0]

    order = [2, 0, 1, 4, 3]
    moved = (output(X[order] + place) - output(X + place)[order]).norm(dim=1).max()
    says = panel("shuffle", order=order, positions=True).picture.says
    assert says.endswith(f"the largest change is {moved:.2f}")


def test_the_sentence_as_written_never_changes():
    for setting in ({}, {"positions": True}, {"causal": True}, {"positions": True, "causal": True}):
        assert "every token has the output it had before" in panel("shuffle", order=range(5), **setting).picture.says


def test_the_widest_values_fit_the_picture():
    picture = panel("shuffle", **matrices(d_v=4)).picture
    assert_inside(picture)
    assert picture.height == reorder.height(5)
