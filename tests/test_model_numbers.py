"""The numbers on the map of the model (W15): those of a translator's own modules, for a sentence that is typed."""

import math

import numpy as np
import pytest
import torch

from small_panels import SENTENCES, translator
from svg_parts import assert_inside
from transformer_lib.course import progress
from transformer_lib.course.figures import widgets
from transformer_lib.course.figures.widgets import architecture_panel, model_numbers
from transformer_lib.course.mine import UnknownWords

MODULES = [step.module for step in architecture_panel.STEPS if step.module]
FIRST = SENTENCES[0]  # 7 words and a full stop


@pytest.fixture
def shown():
    return widgets.model_map(translator(), step=4, sentence=FIRST, word=5)


def test_what_is_kept_is_what_the_model_computes():
    walked, model = model_numbers.walk(translator(), FIRST, MODULES), translator().model
    src, tgt = torch.tensor([walked.src_ids]), torch.tensor([walked.tgt_ids])
    with torch.no_grad():
        memory, logits = model.encode(src)[0], model(src, tgt)[0]
    np.testing.assert_allclose(walked.rows["encoder"][0], memory.numpy())
    np.testing.assert_allclose(walked.rows["output_head"][0], logits.numpy())
    assert walked.target[0] == "<bos>" and len(walked.target) == len(walked.tgt_ids) <= 19
    cross = walked.weights["decoder.layers.0.cross_attention"]
    assert cross.shape == (len(walked.target), len(walked.source)) and np.allclose(cross.sum(axis=1), 1)


def test_the_way_in_is_the_row_of_the_table_times_the_root_of_d_model():
    walked, table = model_numbers.walk(translator(), FIRST, MODULES), translator().model.src_embedding.weight
    row = table[walked.src_ids[4]].detach().numpy() * math.sqrt(table.shape[1])
    np.testing.assert_allclose(model_numbers.at_step(walked, 2, "src_embedding", 5).row, row)
    both = walked.rows["position"]
    np.testing.assert_array_equal(model_numbers.at_step(walked, 3, "position", 5).row, both[0][4])
    np.testing.assert_array_equal(model_numbers.at_step(walked, 11, "position", 2).row, both[1][1])
    assert model_numbers.at_step(walked, 1, "", 5).lines == (f"the id is {walked.src_ids[4]}",)


def test_every_step_tells_the_words_numbers(shown):
    for step, part in enumerate(architecture_panel.STEPS, 1):
        picture = shown.set(step=step).picture
        assert_inside(picture)
        assert ("reads " in picture.says.partition("; ")[2]) == (part.kind == "attention"), step
        assert ("length " in picture.says) == (part.module not in ("", "output_head"))
        assert "It writes: " in picture.says and "-0.00" not in picture.body and len(picture.saved_html) < 60_000
    assert "the likeliest next words; w" in picture.says
    assert "the largest of 17 logits; w" in shown.set(step=18).picture.says
    assert picture.table[0][-1] == "what this word is there" and len(picture.table) == 20
    assert "Built in: " in shown._foot


def test_a_word_beyond_the_last_is_the_last(shown):
    assert "“.”, word 7 of 7: " in shown.set(step=4, word=20).picture.says


def test_another_sentence_is_typed_and_what_cannot_be_read_is_said(shown):
    before = shown.picture
    after = shown.set(sentence="a dog sat.").picture
    assert after != before and "word 4 of 4" in after.says
    unknown = shown.set(sentence="I love you.").picture
    assert unknown.says.startswith("This little translator has never met I, love, you,")
    assert "never met" in unknown.body and unknown.alt.endswith(unknown.says)
    assert_inside(unknown)
    assert shown.set(sentence=" ").picture.says == "Type a sentence of 1 to 20 words and marks; this one has 0."
    assert "this one has 21" in shown.set(sentence="dog " * 21).picture.says
    assert shown.set(sentence=FIRST).picture == before


def test_what_is_given_at_first_must_be_readable():
    with pytest.raises(UnknownWords, match="never met catt"):
        widgets.model_map(translator(), sentence="The catt sat.")
    with pytest.raises(ValueError, match="value must lie between 1 and 20, got 0"):
        widgets.model_map(translator(), sentence=FIRST, word=0)


def test_the_first_change_by_hand_is_remembered(shown):
    assert len(shown.carried["sentence"]) == 3
    shown.controls["sentence"].value = "A dog slept."
    assert list(progress.state()["widget"]) == ["W15"]
