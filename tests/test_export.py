"""Translators written for CTranslate2: the same sentences, the same probabilities, and what cannot be written."""

from __future__ import annotations

import json
import math
import re
import sys
from dataclasses import replace

import pytest
import torch

import transformer_lib as tl
from factories import SIZES, make_model, sources
from transformer_lib.baselines import SelfOnlyTransformer
from transformer_lib.decoding import export
from transformer_lib.model.layers import ACTIVATIONS

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


def feed_forwards(model):
    return [layer.feed_forward for layer in (*model.encoder.layers, *model.decoder.layers)]


def norms(model):
    return [part for part in model.modules() if isinstance(part, tl.LayerNorm)]


def largest_error(ours, folder):
    """Of log P(token) in a folder written now, beside what the model says."""
    src, tgt = texts(ours), labels(ours)
    found = torch.tensor(export.load_ctranslate2(export.to_ctranslate2(ours, folder)).log_probabilities(src, tgt))
    return (found - ours.log_probabilities(src, tgt)).abs().max().item()


@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh"])
def test_another_activation_of_all_layers_is_written(tmp_path, engine, activation):
    ours = translator()
    before = ours.log_probabilities(texts(ours), labels(ours))
    for network in feed_forwards(ours.model):
        network.activation = activation
    off = (ours.log_probabilities(texts(ours), labels(ours)) - before).abs().max().item()
    assert largest_error(ours, tmp_path / "model") < 1e-4
    assert off > 1e-2 or activation == "relu"


def test_every_activation_of_a_layer_is_known_to_the_export():
    """A new one needs CTranslate2's name for it, or is refused by name until it has one."""
    for activation in ACTIVATIONS:
        model = make_model()
        for network in feed_forwards(model):
            network.activation = activation
        reason = export.unsupported(model)
        assert reason is None or f"activation is '{activation}', and this export knows 'relu', 'gelu'" in reason


@pytest.mark.parametrize("eps", [0.0, 1e-12, 1e-2, 0.5])
@pytest.mark.parametrize("norm_first", [False, True])
def test_another_epsilon_of_all_norms_is_written(tmp_path, engine, norm_first, eps):
    ours = translator(norm_first=norm_first)
    for norm in norms(ours.model):
        norm.eps = eps
    assert largest_error(ours, tmp_path / "model") < 2e-4


def test_an_activation_that_the_engine_does_not_know_is_refused(monkeypatch):
    monkeypatch.setitem(ACTIVATIONS, "silu", torch.nn.functional.silu)
    model = make_model()
    for network in feed_forwards(model):
        network.activation = "silu"
    reason = "encoder.layers.0.feed_forward.activation is 'silu', and this export knows 'relu', 'gelu', 'gelu_tanh'"
    assert export.unsupported(model) == reason


@pytest.mark.parametrize("place", range(4))
def test_one_activation_of_several_is_refused(place):
    model = make_model()
    feed_forwards(model)[place].activation = "gelu"
    first, others = "encoder.layers.0.feed_forward.activation", r"[a-z0-9.]+.feed_forward.activation"
    values = ("relu", "gelu") if place == 0 else ("gelu", "relu")
    wanted = f"{others} is '{values[0]}' and {first} '{values[1]}', and CTranslate2 has one"
    assert re.fullmatch(wanted, export.unsupported(model))


@pytest.mark.parametrize("norm_first", [False, True])
def test_one_epsilon_of_several_is_refused(norm_first):
    for place in range(len(norms(make_model(norm_first=norm_first)))):
        model = make_model(norm_first=norm_first)
        norms(model)[place].eps = 1e-2
        assert "norm.eps is" in (reason := export.unsupported(model)) and "CTranslate2 has one" in reason


def residual_flipped(model):
    model.decoder.layers[1].cross_attention_residual.norm_first = True


def other_pad(model):
    model.config = replace(model.config, pad_id=3)


def other_end(model):
    model.config = replace(model.config, eos_id=5)


def not_a_number(model):
    model.decoder.layers[1].self_attention.w_v.weight.data[3, 5] = math.nan


def infinite_in_float32(model):
    model.double().output_head.weight.data[2, 3] = 1e39


def shortened_words(model):
    model.src_embedding.max_norm = 0.5


