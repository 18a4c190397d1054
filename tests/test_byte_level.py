"""Byte-level byte-pair encoding: the ids of the `tokenizers` library for any text, and the text again."""

from __future__ import annotations

import json
import random
import sys

import pytest
import tokenizers
import torch
from tokenizers import normalizers, processors

import transformer_lib as tl
from small_tokenizer import ADDED, ROOT, SPECIAL, TEXTS, train
from transformer_lib.course.exercises import nb05
from transformer_lib.data import byte_level, splitting

pytestmark = pytest.mark.fast


@pytest.fixture(scope="module", params=splitting.SPLITTING)
def pair(request, tmp_path_factory):
    """A tokenizer of ours and its reference, by the same file."""
    reference = train(request.param)
    path = tmp_path_factory.mktemp(request.param) / "tokenizer.json"
    reference.save(str(path))
    return tl.ByteLevelTokenizer.from_file(path), reference


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    path = tmp_path_factory.mktemp("small") / "tokenizer.json"
    train("gpt2").save(str(path))
    return tl.ByteLevelTokenizer.from_file(path.parent)


def data_of(tokenizer: tokenizers.Tokenizer) -> dict:
    return json.loads(tokenizer.to_str())


def assert_same(ours, reference, text):
    for special in (False, True):
        reference.encode_special_tokens = not special
        wanted = reference.encode(text, add_special_tokens=False).ids
        ids = ours.encode(text, special=special)
        assert ids == wanted, (text, ours.tokens(ids), ours.tokens(wanted))
        assert ours.decode(ids, special=True) == text
        assert reference.decode(ids, skip_special_tokens=False) == text
        assert ours.decode(ids) == reference.decode(ids, skip_special_tokens=True)


# As the reference does -------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", TEXTS)
def test_the_ids_are_those_of_tokenizers_in_many_languages(pair, text):
    assert_same(*pair, text)


def test_the_ids_are_those_of_tokenizers_for_random_texts(pair):
    chance = random.Random(7)
    letters = "".join(sorted(set("".join(TEXTS)))) + " \n\r\t'0123456789" * 4
    parts = [*SPECIAL, ADDED, "'s", "'LL", "\r\n", "   ", "the"]
    for _ in range(400):
        drawn = [chance.choice(parts) if chance.random() < 0.1 else chance.choice(letters) for _ in range(31)]
        assert_same(*pair, "".join(drawn))


def test_the_ids_are_those_of_tokenizers_for_a_long_word(pair):
    chance = random.Random(11)
    for letters in ("a", "ab", "thereinofs"):
        assert_same(*pair, "".join(chance.choices(letters, k=3001)))


def all_characters():
    for start in range(0, sys.maxunicode + 1, 2**12):
        yield "".join(chr(i) for i in range(start, start + 2**12) if not 0xD800 <= i < 0xE000)


@pytest.mark.slow
def test_every_character_comes_back(small):
    for text in all_characters():
        assert small.decode(small.encode(text)) == text


@pytest.mark.parametrize("rule", splitting.SPLITTING)
def test_splitting_loses_no_character(rule):
    splitter = splitting.Splitter(rule)
    for text in all_characters():
        assert "".join(splitter.split(text)) == text


def test_every_character_of_either_kind_is_split_as_the_reference_does(pair):
    """What Unicode calls letter, digit or space; of characters that are newer than a library, each knows its own."""
    ours, reference = pair
    reference.encode_special_tokens = True
    known = [chr(i) for i in range(0x3400) if not 0xD800 <= i < 0xE000 and chr(i).isprintable() or chr(i).isspace()]
    text = "".join(f"a{character}a {character}1{character}\n" for character in known)
    differ = [line for line in text.split("\n") if ours.encode(line) != reference.encode(line).ids]
    assert len(known) > 12_000 and differ == []


@pytest.mark.parametrize("option", ["ignore_merges", "normalizer"])
def test_options_of_real_files(option, tmp_path):
    data = data_of(train("llama3"))
    if option == "normalizer":
        data["normalizer"] = {"type": "NFC"}
    else:
        word = "".join(map(byte_level.CHARACTER_OF_BYTE.get, " Übermut".encode()))
        data["model"] |= {"ignore_merges": True, "vocab": data["model"]["vocab"] | {word: len(data["model"]["vocab"])}}
        for token in data["added_tokens"]:
            token["id"] += 1
    (tmp_path / "tokenizer.json").write_text(json.dumps(data), encoding="utf-8")
    reference = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    reference.encode_special_tokens = True
    ours = tl.ByteLevelTokenizer.from_file(tmp_path)
    plain = tl.ByteLevelTokenizer(
        **byte_level.read_tokenizer(tmp_path) | {"ignore_merges": False, "normalization": None}
    )
    changed = False
    for text in TEXTS:
        ids = ours.encode(text)
        assert ids == reference.encode(text).ids
        changed |= ids != plain.encode(text)
    assert changed  # the option has an effect


