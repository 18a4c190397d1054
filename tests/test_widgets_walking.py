"""W21, the shape walk: its numbers are those of the library's layers, seen from inside by hooks."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import transformer_lib as tl
from transformer_lib.course.figures.svg import walking
from transformer_lib.course.figures.widgets.walking_panel import LAST, TABLE, draw_step, encoder_steps, hand_made_layer


def seen_by_hooks(layer, x, mask):
    """What passes through the parts of a `tl.EncoderLayer` in one call, by the widget's step within the layer."""
    seen = {}

    def keep_output(step):
        return lambda module, given, result: seen.__setitem__(step, result)

    def keep_input(step):
        return lambda module, given: seen.__setitem__(step, given[0])

    layer.self_attention.register_forward_hook(keep_output(1))
    layer.self_attention_residual.norm.register_forward_pre_hook(keep_input(2))
    layer.self_attention_residual.norm.register_forward_hook(keep_output(3))
    layer.feed_forward.contract.register_forward_pre_hook(keep_input(4))
    layer.feed_forward.contract.register_forward_hook(keep_output(5))
    layer.feed_forward_residual.norm.register_forward_pre_hook(keep_input(6))
    layer.register_forward_hook(keep_output(7))
    with tl.record_attention(layer) as record:
        layer(x, mask)
    return {0: record["self_attention"], **seen}


@pytest.mark.parametrize(("pad", "masked"), [(False, True), (True, True), (True, False)])
def test_every_number_is_what_hooks_on_the_librarys_layers_see(pad, masked):
    steps = encoder_steps(pad, masked)
    table = torch.tensor(TABLE[: 4 + pad], dtype=torch.float64)
    x = 2 * table[None] + tl.sinusoidal_encoding(4 + pad, 4).double()
    torch.testing.assert_close(steps[1].result, x, rtol=0, atol=1e-12)
    mask = torch.tensor([True] * 4 + [not masked] * pad)[None, None, None]
    for layer in (1, 2):
        seen = seen_by_hooks(hand_made_layer(layer), x, mask)
        for step, values in seen.items():
            torch.testing.assert_close(steps[8 * layer - 6 + step].result, values, rtol=0, atol=1e-12)
        x = seen[7]


def test_the_first_layer_by_plain_numpy():
    weights = {name: np.array(rows) for name, rows in tl.widgets.walking_panel.WEIGHTS.items()}
    x = encoder_steps()[1].result[0].numpy()
    q, k, v = (x @ weights[f"self_attention.w_{letter}"] for letter in "qkv")
    heads = []
    for own in (slice(0, 2), slice(2, 4)):
        exponentials = np.exp(q[:, own] @ k[:, own].T / 2**0.5)
        heads.append(exponentials / exponentials.sum(1, keepdims=True) @ v[:, own])
    attended = np.concatenate(heads, 1) @ weights["self_attention.w_o"]
    np.testing.assert_allclose(encoder_steps()[3].result[0], attended, rtol=0, atol=1e-12)


def test_the_layers_have_their_own_weights():
    first, second = (hand_made_layer(layer).self_attention.w_q.weight for layer in (1, 2))
    assert not torch.equal(first, second)
    with pytest.raises(ValueError, match="layer must be 1 or 2, got 3"):
        hand_made_layer(3)


def test_masked_padding_moves_no_word_and_unmasked_padding_moves_them_from_the_weights_on():
    for step in range(1, LAST + 1):
        assert draw_step(step, True, True).says.endswith("by the padding: 0.00")
        assert draw_step(step, True, False).says.endswith("by the padding: 0.00") == (step <= 2)
    assert "padding" not in draw_step(5, False, False).says


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (1, "step 1 of 18, layer 1, × √d_model: [1, 4, 4] → [1, 4, 4]"),
        (3, "step 3 of 18, layer 1, weights: [1, 4, 4] → [1, 2, 4, 4]"),
        (7, "step 7 of 18, layer 1, hidden: [1, 4, 4] → [1, 4, 6]"),
        (11, "step 11 of 18, layer 2, weights: [1, 4, 4] → [1, 2, 4, 4]"),
        (18, "step 18 of 18, layer 2, norm: [1, 4, 4] → [1, 4, 4]"),
    ],
)
def test_each_step_says_its_layer_operation_and_shapes(step, says):
    picture = draw_step(step, False, True)
    assert picture.says == says
    assert picture.alt.startswith(says)
    assert f"▶ {step}<" in picture.body


def test_a_table_of_weights_has_its_own_colours():
    grid = np.array([[0.25, 0.75]])
    assert walking.table(grid, 0, 0, weights=True) != walking.table(grid, 0, 0)
    assert ">0.75<" in walking.table(grid, 0, 0, weights=True)


def test_the_lines_of_text_end_within_the_picture():
    steps = encoder_steps(True, False)
    assert max(len(step.note) for step in steps) <= 74  # from x = 196, at about 6.8 px a letter