def compiled(model):
    return torch.compile(model, backend="eager")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            residual_flipped,
            "decoder.layers.1.cross_attention_residual.norm_first is True, where its config builds False",
        ),
        (other_pad, "pad_id=3, which is 0 in the vocabularies"),
        (other_end, "eos_id=5, which is 2 in the vocabularies"),
        (not_a_number, "decoder.layers.1.self_attention.w_v.weight holds numbers that are not finite in float32"),
        (infinite_in_float32, "output_head.weight holds numbers that are not finite in float32"),
        (shortened_words, "src_embedding.max_norm is 0.5, where its config builds None"),
        (compiled, "the model is compiled; its ._orig_mod is not"),
    ],
)
def test_what_the_engine_would_compute_otherwise_is_refused(tmp_path, change, reason):
    ours = translator()
    other = change(ours.model)
    ours.model = ours.model if other is None else other
    assert export.unsupported(ours.model) == reason
    with pytest.raises(ValueError, match=f"CTranslate2 can compute, but {re.escape(reason)}"):
        export.to_ctranslate2(ours, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def in_training(model):
    model.train()


def wide(model):
    model.double()


def other_constants(model):
    model.position.table += 0.3 * torch.randn(model.position.table.shape, generator=torch.Generator().manual_seed(0))


def a_head_of_its_own(model):
    model.output_head.weight = torch.nn.Parameter(2 * model.src_embedding.weight.detach()[torch.arange(29) - 1])


@pytest.mark.parametrize("change", [in_training, wide, other_constants, a_head_of_its_own])
def test_what_a_model_was_made_into_is_written(tmp_path, engine, change):
    ours = translator(src_vocab_size=29, tie_embeddings=True, dropout=0.5)
    change(ours.model)
    assert largest_error(ours, tmp_path / "model") < 2e-4


def test_a_model_that_was_changed_is_refused():
    model = make_model()
    assert export.unsupported(model) is None
    model.encoder.layers[1].self_attention.register_forward_hook(lambda *_: None)
    assert "has a hook" in export.unsupported(model)


def test_texts_may_come_from_what_can_be_read_once(tmp_path, engine):
    ours = translator()
    theirs = export.load_ctranslate2(export.to_ctranslate2(ours, tmp_path / "model"))
    src, tgt = texts(ours), labels(ours)
    assert theirs.translate(iter(src), max_new_tokens=5) == theirs.translate(src, max_new_tokens=5)
    assert theirs.log_probabilities(iter(src), iter(tgt)) == theirs.log_probabilities(src, tgt)
    assert theirs.translate(iter(())) == theirs.log_probabilities([], []) == []


def test_without_the_engine_the_error_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(ImportError, match='pip install "ctranslate2>=4.5,<5"'):
        export.to_ctranslate2(translator(), tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_no_more_is_asked_than_the_model_has_positions_for(tmp_path, engine):
    ours = translator()
    theirs = export.load_ctranslate2(export.to_ctranslate2(ours, tmp_path / "model"))
    fits, long = " ".join(["e1"] * 37), " ".join(["e1"] * 38)
    assert theirs.translate([fits], max_new_tokens=99) == ours.translate([fits], max_new_tokens=99)
    for translate in (theirs.translate, ours.translate):
        with pytest.raises(ValueError, match="src has 38 tokens, more than max_len = 37"):
            translate([long])
    assert theirs.log_probabilities([fits], [" ".join(["g1"] * 36)])
    with pytest.raises(ValueError, match="tgt has 38 tokens, more than max_len = 37"):
        theirs.log_probabilities([fits], [" ".join(["g1"] * 37)])
    with pytest.raises(ValueError, match="src has 38 tokens"):
        theirs.log_probabilities([long], ["g1"])


def test_a_folder_that_does_not_say_its_max_len_is_opened(tmp_path, engine):
    """Version 1.0 wrote no such entry."""
    ours = translator()
    folder = export.to_ctranslate2(ours, tmp_path / "model")
    described = json.loads((folder / "tokenizers.json").read_text(encoding="utf-8"))
    assert described.pop("max_len") == 37
    (folder / "tokenizers.json").write_text(json.dumps(described), encoding="utf-8")
    assert export.load_ctranslate2(folder).translate(["e1"], max_new_tokens=5) == ours.translate(
        ["e1"], max_new_tokens=5
    )


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
    for bad in ("e1", {"e1"}, {"e1": "g1"}, b"e1", [7]):
        with pytest.raises(TypeError, match="texts must be a list of strings, got "):
            theirs.translate(bad)
        with pytest.raises(TypeError, match="tgt must be a list of strings, got "):
            theirs.log_probabilities(["e1"], bad)
    with pytest.raises(ValueError, match="src and tgt must be equally many, got 1 and 2"):
        theirs.log_probabilities(["e1"], ["g1", "g2"])
    with pytest.raises(ValueError, match="each text must have at least one word"):
        theirs.translate([" "])
    with pytest.raises(ValueError, match="unknown word 'x1'"):
        theirs.translate(["x1"])
    with pytest.raises(ValueError, match="beam_size must be at least 1"):
        theirs.translate(["e1"], beam_size=0)