def test_bytes_that_are_no_text_become_the_replacement_character(small):
    chance = random.Random(3)
    reference = train("gpt2")
    for _ in range(200):
        ids = chance.choices(range(256), k=13)
        assert small.decode(ids) == reference.decode(ids)
    assert "�" in small.decode(range(256))


def test_gpt2s_own_two_files(tmp_path):
    reference = train("gpt2")
    reference.model.save(str(tmp_path))
    lines = (tmp_path / "merges.txt").read_text(encoding="utf-8")
    assert lines.startswith("#version")
    ours = tl.ByteLevelTokenizer.from_gpt2(tmp_path / "vocab.json", tmp_path / "merges.txt")
    for text in TEXTS[:-3]:
        assert ours.encode(text) == reference.encode(text).ids or ADDED in text
    assert ours.eos_id is None
    vocab = json.loads((tmp_path / "vocab.json").read_text(encoding="utf-8")) | {"<|endoftext|>": 1201}
    (tmp_path / "vocab.json").write_text(json.dumps(vocab), encoding="utf-8")
    ours = tl.ByteLevelTokenizer.from_gpt2(tmp_path / "vocab.json", tmp_path / "merges.txt")
    assert (ours.bos_id, ours.eos_id, ours.stop_ids, len(ours)) == (1201, 1201, {1201}, 1202)
    (tmp_path / "merges.txt").write_text("a b c\n")
    with pytest.raises(ValueError, match=r"merges.txt must hold two tokens a line, got 'a b c'"):
        tl.ByteLevelTokenizer.from_gpt2(tmp_path / "vocab.json", tmp_path / "merges.txt")


def test_the_real_models_tokenizer():
    real = pytest.importorskip("transformer_lib.course.real")
    folder = real.folder()
    if folder is None or not (folder / "tokenizer.json").exists():
        pytest.skip("the real model is not there")
    ours = tl.ByteLevelTokenizer.from_file(folder)
    reference = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    for name in ("README.md", "CHANGELOG.md", "transformer_lib/data/byte_level.py"):
        assert_same(ours, reference, (ROOT / name).read_text(encoding="utf-8"))
    for text in TEXTS:
        if not set(text) & set(map(chr, range(32))) - set("\t\n\r"):  # it has no token for some of these bytes
            assert_same(ours, reference, text)


# As the learner does ---------------------------------------------------------------------------------------


def test_pairs_are_joined_as_exercise_05_3_joins_them(small):
    merges = sorted(small._ranks, key=small._ranks.get)
    for word in {word for text in TEXTS for word in small.splitter.split(text)}:
        characters = "".join(map(byte_level.CHARACTER_OF_BYTE.get, word.encode()))
        assert byte_level.join_pairs(characters, small._ranks) == nb05.bpe_encode(characters, merges)


def test_the_leftmost_of_equal_pairs_is_joined_first_and_ranks_decide():
    join = byte_level.join_pairs
    assert join("aaa", {("a", "a"): 0}) == ["aa", "a"]
    assert join("abc", {("b", "c"): 0, ("a", "b"): 1}) == ["a", "bc"]
    assert join("abcabc", {("a", "b"): 1, ("ab", "c"): 0}) == ["abc", "abc"]
    assert join("", {}) == [] and join("xy", {}) == ["x", "y"]


# Tokens, special and plain ---------------------------------------------------------------------------------


def test_special_tokens_in_a_text_are_plain_text_unless_asked_for(small):
    text = "Hi<|end|>!"
    end = small.special_tokens["<|end|>"]
    assert end not in small.encode(text) and small.decode(small.encode(text)) == text
    ids = small.encode(text, special=True)
    assert ids.count(end) == 1 and small.decode(ids) == "Hi!" and small.decode(ids, special=True) == text
    assert small.encode("<|end|>s", special=True) == [small.special_tokens["<|end|>s"]]  # the longest
    assert small.encode(ADDED) == [small.added_tokens[ADDED]]


