"""W31, two heads: what it shows is what the model computes, whatever string is typed."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

import transformer_lib as tl
from small_panels import attention_only, panel
from svg_parts import assert_inside
from transformer_lib.course.figures.svg import two_heads as drawing
from transformer_lib.course.figures.widgets.two_heads_panel import LETTERS, both_heads, letters_of

pytestmark = pytest.mark.fast

WORD = "blacksmith"


heads = partial(panel, "two_heads")


def ids(string):
    return torch.tensor([[LETTERS.index(letter) for letter in string]])


def test_weights_and_probabilities_are_the_models():
    weights, said = both_heads(attention_only(), WORD)
    assert weights.shape == (2, 20, 20) and said.shape == (3, 20, 26)
    net = attention_only()
    with torch.no_grad(), tl.record_attention(net) as record:
        expected = net(ids(WORD * 2))[0].softmax(dim=-1)
    np.testing.assert_allclose(said[0], expected.numpy(), atol=1e-6)
    for shown, recorded in zip(weights, record.values(), strict=True):
        np.testing.assert_allclose(shown, recorded[0, 0].numpy(), atol=1e-6)


@pytest.mark.parametrize("layer", [0, 1])
def test_without_a_head_its_mean_stands_in_its_place(layer):
    net = attention_only()
    outputs = tl.circuits.trace(net, ids(WORD * 2)).heads[layer]
    mean = outputs.mean(dim=(0, 2)).expand(20, -1)[None]
    with torch.no_grad(), tl.circuits.replace_head(net, layer, 0, mean):
        expected = net(ids(WORD * 2))[0].softmax(dim=-1)
    np.testing.assert_allclose(both_heads(net, WORD)[1][layer + 1], expected.numpy(), atol=1e-6)
    assert np.abs(both_heads(net, WORD)[1][layer + 1] - both_heads(net, WORD)[1][0]).max() > 1e-3


def test_the_words_follow_both_heads():
    (first, second), said = both_heads(attention_only(), WORD)
    source = int(second[13].argmax())
    before = int(first[source].argmax())
    says, both = heads().picture.says, WORD * 2
    assert says.startswith(f"position 13, c: the second head looks most at {source}, {both[source]} ")
    assert f"from there the first looked most at {before}, {both[before]} ({first[source, before]:.2f})" in says
    best = [LETTERS[int(row.argmax())] for row in said[:, 13]]
    assert f"Said next: {best[0]} " in says and f"without the second {best[2]} " in says


def test_what_is_typed_is_read_as_letters():
    assert letters_of("Éa B-c 1") == "abc"
    shown = heads()
    assert "position 13, y: " in shown.set(string="Happy days").picture.says  # happydays twice: 9 + 4 is y
    assert "position 5, c: " in shown.set(string="").picture.says  # too short: letters are added
    assert "position 13, n: " in shown.set(string="abcdefghijklmnopqrstuvwxyz").picture.says  # cut to 16
    assert shown.set(position=31).picture.says.startswith("position 31, p: ")
    assert shown.set(string="abcd").picture.says.startswith("position 7, d: ")  # not longer than the string twice


def test_the_picture_has_a_bar_for_each_weight():
    body = heads().picture.body
    assert body.count(f'fill="{drawing.SECOND}"') == 20 + 1 + 4  # bars, the mark, a column of letters
    assert body.count(f'fill="{drawing.FIRST}"') == 20 + 4 + 1  # POINTED, which marks who asks, is the same orange
    assert len(heads().picture.table) == 21


def test_the_longest_string_fits():
    assert_inside(heads(string="abcdefghijklmnop", position=31).picture)
