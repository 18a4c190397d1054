"""What holds for every panel: what moves it, what it says and draws, what it refuses, which states it has."""

from __future__ import annotations

import math
import re
from functools import cache

import ipywidgets
import numpy as np
import pytest
from site_panels import MOST

from small_panels import IDS, attention_only, by_hand, corners, matrices, normal, panel, softmax
from svg_parts import assert_inside
from transformer_lib.course import progress
from transformer_lib.course.figures.widgets.masking_panel import Flips

every_panel = pytest.mark.parametrize("name", IDS)
shared, fresh = cache(panel), cache(lambda name: panel(name))

SETTINGS = {  # in which every control matters
    "attention_explorer": {"head": 1, "token": 2, "cut": 1},
    "attention_view": {"head": 1},
    "encoder_walk": {"step": 5, "pad": True},
    "next_word": {"temperature": 1.5},  # at 0 no dice are rolled
    "patient_chart": {"look": "encoder"},
    "valley": {"optimizer": "momentum"},  # SGD has no memory
}


def count(shown) -> int:
    """How many states a page without a kernel keeps; what a script works out there is not listed."""
    ours = shown.script.controls if shown.script else ()
    return math.prod(len(values) for name, values in shown.carried.items() if name not in ours)


@every_panel
def test_the_first_change_by_hand_is_remembered_and_one_by_code_is_not(name):
    shown = fresh(name).set(**SETTINGS.get(name, {}))
    by_code = dict(progress.state()["widget"])
    by_hand(next(iter(shown.controls.values())))
    assert (by_code, list(progress.state()["widget"])) == ({}, [IDS[name]])


@every_panel
def test_every_control_has_a_name_and_changes_the_picture(name):
    shown = shared(name)
    start = shown.set(**SETTINGS.get(name, {})).values
    for control in shown.controls.values():
        before = shown.set(**start).picture
        by_hand(control)
        assert shown.picture != before
        named = control.buttons.values() if isinstance(control, Flips) else [getattr(control, "box", control)]
        assert all(each.description for each in named)
        taken = (ipywidgets.Dropdown, ipywidgets.RadioButtons, ipywidgets.Select, ipywidgets.SelectMultiple)
        assert not isinstance(control, taken)  # JupyterLab takes some of their keys for its own commands


@every_panel
def test_every_state_fits_its_picture_and_is_told_in_words(name):
    shown = shared(name)
    settings = [values for values, *_ in shown.states()] if count(shown) <= 500 else corners(shown)
    for values in settings:
        picture = shown.set(**values).picture
        assert_inside(picture)
        assert len(picture.saved_html) < 60_000
        assert picture.says and (picture.says[1:] in picture.alt or name in ("attention_view", "deciding_word"))
        assert not any(word in f"{picture.body} {picture.alt}" for word in (">nan", " nan", ">inf", "-0.00", "None"))
        assert len({len(row) for row in picture.table or [[]]}) == 1
        assert set(re.findall(r'https?://[^"\s<]+', picture.svg)) == {"http://www.w3.org/2000/svg"}
        assert "<script" not in picture.svg and not re.search(r'\bid="', picture.svg)


@every_panel
def test_the_saved_form_is_the_same_twice_and_has_its_words(name):
    first, second = fresh(name), shared(name)
    saved, again = (shown.set(**first.values)._repr_mimebundle_() for shown in (first, second))
    assert (saved["text/html"], saved["text/plain"]) == (again["text/html"], again["text/plain"])
    assert "▶ Run this cell" in saved["text/html"] and 'alt="' in saved["text/html"]
    assert saved["text/plain"] == first.picture.alt


@every_panel
def test_a_page_without_a_kernel_can_have_every_state(name):
    shown = shared(name)
    before = shown.values
    states = list(shown.states(MOST))
    assert len(states) == count(shown)
    assert len({str(values) for values, *_ in states}) == len(states)
    assert shown.values == before
    if shown.script is None:
        assert [picture.svg for values, picture, _ in states if values == before] == [shown.picture.svg]


@every_panel
def test_more_states_than_asked_for_are_refused(name):
    most = count(shared(name)) - 1
    with pytest.raises(ValueError, match=f"{most + 1:,} states are more than {most:,}; name fewer values"):
        shared(name).states(most)


def one(low, high, **given):
    return f"value must lie between {low} and {high}, got {next(iter(given.values()))}", given