def test_tokens_are_shown_as_text(small):
    assert small.tokens("The man, 👍") == [small.token(i) for i in small.encode("The man, 👍")]
    assert "".join(small.tokens("They sat near the river.")) == "They sat near the river."
    assert small.tokens(torch.tensor(small.encode("the river"))) == small.tokens("the river") != ["the river"]
    assert small.token(small.vocab["Ã"]) == r"\xc3"


def test_characters_are_streamed_when_they_are_whole(small):
    text = "a👍b ü<|end|>"
    singles = [small.vocab[byte_level.CHARACTER_OF_BYTE[byte]] for byte in "a👍b ü".encode()]
    ids = [*singles, small.special_tokens["<|end|>"]]
    seen = []

    def said():
        for i in ids:
            seen.append(i)
            yield i

    pieces = [(piece, len(seen)) for piece in small.decode_stream(said())]
    assert pieces == [("a", 1), ("👍", 5), ("b", 6), (" ", 7), ("ü", 9)]
    assert "".join(small.decode_stream(ids, special=True)) == text
    assert list(small.decode_stream(singles[1:3])) == ["�"]  # ended within a character


def test_words_are_remembered_up_to_a_number(small, monkeypatch):
    monkeypatch.setattr(byte_level, "_MOST_WORDS", 3)
    text = "the river and the man near the bank"
    assert small.encode(text) == small.encode(text)
    assert len(small._known_words) <= 3 + len(text.split())
    long = "x" * 100
    small.encode(long)
    assert long not in small._known_words


# What is refused -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", ["\ud800", "abc\udfffd"])
def test_lone_surrogates_are_refused(small, bad):
    number, index = ord(max(bad)), bad.index(max(bad))
    with pytest.raises(ValueError, match=rf"got the lone surrogate U\+{number:04X} at index {index}"):
        small.encode(bad)


def test_what_is_no_text_or_no_id_is_refused(small):
    with pytest.raises(TypeError, match="text must be a string, got bytes"):
        small.encode(b"abc")
    with pytest.raises(TypeError, match="special must be True or False, got 1"):
        small.encode("abc", special=1)
    with pytest.raises(ValueError, match=rf"ids must be ids of tokens, in \[0, {len(small)}\), got {len(small)}"):
        small.decode([3, len(small)])
    with pytest.raises(ValueError, match="got -1"):
        small.token(-1)
    with pytest.raises(TypeError, match="ids must be a list of one sentence's ids, got 'abc'"):
        small.decode("abc")


