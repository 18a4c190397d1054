"""Translators written for CTranslate2: the same sentences, the same probabilities, and what cannot be written."""

from __future__ import annotations

import json
import sys

import pytest
import torch

import transformer_lib as tl
from factories import SIZES, make_model, sources
from transformer_lib.baselines import SelfOnlyTransformer
from transformer_lib.decoding import export

pytestmark = pytest.mark.fast

ENGLISH = [f"e{i}" for i in range(SIZES["src_vocab_size"] - 4)]
GERMAN = [f"g{i}" for i in range(SIZES["tgt_vocab_size"] - 4)]
CONFIGS = [
    {},
    {"norm_first": True},
    {"position": "learned", "n_layers": 3},
    {"position": "none", "norm_first": True},
    {"tie_embeddings": True, "src_vocab_size": 29},
]


@pytest.fixture
def engine():
    return pytest.importorskip("ctranslate2", reason='needs pip install -e ".[deploy]"')


def translator(**changes):
    model = make_model(seed=3, scale=2.0, **changes)
    if "src_vocab_size" in changes:
        both = tl.WordTokenizer(GERMAN)
        return tl.Translator(model, both, both)
    return tl.Translator(model, tl.WordTokenizer(ENGLISH), tl.WordTokenizer(GERMAN))


def texts(one):
    """Sentences of 1 to 7 words."""
    ids = sources(13, 7, seed=2)
    return [one.src_tokenizer.decode(row) for row in ids]


def labels(one):
    ids = torch.randint(4, SIZES["tgt_vocab_size"], (13, 5), generator=torch.Generator().manual_seed(1))
    return [one.tgt_tokenizer.decode(row) for row in ids]


@pytest.mark.parametrize("changes", CONFIGS, ids=str)
def test_float32_says_the_same(tmp_path, engine, changes):
    ours = translator(**changes)
    theirs = export.load_ctranslate2(export.to_ctranslate2(ours, tmp_path / "new" / "folder"))
    src, tgt = texts(ours), labels(ours)
    wanted = ours.log_probabilities(src, tgt)
    found = torch.tensor(theirs.log_probabilities(src, tgt))
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    assert wanted.std() > 0.5
    said = ours.translate(src, max_new_tokens=11)
    assert theirs.translate(src, max_new_tokens=11) == said
    assert len(set(said)) > 1
    assert theirs.translate(src[:3], batch_size=2, max_new_tokens=4) == ours.translate(src[:3], max_new_tokens=4)


def test_the_trained_translator_says_the_same_and_int8_takes_a_quarter(tmp_path, engine):
    ours = tl.load_trained()
    pairs = tl.load_corpus("context")["hard"][::13]
    src, tgt = [pair.src for pair in pairs], [pair.tgt for pair in pairs]
    written = {
        kind: export.load_ctranslate2(export.to_ctranslate2(ours, tmp_path / kind, quantization=kind))
        for kind in export.QUANTIZATIONS
    }
    said = ours.translate(src)
    assert written["float32"].translate(src) == said
    assert written["float32"].translate(src, beam_size=3) == ours.translate(src, beam_size=3, length_penalty=0.0)
    same = sum(map(str.__eq__, written["int8"].translate(src), said))
    assert 0.9 * len(said) < same <= len(said)
    numbers = sum(p.numel() for p in ours.model.parameters())
    assert 4 * numbers < written["float32"].bytes < 4.1 * numbers
    assert numbers < written["int8"].bytes < 1.2 * numbers
    wanted, found = ours.log_probabilities(src, tgt), written["int8"].log_probabilities(src, tgt)
    errors = torch.cat([torch.tensor(row) - wanted[i, : len(row)] for i, row in enumerate(found)]).abs()
    assert 1e-4 < errors.median() < 0.02


def test_the_folder_is_all_that_the_engine_needs(tmp_path, engine):
    ours = tl.load_trained()
    folder = export.to_ctranslate2(ours, tmp_path / "model")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert (config["decoder_start_token"], config["eos_token"]) == ("<bos>", "<eos>")
    words = ["the", "man", "saw", "the", "bank", "near", "the", "river", "."]
    found = engine.Translator(str(folder)).translate_batch([words], beam_size=1)
    assert found[0].hypotheses[0] == ["der", "Mann", "sah", "das", "Ufer", "beim", "Fluss", "."]


def test_subwords_are_written_too(tmp_path, engine):
    said = ["the man saw the house .", "Der Mann sah das Haus ."]
    both = tl.BPETokenizer.from_texts(said, vocab_size=271)
    model = make_model(scale=2.0, src_vocab_size=len(both), tgt_vocab_size=len(both), tie_embeddings=True)
    ours = tl.Translator(model, both, both)
    theirs = export.load_ctranslate2(export.to_ctranslate2(ours, tmp_path / "model"))
    assert theirs.translate(said, max_new_tokens=7) == ours.translate(said, max_new_tokens=7)
    assert export.vocabulary(both)[:4] == ["<pad>", "<bos>", "<eos>", "<unk>"]
    assert len(set(export.vocabulary(both))) == len(both)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (lambda: make_model(position="rotary"), "position='rotary' turns queries and keys"),
        (lambda: make_model(position="relative"), "position='relative' adds a bias of its own"),
        (
            lambda: SelfOnlyTransformer(make_model().config),
            "the model is a SelfOnlyTransformer, not a Transformer",
        ),
    ],
    ids=["rotary", "relative", "another class"],
)
def test_what_cannot_be_written_is_refused_with_the_reason(tmp_path, model, reason):
    one = tl.Translator(model(), tl.WordTokenizer(ENGLISH), tl.WordTokenizer(GERMAN))
    assert reason in export.unsupported(one.model)
    with pytest.raises(ValueError, match=f"translator must have a model that CTranslate2 can compute, but .*{reason}"):
        export.to_ctranslate2(one, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_model_that_was_changed_is_refused():
    model = make_model()
    assert export.unsupported(model) is None
    model.encoder.layers[1].self_attention.register_forward_hook(lambda *_: None)
    assert "has a hook" in export.unsupported(model)


def test_without_the_engine_the_error_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(ImportError, match=r'pip install -e "\.\[deploy\]"'):
        export.to_ctranslate2(translator(), tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_other_errors(tmp_path, engine):
    ours = translator()
    with pytest.raises(ValueError, match="quantization must be one of 'float32', 'int8', got 'int4'"):
        export.to_ctranslate2(ours, tmp_path / "a", quantization="int4")
    folder = export.to_ctranslate2(ours, tmp_path / "b")
    with pytest.raises(FileExistsError, match="folder must be empty or not exist"):
        export.to_ctranslate2(ours, folder)
    with pytest.raises(FileNotFoundError, match="has no model.bin"):
        export.load_ctranslate2(tmp_path)
    theirs = export.load_ctranslate2(folder)
    with pytest.raises(TypeError, match="texts must be a list of strings, got 'e1'"):
        theirs.translate("e1")
    with pytest.raises(ValueError, match="each text must have at least one word"):
        theirs.translate([" "])
    with pytest.raises(ValueError, match="unknown word 'x1'"):
        theirs.translate(["x1"])
    with pytest.raises(ValueError, match="beam_size must be at least 1"):
        theirs.translate(["e1"], beam_size=0)
