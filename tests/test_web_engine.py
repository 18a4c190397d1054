"""The translator in JavaScript, beside Python: the same words, logits and attention, cut, patched, drawn or by beam."""

from __future__ import annotations

import json
import struct

import pytest
import site_weights
import torch

import transformer_lib as tl
from transformer_lib.decoding.translator import TRAINED
from web_engine import ask

MODEL = TRAINED["context"]
SENTENCE = "The man saw the bank near the money."
BANK, MONEY = 4, 7  # positions in it
CLOSE = 1e-4


@pytest.fixture(scope="module")
def translator():
    return tl.load_trained()


@pytest.fixture(scope="module")
def half(tmp_path_factory):
    """The file that the site carries."""
    path = tmp_path_factory.mktemp("site") / "half.safetensors"
    path.write_bytes(site_weights.half(MODEL))
    return path


@pytest.fixture(scope="module")
def sentences():
    corpus = tl.load_corpus("context")
    return [pair.src for part in ("heldout", "hard") for pair in corpus[part][:500]]


def logits_of(translator, ids, src):
    """The logits of each step of a decoding: Python's model reads the whole target at once."""
    tgt = torch.tensor([[translator.model.config.bos_id, *ids[:-1]]])
    with torch.no_grad():
        return translator.model(src, tgt)[0]


@pytest.mark.slow
@pytest.mark.parametrize("which", ["whole", "half"])
def test_the_same_words_on_a_thousand_sentences(translator, half, sentences, which):
    (said,) = ask(MODEL if which == "whole" else half, {"kind": "texts", "texts": sentences})
    expected = translator.translate(sentences)
    assert [pair for pair in zip(said, expected, strict=True) if pair[0] != pair[1]] == []
    assert len(said) == 1000


@pytest.mark.parametrize("name", ["context", "draft"])
def test_logits_memory_and_the_attention_of_every_head(name):
    translator = tl.load_trained(name)
    (seen,) = ask(TRAINED[name], {"kind": "look", "text": SENTENCE})
    src = translator.src_tokenizer.encode_batch([SENTENCE])
    ids = tl.greedy_decode(translator.model, src, max_new_tokens=40)[0, 1:].tolist()
    with tl.record_attention(translator.model) as record:
        expected = logits_of(translator, ids, src)
    assert torch.tensor(seen["logits"]).sub(expected).abs().max() < CLOSE
    with torch.no_grad():
        memory = translator.model.encode(src)[0]
    assert torch.tensor(seen["memory"]).sub(memory).abs().max() < CLOSE
    assert seen["weights"].keys() == record.keys()
    for part, weights in record.items():
        there = seen["weights"][part]
        if part.startswith("decoder") and part.endswith("self_attention"):
            width = len(ids)
            there = [[row + [0.0] * (width - len(row)) for row in head] for head in there]  # a cache has no future
        assert torch.tensor(there).sub(weights[0]).abs().max() < CLOSE, part


@pytest.mark.parametrize(
    "cut",
    [
        {"query": BANK, "key": MONEY},
        {"query": BANK, "key": MONEY, "layer": 0, "head": 1},
        {"query": BANK, "layer": 1},
        {"key": MONEY, "attention": "cross"},
        {"key": 0, "layer": 1, "attention": "decoder"},
    ],
    ids=str,
)
def test_a_cut_does_what_it_does_in_python(translator, cut):
    (seen,) = ask(MODEL, {"kind": "look", "text": SENTENCE, "cuts": [cut]})
    src = translator.src_tokenizer.encode_batch([SENTENCE])
    with tl.cut(translator.model, **cut):
        ids = tl.greedy_decode(translator.model, src, max_new_tokens=40)[0, 1:].tolist()
        expected = logits_of(translator, ids, src)
    got = torch.tensor(seen["logits"])
    assert got.shape == expected.shape
    assert got.sub(expected).abs().max() < CLOSE
    (whole,) = ask(MODEL, {"kind": "look", "text": SENTENCE})
    assert seen["logits"] != whole["logits"]  # it changes something


@pytest.mark.parametrize(
    "name", ["encoder.layers.0", "encoder.layers.0.self_attention", "encoder.layers.1.feed_forward"]
)
def test_a_patch_does_what_it_does_in_python(translator, name):
    other = SENTENCE.replace("money", "river")
    kept = []
    src, other_src = (translator.src_tokenizer.encode_batch([text]) for text in (SENTENCE, other))
    module = translator.model.get_submodule(name)
    hook = module.register_forward_hook(lambda module, args, output: kept.append(output))
    with torch.no_grad():
        translator.model.encode(other_src)
    hook.remove()
    with tl.patch(translator.model, name, kept[0], positions=BANK):
        ids = tl.greedy_decode(translator.model, src, max_new_tokens=40)[0, 1:].tolist()
        expected = logits_of(translator, ids, src)
    patch = {"name": name, "value": kept[0][0].tolist(), "positions": [BANK]}
    (seen,) = ask(MODEL, {"kind": "look", "text": SENTENCE, "patches": [patch]})
    assert name in seen["outputs"]
    assert torch.tensor(seen["logits"]).sub(expected).abs().max() < CLOSE


