"""W9, the alignment panel: its numbers are the recorded weights, and its rows write what the model wrote."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import transformer_lib as tl
from svg_parts import number, parts
from transformer_lib.course.figures import widgets
from transformer_lib.course.figures.svg.aligning import alignment_picture
from transformer_lib.course.figures.widgets.aligning_panel import SENTENCES, draw_alignment, recorded_alignments


@pytest.fixture(scope="module")
def translator():
    return tl.load_trained()


@pytest.fixture(scope="module")
def shown(translator):
    return recorded_alignments(translator, SENTENCES)


@pytest.mark.parametrize("index", range(len(SENTENCES)))
def test_the_values_are_those_of_a_separate_recording(translator, shown, index):
    entry = shown[index]
    text = translator.translate([SENTENCES[index]])[0]
    src = translator.src_tokenizer.encode_batch([SENTENCES[index]])
    tgt = translator.tgt_tokenizer.encode_batch([text], bos=True, eos=True)
    with torch.no_grad(), tl.record_attention(translator.model) as record:
        translator.model(src, tgt[:, :-1])
    words = [translator.tgt_tokenizer.words[i] for i in tgt[0]]
    assert [*entry.reads, entry.writes[-1]] == words
    assert entry.reads[1:] == entry.writes[:-1]
    for layer in (1, 2):
        weights = record[f"decoder.layers.{layer - 1}.cross_attention"][0]
        for head in ("mean", 1, 2, 3, 4):
            grid = weights.mean(0) if head == "mean" else weights[head - 1]
            for position in range(1, len(entry.writes) + 1):
                picture = draw_alignment(entry, layer, head, position)
                told = [float(row[1]) for row in picture.table[1:]]
                np.testing.assert_allclose(told, grid[position - 1], atol=0.00501)


def test_the_line_of_text_names_the_three_largest(shown):
    entry = shown[0]
    position = entry.writes.index("sehen") + 1
    picture = draw_alignment(entry, 2, "mean", position)
    row = entry.weights[1].mean(0)[position - 1]
    assert f"writes “sehen” ← see {row.max():.2f}, " in picture.says
    assert picture.says.count(",") == 4
    assert "reads “Fluss”, writes “sehen”" in picture.says


def test_the_chosen_row_is_framed_and_its_lines_are_as_thick_as_their_weights():
    weights = np.array([[0.75, 0.25, 0.0], [0.01, 0.99, 0.0]])
    picture = alignment_picture(weights, ["a", "b", "c"], ["x", "y"], 0, "title")
    groups = [group for group in parts(picture.body, "g") if group.get("opacity")]
    faint, strong = sorted(groups, key=lambda group: number(group, "opacity"))
    thick, thin = (number(ray, "stroke-width") for ray in strong)
    assert thick > 2 * thin > 0  # weights 0.75 and 0.25; 0 is not drawn
    [ray] = faint  # nor is 0.01
    assert number(ray, "stroke-width") > thick
    assert 'class="bold">x<' in picture.body


def test_a_position_beyond_the_end_shows_the_last(shown):
    entry = shown[2]
    assert entry.writes[-1] == "<eos>"
    assert draw_alignment(entry, 1, 3, 99).says == draw_alignment(entry, 1, 3, len(entry.writes)).says


def test_it_starts_where_it_is_told_to():
    panel = widgets.alignment(sentence=2, position=3)
    assert panel.picture.says.startswith("layer 2, mean of heads: reads “die”, writes “Frau” ← woman")


def test_weights_that_do_not_fit_the_words_are_refused():
    with pytest.raises(ValueError, match=r"weights must have shape \(2, 3\), got \(3, 2\)"):
        alignment_picture(np.ones((3, 2)) / 2, ["a", "b", "c"], ["x", "y"], 0, "title")
    with pytest.raises(ValueError, match="row must lie between 0 and 1, got 2"):
        alignment_picture(np.ones((2, 3)) / 3, ["a", "b", "c"], ["x", "y"], 2, "title")
