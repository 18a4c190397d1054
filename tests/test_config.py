from __future__ import annotations

from dataclasses import FrozenInstanceError, fields

import pytest

import transformer_lib as tl
from factories import POSITIONS, make_config

pytestmark = pytest.mark.fast

DEFAULTS = {
    "d_model": 512,
    "n_heads": 8,
    "n_layers": 6,
    "d_ff": 2048,
    "dropout": 0.1,
    "max_len": 512,
    "norm_first": False,
    "position": "sinusoidal",
    "tie_embeddings": False,
    "pad_id": 0,
    "bos_id": 1,
    "eos_id": 2,
}


def test_the_defaults_are_the_base_model():
    config = tl.TransformerConfig(src_vocab_size=23, tgt_vocab_size=29)
    wanted = {"src_vocab_size": 23, "tgt_vocab_size": 29, **DEFAULTS}
    assert {name: getattr(config, name) for name in wanted} == wanted
    assert config.to_dict() == {field.name: getattr(config, field.name) for field in fields(config)}


def test_a_dictionary_gives_the_same_config():
    config = make_config(norm_first=True, position="rotary", dropout=0.25)
    assert tl.TransformerConfig(**config.to_dict()) == config


def test_a_config_is_keyword_only_and_frozen():
    with pytest.raises(TypeError, match="positional argument"):
        tl.TransformerConfig(23, 29)
    with pytest.raises(FrozenInstanceError):
        make_config().d_model = 64


@pytest.mark.parametrize("position", POSITIONS)
def test_every_kind_of_position(position):
    assert make_config(position=position).position == position


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"d_model": 31}, "d_model must be divisible by n_heads, got d_model=31, n_heads=3"),
        ({"d_model": 33}, r"d_model must be even for sinusoidal positions \(sine-cosine pairs\), got 33"),
        ({"d_model": 33, "position": "rotary"}, "d_model / n_heads must be even for rotary positions, got 11"),
        ({"n_layers": 0}, "n_layers must be at least 1, got 0"),
        ({"d_ff": -2}, "d_ff must be at least 1, got -2"),
        ({"src_vocab_size": 0}, "src_vocab_size must be at least 1, got 0"),
        ({"tgt_vocab_size": 0}, "tgt_vocab_size must be at least 1, got 0"),
        ({"n_heads": 0}, "n_heads must be at least 1, got 0"),
        ({"max_len": 0}, "max_len must be at least 1, got 0"),
        ({"d_model": 0}, "d_model must be at least 1, got 0"),
        ({"dropout": 1.0}, r"dropout must lie in \[0, 1\), got 1.0"),
        ({"position": "spiral"}, "position must be one of 'sinusoidal', 'learned', .*, got 'spiral'"),
        ({"pad_id": -1}, "pad_id must be at least 0, got -1"),
        ({"eos_id": 23}, r"eos_id must be below both vocabulary sizes \(23\), got 23"),
        ({"bos_id": 29}, r"bos_id must be below both vocabulary sizes \(23\), got 29"),
        ({"bos_id": 2}, "pad_id, bos_id and eos_id must differ, got .*'bos_id': 2, 'eos_id': 2"),
        (
            {"tie_embeddings": True},
            "tie_embeddings needs one shared vocabulary, got src_vocab_size=23, tgt_vocab_size=29",
        ),
    ],
)
def test_a_bad_value_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        make_config(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"d_model": 30.0}, "d_model must be an int, got 30.0 of type float"),
        ({"n_heads": True}, "n_heads must be an int, got True of type bool"),
        ({"eos_id": "2"}, "eos_id must be an int, got '2' of type str"),
        ({"dropout": "0.1"}, "dropout must be a number, got '0.1' of type str"),
        ({"norm_first": 1}, "norm_first must be True or False, got 1"),
        ({"tie_embeddings": "yes"}, "tie_embeddings must be True or False, got 'yes'"),
    ],
)
def test_a_bad_type_is_refused(changes, message):
    with pytest.raises(TypeError, match=message):
        make_config(**changes)


def test_odd_widths_are_fine_where_nothing_comes_in_pairs():
    assert make_config(d_model=33, position="learned").d_model == 33