OF_SENTENCES = ("alignment", "attention_explorer", "decoder_stepper", "speculation", "writing")
REFUSED = [
    ("ablations", "part must be one of 'positions', .*, got 'memory'", {"part": "memory"}),
    ("ablations", "score must be one of 'exact match, held-out', .*, got 'BLEU'", {"score": "BLEU"}),
    ("attention_view", "weights must hold at least one layer", {"weights": {}}),
    ("attention_view", "must be of one sentence, got a batch of 2", {"weights": softmax(2, 1, 5, 5)}),
    ("attention_view", r"in shape \(5, 5\) for these tokens, got \(2, 5, 3\)", {"weights": softmax(2, 5, 3)}),
    ("attention_view", r"weights\['enc'\] must lie between 0 and 1", {"weights": {"enc": softmax(5, 5) * 3}}),
    ("attention_view", "weights must be an array with 2 or 3 or 4 axes", {"weights": np.ones(5)}),
    ("backward_walk", *one(1, 7, step=8)),
    ("backward_walk", *one(0, 9, slip=10)),
    ("bpe_stepper", "counts must have 1 to 8 words to fit the picture, got 0", {"counts": {}}),
    ("bpe_stepper", "words of 2 to 12 letters, got 'aaaaaaaaaaaaa'", {"counts": {"a" * 13: 1}}),
    ("bpe_stepper", "give each word a positive integer, got 'low': 0", {"counts": {"low": 0}}),
    ("bpe_stepper", "give each word a positive integer, got 'low': 1.5", {"counts": {"low": 1.5}}),
    ("cache_dial", "n_kv_heads must be one of 1, .*, got 3", {"n_kv_heads": 3}),
    ("cache_dial", "d_head must be one of 64, .*, got 80", {"d_head": 80}),
    ("cache_dial", "window must be one of None, .*, got 5", {"window": 5}),
    ("cache_dial", "itemsize must be one of 4, 2, 1, got 3", {"itemsize": 3}),
    ("cache_dial", *one(16, 131072, context=3)),
    ("cost_calculator", "d_model must be one of 64, .*, got 100", {"d_model": 100}),
    ("cost_calculator", "n_heads must be one of 1, 2, .*, got 3", {"n_heads": 3}),
    ("cost_calculator", *one(16, 131072, seq_len=8)),
    ("cost_calculator", *one(1, 96, n_layers=0)),
    ("deciding_word", "word must be one of 'bank', 'seal', 'bat', 'ruler', 'nut', got 'tree'", {"word": "tree"}),
    ("decoder_stepper", "unknown word 'catt'.*cat", {"sentences": ["The catt slept."]}),
    ("dot_product", "key must be a vector of two components, not both zero", {"key": [0.0, 0.0]}),
    ("dot_product", "key must be a vector of two components", {"key": [1.0, 2.0, 3.0]}),
    ("embedding_plane", "one word per row, 7, and at most 40, got 2", {"classes": {"one": ["a"], "two": ["b"]}}),
    ("embedding_plane", "classes must be 2 to 6, got 1", {"classes": {"one": ["a"] * 7}}),
    ("gathering", r"X must be 2 to 20 tokens with two features each, got shape \(3, 5\)", {"X": normal(3, 5)}),
    ("gathering", *one(0, 20, rounds=21)),
    ("encoder_walk", *one(1, 18, step=19)),
    ("gradient_descent", *one(-1.0, 3.5, sharpness=9)),
    ("head_splitter", *one(1, 12, d_model=13)),
    ("head_splitter", *one(1, 6, n_heads=7)),
    ("head_splitter", *one(1, 8, stage=9)),
    ("mask_dial", "sentence must have 1 to 10 words and marks, got 11", {"sentence": "show me " * 5 + "the"}),
    ("mask_dial", *one(1, 6, prefix=7)),
    ("mask_lab", r"must have shape \(5, 5\) for these tokens, got \(3, 3\)", {"scores": normal(3, 3)}),
    ("mask_lab", "tokens must be 2 to 8 to fit the picture, got 9", {"tokens": list("abcdefghi")}),
    ("mask_lab", r"scores must be an array with 2 axes, got shape \(5,\)", {"scores": normal(5)}),
    ("mask_lab", "scores must hold finite numbers", {"scores": np.full((5, 5), -np.inf)}),
    ("model_map", "tgt_len must be at least 1, got 0", {"tgt_len": 0}),
    ("patient_chart", "patient must be one of 'control', 'A', .*, got 'Z'", {"patient": "Z"}),
    ("patient_chart", "look must be one of 'curves', 'encoder', .*, got 'pulse'", {"look": "pulse"}),
    ("patient_chart", *one(1, 20, row=21)),
    ("position_dial", *one(12, 47, position=11)),
    ("position_dial", *one(12, 47, position=48)),
    ("position_dial", *one(-12, 12, offset=13)),
    ("projection_stepper", "tokens must have one entry per row of X, 5, got 1", {"tokens": ["a"]}),
    ("projection_stepper", "W_V must have d_model = 7 rows, got 3", {"W_V": np.ones((3, 2))}),
    ("projection_stepper", r"W_K must have the shape of W_Q, \(7, 3\), got \(7, 2\)", {"W_K": np.ones((7, 2))}),
    ("projection_stepper", "d_v must be between 1 and 4 to fit the picture, got 5", {"W_V": np.ones((7, 5))}),
    ("projection_stepper", r"X must be an array with 2 axes, got shape \(7,\)", {"X": np.ones(7)}),
    ("residual_and_norm", "norm must be one of 'none', 'post', 'pre', got 'batch'", {"norm": "batch"}),
    ("residual_and_norm", *one(1, 24, n_blocks=25)),
    ("shuffle", "tokens must have one entry per row of X, 5, got 1", {"tokens": ["a"]}),
    ("shuffle", r"order must be a permutation of 0 to 4, got \[0, 1, 2, 3, 3\]", {"order": [0, 1, 2, 3, 3]}),
    ("shuffle", "X must have an even number of columns for sinusoids, got 7", matrices(d_model=7)),
    ("shuffle", "W_K must have d_model = 6 rows, got 7", {"W_K": np.ones((7, 3))}),
    ("shuffle", "d_v must be between 1 and 4 to fit the picture, got 5", {"W_V": np.ones((6, 5))}),
    ("shuffle", "tokens must be between 2 and 5 .*, got 1", {"X": np.ones((1, 6)), "tokens": ["a"]}),
    ("soft_lookup", "values must have one entry per key, 4, got 3", {"values": [1, 2, 3]}),
    ("soft_lookup", r"query must have d_k entries, .* \(4, 2\), got \(3,\)", {"query": [1.0, 2.0, 3.0]}),
    ("soft_lookup", r"names, features must fit keys \(4, 2\), got 1 and 2", {"names": ["a"]}),
    ("speculation", *one(1, 8, gamma=9)),
    ("token_length", "tokens must be as many as the rows of X, 5, got 2", {"tokens": ["a", "b"]}),
    ("token_length", "X must have 2 to 9 rows to be drawn, got 1", {"X": normal(1, 7), "tokens": ["a"]}),
    ("token_length", "X must have 2 to 9 rows .*, got 11", {"X": normal(11, 7), "tokens": list("abcdefghijk")}),
    ("token_length", "X must be an array with 2 axes", {"X": normal(7)}),
    ("training_replay", "beside must be one of 'nothing', .*, got 'no decoder'", {"beside": "no decoder"}),
    ("training_replay", *one(1, ".*", step=0)),
    *(
        ("two_heads", "string must have 3 to 16 letters from a to z, got", {"string": string})
        for string in ("ab", "abcdefghijklmnopq", "Black", "a b c")
    ),
    ("two_heads", "position must be from 0 to 19, got 20", {"position": 20}),
    ("two_heads", "model must have two layers of one head, got", {"model": attention_only(3)}),
    ("two_heads", "model must have two layers of one head, got", {"model": attention_only(2, 2)}),
    *((name, "sentences must hold at least one", {"sentences": []}) for name in OF_SENTENCES),
]


@pytest.mark.parametrize(("name", "message", "given"), REFUSED)
def test_what_does_not_fit_is_refused_by_name(name, message, given):
    with pytest.raises(ValueError, match=message):
        panel(name, **given)


@pytest.mark.parametrize("name", OF_SENTENCES)
def test_a_single_string_is_no_list_of_sentences(name):
    with pytest.raises(TypeError, match="sentences must be a list of strings, got one string: 'The cat.'"):
        panel(name, sentences="The cat.")