def test_a_byte_without_a_token_is_refused_and_named():
    tokenizer = tl.ByteLevelTokenizer({"a": 0, "b": 1, "ab": 2}, [("a", "b")])
    assert tokenizer.encode("abba") == [2, 1, 0]
    with pytest.raises(ValueError, match="text has 'ä', for whose byte 0xc3 the vocabulary has no token"):
        tokenizer.encode("ä")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"vocab": {}}, "vocab must hold tokens, each with its own id, got 0 tokens and 0 ids"),
        ({"vocab": {"a": 0, "b": 0}}, "got 2 tokens and 1 ids"),
        ({"vocab": {"a b": 0}}, "vocab must be written in GPT-2's characters for bytes, got ' '"),
        ({"merges": [("a", "c")]}, r"merges must join tokens to tokens, got \('a', 'c'\), and vocab has no 'c'"),
        ({"merges": ["ab"]}, "merges must hold pairs of tokens, got 'ab'"),
        ({"splitting": "gpt5"}, "splitting must be one of 'gpt2', 'smollm', 'llama3', 'qwen2', or a list of"),
        ({"splitting": ["("]}, "splitting must hold regular expressions, got '\\('"),
        ({"splitting": ["(a)"]}, "splitting must hold expressions without groups that capture"),
        ({"eos": "x"}, "eos must be a token, got 'x'"),
        ({"stop_ids": [7]}, r"stop_ids must be ids of tokens, got \[7\]"),
        ({"normalization": "NFKC"}, "normalization must be None or 'NFC', got 'NFKC'"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        tl.ByteLevelTokenizer(**{"vocab": {"a": 0, "b": 1}, "merges": []} | arguments)


def test_a_rule_of_ones_own_loses_no_character():
    splitter = splitting.Splitter([r"\d+", "x"])
    assert splitter.split("ab12xc3") == ["ab", "12", "x", "c", "3"]
    assert splitter.split("") == []
    with pytest.raises(TypeError, match="splitting must be a name or regular expressions, got 3"):
        splitting.Splitter([3])


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["model", "type"], "Unigram", "a model of type 'BPE', got 'Unigram'"),
        (["model", "byte_fallback"], True, "a BPE of bytes without byte_fallback, got True"),
        (["model", "end_of_word_suffix"], "</w>", "a BPE of bytes without end_of_word_suffix, got '</w>'"),
        (["model", "dropout"], 0.1, "a BPE of bytes without dropout, got 0.1"),
        (["model", "merges"], None, "merges in its model, got None"),
        (["model"], None, "a section 'model'"),
        (["normalizer"], {"type": "Lowercase"}, "a normalizer 'NFC', or none, got 'Lowercase'"),
        (["pre_tokenizer"], None, "a pre_tokenizer that ends in 'ByteLevel', got none"),
        (["pre_tokenizer"], {"type": "Whitespace"}, r"a pre_tokenizer that ends in 'ByteLevel', got \['Whitespace'\]"),
        (["pre_tokenizer", "pretokenizers", 0, "add_prefix_space"], True, "a pre_tokenizer without add_prefix_space"),
        (["decoder"], {"type": "Metaspace"}, "a decoder 'ByteLevel', got 'Metaspace'"),
        (
            ["post_processor"],
            {"type": "BertProcessing"},
            "a post_processor 'ByteLevel' or 'TemplateProcessing', got 'B",
        ),
        (["added_tokens", 0, "lstrip"], True, "added tokens without lstrip, got '<|end|>' with it"),
        (["added_tokens", 0, "normalized"], True, "added tokens that are all looked for before"),
    ],
)
def test_steps_of_a_file_that_are_not_computed_are_refused(path, value, message, tmp_path):
    data = data_of(train("gpt2"))
    *outer, last = path
    part = data
    for name in outer:
        part = part[name]
    part[last] = value
    (tmp_path / "tokenizer.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"tokenizer.json must have {message.replace('|', '[|]')}"):
        tl.ByteLevelTokenizer.from_file(tmp_path)


@pytest.mark.parametrize("step", [{"type": "Punctuation"}, {"type": "Digits", "individual_digits": False}])
def test_another_way_to_split_is_refused(step, tmp_path):
    data = data_of(train("gpt2"))
    data["pre_tokenizer"]["pretokenizers"].insert(0, step)
    (tmp_path / "tokenizer.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(ValueError, match="must have splitting by single digits or by the expressions of gpt2, smollm"):
        tl.ByteLevelTokenizer.from_file(tmp_path)


def test_files_that_are_missing_or_no_json_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"tokenizer.json does not exist"):
        tl.ByteLevelTokenizer.from_file(tmp_path)
    for text, message in (("{", "must hold JSON, got: "), ("[]", "must have an object, got a list")):
        (tmp_path / "tokenizer.json").write_text(text)
        with pytest.raises(ValueError, match=f"tokenizer.json {message}"):
            tl.ByteLevelTokenizer.from_file(tmp_path)


# What stands beside the file -------------------------------------------------------------------------------


def test_what_stands_beside_the_file_is_read(tmp_path):
    reference = train("gpt2")
    reference.post_processor = processors.TemplateProcessing(
        single="<|start|> $A", special_tokens=[("<|start|>", reference.token_to_id("<|start|>"))]
    )
    reference.save(str(tmp_path / "tokenizer.json"))
    plain = tl.ByteLevelTokenizer.from_file(tmp_path)
    assert (plain.bos_id, plain.eos_id, plain.stop_ids, plain.max_len, plain.chat_template) == (
        None,
        None,
        set(),
        None,
        None,
    )
    assert plain.encode("Hi") == reference.encode("Hi").ids[1:]
    config = {
        "bos_token": {"content": "<|start|>", "lstrip": False},
        "eos_token": "<|end|>",
        "model_max_length": 8192,
        "chat_template": "{{ bos_token }}{{ messages[0]['content'] }}{{ eos_token }}",
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [5, 7]}))
    full = tl.ByteLevelTokenizer.from_file(tmp_path / "tokenizer.json")
    start, end = full.special_tokens["<|start|>"], full.special_tokens["<|end|>"]
    assert (full.bos_id, full.eos_id, full.stop_ids, full.max_len) == (start, end, {5, 7, end}, 8192)
    assert full.encode_chat([{"role": "user", "content": "Hi"}]) == [start, *full.encode("Hi"), end]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config | {"model_max_length": int(1e30)}))
    assert tl.ByteLevelTokenizer.from_file(tmp_path).max_len is None


def test_the_normalizers_name_is_that_of_the_library():
    assert json.loads(normalizers.NFC().__getstate__())["type"] == "NFC"
