"""W24: its numbers are the recorded weights, and a cut does what a mask does."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import transformer_lib as tl
from transformer_lib.course.figures import widgets
from transformer_lib.course.figures.widgets.explorer_panel import SENTENCES, cut_effect, draw_explorer, recorded


@pytest.fixture(scope="module")
def translator():
    return tl.load_trained()


@pytest.fixture(scope="module")
def shown(translator):
    return recorded(translator, SENTENCES[0])


def test_the_weights_are_those_of_a_separate_recording(translator, shown):
    tgt = translator.tgt_tokenizer.encode_batch(translator.translate([SENTENCES[0]]), bos=True, eos=True)
    with torch.no_grad(), tl.record_attention(translator.model) as record:
        translator.model(translator.src_tokenizer.encode_batch([SENTENCES[0]]), tgt[:, :-1])
    assert shown.weights.keys() == record.keys() and len(record) == 6
    for name, grid in record.items():
        np.testing.assert_allclose(shown.weights[name], grid[0], atol=1e-6)
    told = draw_explorer(shown, "cross", 2, 3, "map", 4, 0).says
    row = shown.weights["decoder.layers.1.cross_attention"][2, 3]
    assert f"{shown.source[row.argmax()]} {row.max():.2f}" in told and told.endswith("Nothing is cut.")


def test_a_cut_is_the_difference_of_two_translations_probabilities(translator):
    money = "The man saw the bank near the money."
    shown = recorded(translator, money)
    names = [f"encoder.layers.{n}.self_attention" for n in (0, 1)]
    effect, changed = cut_effect(shown, names, "all", 4, 7)
    model, may = translator.model, torch.ones(9, 9, dtype=torch.bool)
    may[4, 7] = False
    model.src_mask = lambda src: may[None, None]
    after = translator.log_probabilities([money], [translator.tgt_tokenizer.decode(shown.tgt[0])]).sum().item()
    del model.src_mask
    assert effect == pytest.approx(after - shown.log_p.sum().item(), abs=1e-3)
    assert [shown.target[1:][t] for t in changed] == ["die"]


def test_the_only_key_can_be_cut_without_nan(shown):
    told = draw_explorer(shown, "decoder", 1, "all", "map", 1, 1).says
    assert "nan" not in told and "Cut “<bos>” (1.00)" in told
    assert "may not read" in draw_explorer(shown, "decoder", 1, 2, "lines", 1, 3).says


def test_the_explorer_tells_what_a_cut_in_all_layers_does():
    panel = widgets.attention_explorer(sentence=4, token=5, cut=8, everywhere=True)
    assert "no longer the likeliest: “die”." in panel.picture.says
