"""W7, the head splitter: its shapes and places are those of real tensors; a bad divisor gives a message."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import transformer_lib as tl
from transformer_lib.course.figures import widgets
from transformer_lib.course.figures.svg import splitting
from transformer_lib.course.figures.widgets.splitting_panel import STAGES, draw_stage, places, stage_shapes


@pytest.mark.parametrize(("batch", "seq_len", "d_model", "n_heads"), [(2, 5, 21, 3), (1, 4, 12, 4), (3, 7, 11, 1)])
def test_the_shapes_are_those_of_the_librarys_tensors(batch, seq_len, d_model, n_heads):
    layer, x = tl.MultiHeadAttention(d_model, n_heads), torch.randn(batch, seq_len, d_model)
    query = layer.w_q(x)
    view = query.unflatten(-1, (n_heads, -1))
    output, weights = layer(x, x, x, return_weights=True)
    heads = weights @ layer.w_v(x).unflatten(-1, (n_heads, -1)).transpose(1, 2)
    merged = heads.transpose(1, 2).flatten(2)
    torch.testing.assert_close(layer.w_o(merged), output)
    seen = [x, query, view, view.transpose(1, 2), weights, heads, merged, output]
    assert stage_shapes(batch, seq_len, d_model, n_heads) == [tuple(tensor.shape) for tensor in seen]


@pytest.mark.parametrize(("plain", "right"), [(False, True), (True, False)])
def test_the_places_are_those_of_a_real_split(plain, right):
    memory = torch.arange(4 * 12).reshape(1, 4, 12)
    split = memory.unflatten(-1, (3, -1)).transpose(1, 2)[0] if right else memory.reshape(1, 3, 4, 4)[0]
    grids, owners = places(12, 3, 4, plain)
    np.testing.assert_array_equal(np.stack(grids), split)
    np.testing.assert_array_equal(np.stack(owners), split // 12)
    assert all((owner == np.arange(4)[:, None]).all() for owner in owners) == right


@pytest.mark.parametrize("stage", range(1, 9))
def test_every_stage_says_its_shape(stage):
    picture = draw_stage(12, 3, False, stage)
    assert f"stage {stage} of 8, {STAGES[stage - 1]}: {list(stage_shapes(1, 4, 12, 3)[stage - 1])}" in picture.says
    assert f'class="mid black bold">{STAGES[stage - 1]}<' in picture.body


def test_weights_and_blends_have_no_place_in_memory():
    for stage, count, wide in ((1, 1, 12), (5, 3, 4), (6, 3, 4), (7, 3, 4), (8, 1, 12)):
        grids, _ = places(12, 3, stage, False)
        assert [grid.shape for grid in grids] == [(4, wide)] * count
        assert all((grid == -1).all() for grid in grids)


def test_only_the_weights_belong_to_no_single_row_of_x():
    assert {stage for stage in range(1, 9) if (places(12, 3, stage, False)[1][0] < 0).any()} == {5}


def test_a_bad_divisor_gives_a_message_with_what_would_fit():
    panel = widgets.head_splitter().set(d_model=10, n_heads=4)
    assert panel.picture.says == "10 features cannot be shared equally by 4 heads"
    assert "n_heads that divide 10: 1, 2, 5. Or keep 4 heads and take d_model 8 or 12." in panel.picture.body
    assert "take d_model 5." in panel.set(d_model=2, n_heads=5).picture.body
    with pytest.raises(ValueError, match="d_model must be divisible by n_heads, got d_model=10, n_heads=4"):
        stage_shapes(1, 4, 10, 4)


def test_the_mistake_shows_at_the_split_only():
    panel = widgets.head_splitter(d_model=4, n_heads=2)
    assert panel.picture.says.endswith("transpose: [1, 2, 4, 2]; head 1 holds numbers 0–1, 4–5, 8–9, 12–13")
    panel.set(plain=True)
    assert panel.picture.says.endswith("plain reshape: [1, 2, 4, 2]; head 1 holds numbers 0–1, 2–3, 4–5, 6–7")
    assert "not a piece of each" in panel.picture.alt
    assert "transpose" in panel.set(n_heads=1).picture.says  # with one head the two are the same
    assert "money" in panel.set(stage=3).picture.body


def test_a_narrow_head_is_called_by_its_number_alone():
    assert ">head 1<" in draw_stage(12, 3, False, 4).body
    assert ">head 1<" not in draw_stage(6, 6, False, 4).body


def test_a_cell_of_no_token_is_grey_and_empty():
    drawn = splitting.block(np.array([[-1, 5]]), np.array([[-1, 2]]), 0, 0, 30)
    assert splitting.MIXED in drawn
    assert splitting.TOKEN_FILLS[2] in drawn
    assert drawn.count("<text") == 1
