"""W29, the mask dial: what it shows is what the model computes, and its words say which rows move."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import transformer_lib as tl
from transformer_lib.course import progress
from transformer_lib.course.figures import widgets
from transformer_lib.course.figures.svg import mask_dial as drawing
from transformer_lib.course.figures.widgets.mask_dial_panel import moved, prefixed, rows_and_words

pytestmark = pytest.mark.fast

WORDS = tl.WordTokenizer(["show", "me", "the", "money", "."])
SENTENCE = "Show me the money."


def model(n_layers=2):
    torch.manual_seed(0)
    return tl.LanguageModel(len(WORDS), n_layers, 16, 2, 16, position="sinusoidal")


def dial(**options):
    return widgets.mask_dial(model(), WORDS, SENTENCE, **{"prefix": 3, "position": 2, **options})


def test_the_masks_are_the_librarys():
    for length in (1, 2, 5):
        assert torch.equal(prefixed(5, length), tl.prefix_mask(torch.tensor([length]), 5))
    assert torch.equal(prefixed(5, 1), tl.causal_mask(5)) and prefixed(5, 5).all()


def test_the_front_moves_with_the_layers():
    panel = dial()
    assert "prefix of 3: layer 1 moves <bos>, show; layer 2 moves all rows" in panel.picture.says
    assert "causal mask (p = 1): layer 1 moves no row; layer 2 moves no row" in panel.set(prefix=1).picture.says
    assert "full mask (p = 6): layer 1 moves <bos>, show, me, the, money;" in panel.set(prefix=6).picture.says


def test_the_numbers_are_the_models():
    language_model, ids = model(), torch.tensor([WORDS.encode(SENTENCE, bos=True)])
    rows, words = rows_and_words(language_model, ids, prefixed(6, 3))
    assert rows.shape == (2, 6, 16)
    with torch.no_grad():
        expected = language_model(ids, prefixed(6, 3))[0].softmax(dim=-1)
    np.testing.assert_allclose(words, expected.numpy(), atol=1e-6)
    causal, _ = rows_and_words(language_model, ids, prefixed(6, 1))
    shares = moved(causal, rows)
    assert (shares[0] > 0).tolist() == [True, True, False, False, False, False] and (shares[1] > 0).all()
    best = WORDS.words[int(words[2].argmax())]
    assert f"with this mask {best} {words[2].max():.2f}" in dial().picture.says
    assert not any(hook for layer in language_model.stack.layers for hook in layer._forward_hooks.values())


def test_the_picture_says_what_the_prefix_adds():
    body = dial().picture.body
    assert body.count(f'fill="{drawing.NEW}"') == 3 + 1 + 4  # cells, legend, bars
    assert body.count(f'fill="{drawing.OLD}"') == 21 + 1 + 4
    assert dial().picture.table[1][0] == "<bos>" and len(dial().picture.table) == 7


def test_the_first_touch_is_remembered():
    panel = dial()
    panel.set(prefix=2)
    assert "W29" not in progress.state()["widget"]
    panel.controls["prefix"].box.value = 4
    assert "W29" in progress.state()["widget"]


def test_the_longest_sentence_fits_and_a_longer_one_is_refused():
    longest = widgets.mask_dial(model(), WORDS, "show me " * 5, prefix=1, position=0)
    assert longest.picture.width == drawing.WIDTH and len(longest.picture.saved_html) < 80_000
    with pytest.raises(ValueError, match="sentence must have 1 to 10 words and marks, got 11"):
        widgets.mask_dial(model(), WORDS, "show me " * 5 + "the")
    with pytest.raises(ValueError, match="value must lie between 1 and 6, got 7"):
        dial(prefix=7)
