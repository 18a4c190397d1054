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
from transformer_lib.course import progress
from transformer_lib.course.figures import widgets
from transformer_lib.course.figures.svg import dial, reorder
from transformer_lib.course.figures.widgets import positions_panel as dials
from transformer_lib.course.figures.widgets.reordering_panel import attend

TOKENS = ["the", "cat", "saw", "the", "dog"]


def matrices(seed=0, *, n=5, d_model=6, d_k=3, d_v=2):
    draw = np.random.default_rng(seed)
    return [draw.standard_normal(shape) for shape in ((n, d_model), (d_model, d_k), (d_model, d_k), (d_model, d_v))]


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
    panel = widgets.position_dial(17, -3, 1)
    sums = np.cos(3 * dials.frequencies()).sum()
    assert panel.picture.says == (
        f"p 17, k −3: pair 1 turns −0.30 rad (−17.19°); turned PE(17) and PE(14) are equal to 1e-12; "
        f"similarity {sums:.2f} at 14, {sums:.2f} at 20"
    )
    assert panel.picture.says in panel.picture.alt


def test_a_wrong_turn_would_be_reported():
    wrong = dials.encodings(np.arange(60) * 1.01)
    assert "off by" in dials.describe(wrong, 20, 5, 1)


@pytest.mark.parametrize("corner", list(itertools.product((12, 47), (-12, 0, 12), (0, 3))))
def test_every_corner_of_the_controls_is_drawn_inside_the_picture(corner):
    picture = widgets.position_dial(*corner).picture
    assert "nan" not in picture.body
    assert picture.width > dial.LEFT + dials.POSITIONS * dial.CELL
    assert len(picture.saved_html) < 50_000


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


def test_moving_the_dial_by_hand_is_remembered():
    panel = widgets.position_dial()
    before = panel.picture.svg
    panel.controls["offset"].slider.value = -4
    assert panel.picture.svg != before
    assert "W4" in progress.state()["widget"]


@pytest.mark.parametrize("place", [(11, 0, 0), (48, 0, 0), (20, 13, 0)])
def test_a_place_outside_the_map_is_refused(place):
    with pytest.raises(ValueError, match="value must lie between"):
        widgets.position_dial(*place)


# W5, shuffle


@pytest.mark.parametrize("causal", [False, True])
def test_the_outputs_are_the_librarys(causal):
    X, W_Q, W_K, W_V = (torch.from_numpy(part) for part in matrices())
    mask = tl.causal_mask(5)[0, 0] if causal else None
    output, _ = tl.scaled_dot_product_attention(X @ W_Q, X @ W_K, X @ W_V, mask)
    np.testing.assert_allclose(attend(*matrices(), causal), output, rtol=0, atol=1e-12)


def test_every_order_has_a_number_and_is_named_by_its_sentence():
    panel = widgets.shuffle(*matrices(n=4), ["the", "cat", "saw", "the"])
    assert panel.picture.says.startswith("the₂ cat saw the₁: without positions, no mask; ")
    assert panel.controls["order"].slider.max == 24
    sentences = [panel.set(order=order).picture.says.split(":")[0] for order in range(1, 25)]
    assert len(set(sentences)) == 24
    assert sentences[0] == "the₁ cat saw the₂"


@pytest.mark.parametrize("order", [[1, 0, 2, 3, 4], [4, 3, 2, 1, 0], [1, 2, 3, 4, 0]])
def test_without_positions_outputs_move_with_their_tokens_and_otherwise_they_change(order):
    panel = widgets.shuffle(*matrices(), TOKENS, order=order)
    assert "every token has the output it had before" in panel.picture.says
    assert panel.picture.body.count(">same<") == 5
    for setting in ({"positions": True, "causal": False}, {"positions": False, "causal": True}):
        panel.set(**setting)
        assert "outputs are the same; the largest change is" in panel.picture.says
        assert panel.picture.body.count(">same<") < 5


def test_the_change_said_is_that_of_the_library():
    X, W_Q, W_K, W_V = (torch.from_numpy(part) for part in matrices())
    with default_dtype(torch.float64):
        place = tl.sinusoidal_encoding(5, 6)

    def output(x):
        return tl.scaled_dot_product_attention(x @ W_Q, x @ W_K, x @ W_V)[0]

    order = [2, 0, 1, 4, 3]
    moved = (output(X[order] + place) - output(X + place)[order]).norm(dim=1).max()
    says = widgets.shuffle(*matrices(), TOKENS, order=order, positions=True).picture.says
    assert says.endswith(f"the largest change is {moved:.2f}")


@pytest.mark.parametrize(("positions", "causal"), list(itertools.product((False, True), repeat=2)))
def test_the_sentence_as_written_never_changes(positions, causal):
    panel = widgets.shuffle(*matrices(), TOKENS, order=range(5), positions=positions, causal=causal)
    assert "every token has the output it had before" in panel.picture.says


def test_the_largest_sentence_fits_the_picture():
    panel = widgets.shuffle(*matrices(d_v=4), list("abcde"), positions=True)
    assert panel.picture.height == reorder.height(5)
    assert len(panel.picture.saved_html) < 50_000


def test_shuffling_by_hand_is_remembered():
    panel = widgets.shuffle(*matrices(), TOKENS)
    panel.controls["positions"].value = True
    assert "W5" in progress.state()["widget"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokens": ["a"]}, "tokens must have one entry per row of X, 5, got 1"),
        ({"order": [0, 1, 2, 3, 3]}, r"order must be a permutation of 0 to 4, got \[0, 1, 2, 3, 3\]"),
        ({"X": np.ones((5, 7))}, "X must have an even number of columns for sinusoids, got 7"),
        ({"W_V": np.ones((6, 5))}, "d_v must be between 1 and 4 to fit the picture, got 5"),
        ({"X": np.ones((1, 6)), "tokens": ["a"]}, "tokens must be between 2 and 5 to fit the picture, got 1"),
    ],
)
def test_what_does_not_fit_is_named(change, message):
    given = dict(zip(("X", "W_Q", "W_K", "W_V"), matrices(), strict=True)) | {"tokens": TOKENS} | change
    with pytest.raises(ValueError, match=message):
        widgets.shuffle(**given)
