"""W6, the mask laboratory: its weights are the library's, buttons paint, leaks and empty rows are told."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from small_panels import normal, panel
from svg_parts import assert_inside
from transformer_lib.course.figures.widgets.masking_panel import PRESETS, masked_softmax, preset_mask
from transformer_lib.model.attention import masked_softmax as library_softmax
from transformer_lib.model.masks import causal_mask, padding_mask


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
    lab = panel("mask_lab")
    assert "later tokens seen: 10 cells, most by" in lab.picture.says
    assert "padding seen by real tokens: 6 cells" in lab.picture.says
    frames = lab.picture.body.count('stroke="#e69f00"')
    says = lab.set(preset="causal").picture.says
    assert "later tokens seen: 0 cells;" in says
    assert "<start> → not: hidden, score −∞, weight 0" in says
    assert (frames, lab.picture.body.count('stroke="#e69f00"')) == (10, 0)
    assert lab.picture.body.count("−∞") == 10


def test_one_cell_can_be_painted_by_its_button():
    lab = panel("mask_lab").set(preset="causal", row=1, column=2)
    buttons = lab.controls["flips"].buttons
    buttons["toggle cell"].click()
    painted = np.tril(np.ones((5, 5), dtype=bool))
    painted[1, 2] = True
    weight = masked_softmax(normal(5, 5).round(1), painted)
    assert f"later tokens seen: 1 cell, most by not → on {weight[1, 2]:.2f}" in lab.picture.says
    buttons["toggle cell"].click()
    assert "later tokens seen: 0 cells" in lab.picture.says
    assert lab.controls["flips"].value == ()


def test_a_row_that_sees_nothing_warns_and_has_no_nan():
    lab = panel("mask_lab").set(row=2)
    lab.controls["flips"].buttons["toggle row"].click()
    assert "⚠ sees nothing, weights 0 and no NaN: on" in lab.picture.says
    assert "nan" not in lab.picture.body
    assert lab.picture.body.count("sees nothing") == 1
    assert lab.picture.table[3] == ["on", *["0"] * 5]
    lab.controls["flips"].buttons["undo all"].click()
    assert "sees nothing" not in lab.picture.says


def test_a_preset_starts_afresh():
    lab = panel("mask_lab").set(row=0, column=4)
    lab.controls["flips"].buttons["toggle cell"].click()
    assert lab.set(preset="causal & padding").controls["flips"].value == ()
    assert "later tokens seen: 0 cells; padding seen by real tokens: 0 cells" in lab.picture.says


def test_cells_can_be_painted_from_code():
    assert "later tokens seen: 1 cell," in panel("mask_lab").set(preset="causal", flips=((0, 1),)).picture.says


def test_the_largest_lab_fits_the_picture_and_the_page():
    picture = panel("mask_lab", scores=normal(8, 8), tokens=[*"abcdefg", "<pad>"]).picture
    assert_inside(picture)
    assert len(picture.saved_html) < 80_000
    assert "padding" not in panel("mask_lab", scores=normal(3, 3), tokens="abc").picture.says
