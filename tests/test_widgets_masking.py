"""W6, the mask laboratory: its weights are the library's, buttons paint, leaks and empty rows are told."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from transformer_lib.course import progress
from transformer_lib.course.figures import widgets
from transformer_lib.course.figures.svg import mask_grid
from transformer_lib.course.figures.widgets.masking_panel import PRESETS, masked_softmax, preset_mask
from transformer_lib.model.attention import masked_softmax as library_softmax
from transformer_lib.model.masks import causal_mask, padding_mask

TOKENS = ["<start>", "not", "on", "<pad>", "<pad>"]


def scores(n=5, seed=0):
    return np.random.default_rng(seed).standard_normal((n, n)).round(1)


def lab(n=5, tokens=TOKENS):
    return widgets.mask_lab(scores(n), tokens)


def test_the_presets_are_the_librarys_masks():
    is_pad = np.array([False, False, True, False, True, True, True])
    ids = torch.from_numpy(np.where(is_pad, 0, 5))[None]
    no_pad, no_future = padding_mask(ids, 0)[0, 0].numpy(), causal_mask(7)[0, 0].numpy()
    everything = np.ones((7, 7), dtype=bool)
    expected = (everything, everything & no_future, everything & no_pad, no_pad & no_future)
    for preset, mask in zip(PRESETS, expected, strict=True):
        assert np.array_equal(preset_mask(preset, is_pad), mask)


@pytest.mark.parametrize("seed", range(5))
def test_the_weights_are_the_librarys(seed):
    draw = np.random.default_rng(seed)
    grid, mask = 1000 * draw.standard_normal((7, 7)), draw.random((7, 7)) < 0.4
    mask[3] = False
    ours = masked_softmax(grid, mask)
    theirs = library_softmax(torch.from_numpy(grid), torch.from_numpy(mask)).numpy()
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)
    assert not ours[~mask].any()
    assert not ours[3].any()


def test_no_mask_leaks_and_the_causal_mask_does_not():
    panel = lab()
    assert "later tokens seen: 10 cells, most by" in panel.picture.says
    assert "padding seen by real tokens: 6 cells" in panel.picture.says
    frames = panel.picture.body.count('stroke="#e69f00"')
    says = panel.set(preset="causal").picture.says
    assert "later tokens seen: 0 cells;" in says
    assert "<start> → not: hidden, score −∞, weight 0" in says
    assert (frames, panel.picture.body.count('stroke="#e69f00"')) == (10, 0)
    assert panel.picture.body.count("−∞") == 10


def test_one_cell_can_be_painted_by_its_button():
    panel = lab().set(preset="causal", row=1, column=2)
    buttons = panel.controls["flips"].buttons
    buttons["toggle cell"].click()
    painted = np.tril(np.ones((5, 5), dtype=bool))
    painted[1, 2] = True
    weight = masked_softmax(scores(), painted)
    assert f"later tokens seen: 1 cell, most by not → on {weight[1, 2]:.2f}" in panel.picture.says
    buttons["toggle cell"].click()
    assert "later tokens seen: 0 cells" in panel.picture.says
    assert panel.controls["flips"].value == ()


def test_a_row_that_sees_nothing_warns_and_has_no_nan():
    panel = lab().set(row=2)
    panel.controls["flips"].buttons["toggle row"].click()
    assert "⚠ sees nothing, weights 0 and no NaN: on" in panel.picture.says
    assert "nan" not in panel.picture.body
    assert panel.picture.body.count("sees nothing") == 1
    assert panel.picture.table[3] == ["on", *["0"] * 5]
    panel.controls["flips"].buttons["undo all"].click()
    assert "sees nothing" not in panel.picture.says


def test_a_preset_starts_afresh():
    panel = lab().set(row=0, column=4)
    panel.controls["flips"].buttons["toggle cell"].click()
    assert panel.set(preset="causal & padding").controls["flips"].value == ()
    assert "later tokens seen: 0 cells; padding seen by real tokens: 0 cells" in panel.picture.says


def test_painting_by_hand_is_remembered():
    panel = lab()
    panel.set(preset="causal", flips=((0, 1),))
    assert "later tokens seen: 1 cell," in panel.picture.says
    assert "W6" not in progress.state()["widget"]
    panel.controls["flips"].buttons["toggle cell"].click()
    assert "W6" in progress.state()["widget"]


def test_the_largest_lab_fits_the_picture_and_the_page():
    panel = lab(8, [*"abcdefg", "<pad>"])
    assert (panel.picture.width, panel.picture.height) == mask_grid.size(8)
    assert len(panel.picture.saved_html) < 80_000
    assert "padding" not in lab(3, list("abc")).picture.says


@pytest.mark.parametrize(
    ("grid", "tokens", "message"),
    [
        (scores(3), TOKENS, r"scores must have shape \(5, 5\) for these tokens, got \(3, 3\)"),
        (scores(9), list("abcdefghi"), "tokens must be 2 to 8 to fit the picture, got 9"),
        (scores(5)[0], TOKENS, r"scores must be an array with 2 axes, got shape \(5,\)"),
        (np.full((5, 5), -np.inf), TOKENS, "scores"),
    ],
)
def test_what_does_not_fit_is_named(grid, tokens, message):
    with pytest.raises(ValueError, match=message):
        widgets.mask_lab(grid, tokens)
