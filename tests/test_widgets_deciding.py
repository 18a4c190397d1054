"""W27, the word that decides: what is drawn is what the translator reads and writes, cut or not."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import transformer_lib as tl
from transformer_lib.course.figures.svg.deciding import deciding_picture
from transformer_lib.course.figures.widgets.deciding_panel import WORDS, deciding_word, senses_of


@pytest.fixture(scope="module")
def panel():
    return deciding_word()


@pytest.mark.parametrize(("cue", "noun"), [("river", "Ufer"), ("money", "Bank"), (" Swan. ", "Ufer")])
def test_the_cue_decides(panel, cue, noun):
    picture = panel.set(word="bank", cue=cue, cut=False).picture
    assert (
        f"the translation says {noun}." in picture.says
        and "never stood" not in picture.says
        and f">{noun}</text>" in picture.body
    )
    assert f"of its weight in this head to “{cue.strip(' .').lower()}”" in picture.says


def test_cut_it_no_longer_does(panel):
    picture = panel.set(word="bank", cue="money", cut=True).picture
    assert "may not read “money”, and the translation says Ufer." in picture.says
    assert "✕ cut" in picture.body and "stroke-dasharray" in picture.body


def test_the_weights_are_those_of_the_head_named(panel):
    picture = panel.set(word="bank", cue="river", cut=False).picture
    translator = tl.load_trained()
    with torch.no_grad(), tl.record_attention(translator.model) as record:
        translator.model.encode(translator.src_tokenizer.encode_batch(["The man saw the bank near the river."]))
    told = [float(row[1]) for row in picture.table[1:]]
    np.testing.assert_allclose(told, record["encoder.layers.0.self_attention"][0, 1, 4], atol=0.00501)
    assert "encoder layer 1, head 2" in picture.body


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("", "Type a word, such as river or money, and press Enter."),
        ("  ", "Type a word"),
        ("old river", "Type a single word, not 2."),
        ("rivers", "“rivers” is not among the 448 words that this small translator has learned. Close to it: river"),
        ("qqqq", "Try river, money, swan or loan."),
        ("<b>", "“&lt;b&gt;” is not among"),
        ("x" * 99, "“xxxxxxxxxxxx…” is not among"),
    ],
)
def test_what_cannot_be_read_is_said(panel, typed, said):
    panel.set(word="bank", cue=typed, cut=False)
    assert said in panel._says.value
    assert "may not" not in panel.picture.says and "?" in panel.picture.body


def test_a_word_that_it_never_met_is_told(panel):
    says = panel.set(word="bank", cue="Monday", cut=False).picture.says
    assert "“Monday” never stood beside it there." in says
    assert ",," not in panel.set(word="bank", cue="that", cut=False).picture.says


@pytest.mark.parametrize("word", WORDS)
def test_each_word_has_two_senses_and_its_cues_work(panel, word):
    senses = senses_of(word)
    assert len(senses) == 2
    for sense in senses:
        assert len(sense.cues) >= 4
        assert f"says {sense.noun}" in panel.set(word=word, cue=sense.cues[0], cut=False).picture.says


def test_weights_of_other_sizes_are_refused():
    with pytest.raises(ValueError, match=r"weights must have shape \(2,\)"):
        deciding_picture(["a", "b"], np.zeros(3), 0, 1, ["c"], (), cut=False, title="", says="")


def test_the_model_is_left_as_it_was(panel):
    translator = tl.load_trained()
    panel.set(word="bank", cue="money", cut=True)
    assert translator.translate(["The man saw the bank near the money."]) == ["Der Mann sah die Bank neben dem Geld."]
