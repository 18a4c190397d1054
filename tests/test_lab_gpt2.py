"""GPT-2's merges in the excerpt: what they cut, the ids, and that the rest is only used where it is on disk."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from transformer_lib.course.exercises import get
from transformer_lib.course.lab import gpt2

pytestmark = pytest.mark.fast


def cut(text):
    return get("05.3").reference(text, gpt2.MERGES)


@pytest.mark.parametrize(
    ("text", "tokens", "ids"),
    [
        ("Ġstrawberry", ["Ġstrawberry"], [41236]),
        ("strawberry", ["st", "raw", "berry"], [301, 1831, 8396]),
        ("ĠSolidGoldMagikarp", ["ĠSolidGoldMagikarp"], [43453]),
        ("12345", ["123", "45"], [10163, 2231]),
        ("1002", ["100", "2"], [3064, 17]),
    ],
)
def test_texts_are_cut_as_by_gpt_2(text, tokens, ids):
    assert cut(text) == tokens
    assert [gpt2.token_id(token) for token in tokens] == ids


def test_the_excerpt_is_in_order_and_has_only_what_its_texts_need():
    positions = list(gpt2.POSITIONS.values())
    assert positions == sorted(set(positions)) and positions[-1] < 50_000
    assert all(any(left + right in text for text in gpt2.TEXTS) for left, right in gpt2.MERGES)
    tokens = {left + right for left, right in gpt2.MERGES}
    assert all(len(part) == 1 or part in tokens for pair in gpt2.MERGES for part in pair)


@pytest.mark.parametrize("token", ["zebra", "é", ""])
def test_a_token_that_the_excerpt_does_not_make_is_named(token):
    with pytest.raises(ValueError, match="token must be a plain character or made by the merges of the excerpt, got"):
        gpt2.token_id(token)


@pytest.fixture
def nothing_there(monkeypatch, tmp_path):
    """Neither library has its files."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    hub = SimpleNamespace(try_to_load_from_cache=lambda name, file: None)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    return monkeypatch, tmp_path


def test_without_its_files_there_is_no_tokenizer(nothing_there):
    assert gpt2.on_disk() is None


def test_without_a_library_there_is_no_tokenizer(nothing_there):
    nothing_there[0].setattr("importlib.util.find_spec", lambda name: None)
    assert gpt2.on_disk() is None


def test_a_tokenizer_of_the_hub_is_read_from_its_file(nothing_there):
    monkeypatch, folder = nothing_there
    from tokenizers import Tokenizer, models

    path = str(folder / "tokenizer.json")
    merged = {"s": 0, "t": 1, "st": 2}
    Tokenizer(models.BPE(vocab=merged, merges=[("s", "t")])).save(path)
    hub = SimpleNamespace(try_to_load_from_cache=lambda name, file: path if name == "gpt2" else None)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    assert gpt2.on_disk()("sts") == ["st", "s"]


def test_tiktoken_is_asked_only_if_its_file_is_kept(nothing_there):
    monkeypatch, folder = nothing_there
    words = {0: " the", 1: "re"}
    encoding = SimpleNamespace(encode=lambda text: [0, 1], decode=lambda ids: words[ids[0]])
    monkeypatch.setitem(sys.modules, "tiktoken", SimpleNamespace(get_encoding=lambda name: encoding))
    assert gpt2.on_disk() is None
    (folder / gpt2._TIKTOKEN).write_text("")
    assert gpt2.on_disk()(" there") == ["Ġthe", "re"]
