"""W29, the mask dial: what it shows is what the model computes, and its words say which rows move."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import transformer_lib as tl
from small_panels import WORDS, language_model, panel
from svg_parts import assert_inside
from transformer_lib.course.figures.svg import mask_dial as drawing
from transformer_lib.course.figures.widgets.mask_dial_panel import moved, prefixed, rows_and_words

pytestmark = pytest.mark.fast


def test_the_masks_are_the_librarys():
    for length in (1, 2, 5):
        assert torch.equal(prefixed(5, length), tl.prefix_mask(torch.tensor([length]), 5))
    assert torch.equal(prefixed(5, 1), tl.causal_mask(5)) and prefixed(5, 5).all()


def test_the_front_moves_with_the_layers():
    dial = panel("mask_dial", position=2)
    assert "prefix of 3: layer 1 moves <bos>, show; layer 2 moves all rows" in dial.picture.says
    assert "causal mask (p = 1): layer 1 moves no row; layer 2 moves no row" in dial.set(prefix=1).picture.says
    assert "full mask (p = 6): layer 1 moves <bos>, show, me, the, money;" in dial.set(prefix=6).picture.says


def test_the_numbers_are_the_models():
    model, ids = language_model(), torch.tensor([WORDS.encode("Show me the money.", bos=True)])
    rows, words = rows_and_words(model, ids, prefixed(6, 3))
    assert rows.shape == (2, 6, 16)
    with torch.no_grad():
        expected = model(ids, prefixed(6, 3))[0].softmax(dim=-1)
    np.testing.assert_allclose(words, expected.numpy(), atol=1e-6)
    causal, _ = rows_and_words(model, ids, prefixed(6, 1))
    shares = moved(causal, rows)
    assert (shares[0] > 0).tolist() == [True, True, False, False, False, False] and (shares[1] > 0).all()
    best = WORDS.words[int(words[2].argmax())]
    assert f"with this mask {best} {words[2].max():.2f}" in panel("mask_dial", position=2).picture.says
    assert not any(hook for layer in model.stack.layers for hook in layer._forward_hooks.values())


def test_the_picture_says_what_the_prefix_adds():
    picture = panel("mask_dial").picture
    body = picture.body
    assert body.count(f'fill="{drawing.NEW}"') == 3 + 1 + 4  # cells, legend, bars
    assert body.count(f'fill="{drawing.OLD}"') == 21 + 1 + 4
    assert picture.table[1][0] == "<bos>" and len(picture.table) == 7


def test_the_longest_sentence_fits():
    assert_inside(panel("mask_dial", sentence="show me " * 5, prefix=1, position=0).picture)