@pytest.mark.slow
@pytest.mark.parametrize(("size", "alpha", "limit"), [(1, 0.6, 40), (3, 0.6, 40), (5, 0.0, 40), (2, 1.0, 7)])
def test_beam_search_finds_the_same_sentences(translator, sentences, size, alpha, limit):
    chosen = sentences[::31]
    (found,) = ask(MODEL, {"kind": "beams", "texts": chosen, "size": size, "alpha": alpha, "limit": limit})
    options = {"beam_size": size, "length_penalty": alpha, "max_new_tokens": limit}
    for text, mine in zip(chosen, found, strict=True):
        src = translator.src_tokenizer.encode_batch([text])
        best = tl.beam_hypotheses(translator.model, src, **options)[0][0]
        assert (mine["ids"], mine["score"]) == (list(best.ids[1:]), pytest.approx(best.score, abs=1e-5)), text


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"),
    [(1.0, None, 1.0), (0.5, 7, 1.0), (2.0, None, 0.9), (1.3, 11, 0.5), (1e-3, None, 1.0)],
)
def test_what_is_drawn_from_is_the_same(temperature, top_k, top_p):
    logits = torch.randn(53, generator=torch.Generator().manual_seed(0)) * 3
    asked = {"logits": logits.tolist(), "temperature": temperature, "topK": top_k, "topP": top_p}
    (likely,) = ask(None, {"kind": "shaped", **asked})
    expected = tl.filter_logits(logits, temperature=temperature, top_k=top_k, top_p=top_p).softmax(dim=-1)
    torch.testing.assert_close(torch.tensor(likely), expected, rtol=1e-5, atol=1e-6)


def test_a_seed_draws_the_same_sentence_and_its_shares_are_the_probabilities(translator):
    def draws(seed):
        return {"kind": "draw", "text": SENTENCE, "seed": seed, "temperature": 1.5}

    once, again, other = ask(MODEL, draws(5), draws(5), draws(6))
    assert once == again != other
    (numbers,) = ask(None, {"kind": "uniforms", "seed": 3, "count": 20_000})
    counts = torch.histc(torch.tensor(numbers), bins=10, min=0, max=1)
    assert 0 <= min(numbers) <= max(numbers) < 1
    assert counts.sub(2000).abs().max() < 4 * 45  # four standard deviations of a count


def test_half_precision_is_read_as_numpy_reads_it():
    bits = [0, 0x8000, 1, 0x03FF, 0x0400, 0x3C00, 0xC000, 0x7BFF, 0x7C00, 0xFC00, 0x7E00, 0x3555]
    (read,) = ask(None, {"kind": "halves", "bits": bits})
    expected = torch.tensor([struct.unpack("<e", struct.pack("<H", each))[0] for each in bits])
    torch.testing.assert_close(torch.tensor([float(each) for each in read]), expected, equal_nan=True, rtol=0, atol=0)


def test_texts_are_split_as_in_python(translator):
    texts = ["Show me the money!", "  It's not ON, is it?", "Ärger — über_all 3.5", "", "!", "é𝒳 a"]
    (split,) = ask(MODEL, {"kind": "split", "texts": texts})
    assert split == [translator.src_tokenizer.tokenize(text) for text in texts]


def test_what_cannot_be_done_is_said(tmp_path):
    (unknown,) = ask(MODEL, {"kind": "texts", "texts": ["The man saw the zeppelin near the gnu."]})
    assert unknown == {"error": "unknown: zeppelin, gnu"}
    whole = MODEL.read_bytes()
    size = struct.unpack("<Q", whole[:8])[0]
    header = json.loads(whole[8 : 8 + size])
    about = json.loads(header["__metadata__"]["transformer_lib"])
    about["config"]["norm_first"] = True
    header["__metadata__"]["transformer_lib"] = json.dumps(about)
    text = json.dumps(header).encode()
    made = tmp_path / "other.safetensors"
    for content, said in (
        (whole[:5], "not a safetensors file: 5 bytes"),
        (whole[:-3], "the file ends within"),
        (struct.pack("<Q", len(text)) + text + whole[8 + size :], "config must have norm_first = false, got true"),
    ):
        made.write_bytes(content)
        with pytest.raises(AssertionError, match=said):
            ask(made, {"kind": "texts", "texts": ["The man."]})
