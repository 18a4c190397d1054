"""W34, the decoder at work: its weights are the recorded ones, and nothing is shown before it is written."""

from __future__ import annotations

import numpy as np
import pytest

from read_once import TRAINED
from svg_parts import number, parts
from transformer_lib.course.figures import widgets
from transformer_lib.course.figures.svg.writing import writing_picture
from transformer_lib.course.figures.widgets.aligning_panel import recorded_alignments
from transformer_lib.course.figures.widgets.writing_panel import FIRST_SENTENCES, draw_writing

SOURCE, TARGET = ("the", "old", "cat"), ("<bos>", "die", "Katze", "schlief", "<eos>", "<eos>")
WEIGHTS = np.array([[0.7, 0.3, 0.0], [0.01, 0.0, 0.99], [0.0, 1.0, 0.0], [0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])


def words(picture):
    return [part.text for part in parts(picture.body, "text")]


def test_words_to_come_are_not_shown():
    for step in range(1, 4):
        shown = words(writing_picture(WEIGHTS, SOURCE, TARGET, step))
        assert all(word in shown for word in TARGET[: step + 1]) and not {*TARGET[step + 1 : 4]} & {*shown}


def test_lines_are_as_thick_as_their_weights_and_earlier_ones_are_faint():
    groups = [g for g in parts(writing_picture(WEIGHTS, SOURCE, TARGET, 2).body, "g") if g.get("opacity")]
    assert [number(group, "opacity") for group in groups] == [0.12, 0.9]
    [strong] = groups[1]  # .01 is not drawn
    thick, thin = groups[0]
    assert number(strong, "stroke-width") > number(thick, "stroke-width") > number(thin, "stroke-width")


def test_one_word_asks_and_one_is_new():
    picture = writing_picture(WEIGHTS, SOURCE, TARGET, 2)
    assert words(picture).count("asks") == words(picture).count("new") == 1
    assert picture.says == "step 2 of 5: reads “die”, writes “Katze” ← cat 0.99, the 0.01"


def test_the_panel_shows_the_last_layer_of_the_trained_translator():
    panel = widgets.writing()
    entry = recorded_alignments(TRAINED, FIRST_SENTENCES[:1])[0]
    for step in (1, 5, 8):
        told = [float(row[1]) for row in panel.set(step=step).picture.table[1:]]
        np.testing.assert_allclose(told, entry.weights[1].mean(axis=0)[step - 1], atol=0.00501)
    assert panel.set(step=8).picture.says.startswith("step 8 of 10: reads “Fluss”, writes “sehen” ← see 0.60")


def test_it_starts_with_the_first_step_of_the_first_sentence():
    assert widgets.writing().picture.says.startswith("step 1 of 10: reads “<bos>”")


def test_a_step_beyond_the_end_shows_the_last():
    entry = recorded_alignments(TRAINED, FIRST_SENTENCES[:1])[0]
    assert draw_writing(entry, 99).says == draw_writing(entry, len(entry.writes)).says


@pytest.mark.parametrize(
    ("weights", "step", "message"),
    [
        (WEIGHTS[:3], 1, r"weights must have shape \(5, 3\), got \(3, 3\)"),
        (WEIGHTS, 0, "step must lie between 1 and 5, got 0"),
        (WEIGHTS, 6, "step must lie between 1 and 5, got 6"),
    ],
)
def test_what_does_not_fit_is_refused(weights, step, message):
    with pytest.raises(ValueError, match=message):
        writing_picture(weights, SOURCE, TARGET, step)
