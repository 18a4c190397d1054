"""Rows of the memory hidden and replaced: the sentences, the counts, and what is stored of five translators."""

from __future__ import annotations

import pytest
import torch

import transformer_lib as tl
from factories import make_config
from read_once import CORPUS, HELDOUT, TRAINED
from studies import hiding as study
from test_studies_shared import form
from transformer_lib.course.lab import alignments
from transformer_lib.course.lab import hiding as lab
from transformer_lib.data.tokenizers import WordTokenizer
from transformer_lib.decoding.translator import Translator
from transformer_lib.model.transformer import Transformer

STORED = lab.load_results()
MODELS = STORED["models"]


@pytest.fixture(scope="module")
def small():
    """An untrained translator with two layers of two heads of width 11."""
    texts = [*lab.tired("cross"), *lab.tired("eat"), *(text for words in lab.FITTING for text in lab.boxes(words))]
    src, tgt = (
        WordTokenizer.from_texts(texts),
        WordTokenizer.from_texts(["Der Stuhl passte", "Das Schwert", "Die Lampe"]),
    )
    torch.manual_seed(0)
    sizes = {"d_model": 22, "n_heads": 2, "n_layers": 2, "d_ff": 5, "dropout": 0.0, "max_len": 19}
    config = make_config(src_vocab_size=len(src), tgt_vocab_size=len(tgt), **sizes)
    return Translator(Transformer(config).eval(), src, tgt)


def test_the_rows_are_those_of_the_verb_and_the_preposition():
    for verb in lab.THINGS:
        texts = lab.tired(verb)
        assert len(set(texts)) == 18 and {WordTokenizer.tokenize(text)[lab.VERB] for text in texts} == {verb}
    for words in lab.FITTING:
        texts = lab.boxes(words)
        verb, preposition = words.split()
        assert len(set(texts)) == 9
        for tokens in map(WordTokenizer.tokenize, texts):
            assert (tokens[lab.VERB], tokens[lab.PREPOSITION]) == (verb, preposition)


def test_the_sentences_of_both_verbs_are_pairs():
    for one, other in zip(lab.tired("cross"), lab.tired("eat"), strict=True):
        assert one.split()[1] == other.split()[1] and one != other


def test_verbs_are_counted_in_their_place():
    german = ["Der Hund fraß die Straße nicht.", "Die Katze fraß sie.", "Der Hund überquerte fraß.", "Der"]
    assert lab.verbs(german) == {"fraß": 2, "überquerte": 1, "": 1}
    assert [*lab.verbs(german[::-1])][0] == "fraß"


def test_a_lent_row_is_the_only_one_that_changes(small):
    texts, others = lab.boxes("fit into"), lab.boxes("fit near")
    seen = []
    hook = small.model.decoder.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[1].clone()))
    lab.lent(small, texts, others, 3)
    hook.remove()
    with torch.no_grad():
        own, lent = (small.model.encode(small.src_tokenizer.encode_batch(some)) for some in (texts, others))
    wanted = own.clone()
    wanted[:, 3] = lent[:, 3]
    torch.testing.assert_close(seen[0], wanted)
    assert not torch.allclose(wanted, own)


def test_the_weights_for_passte_are_those_of_the_row_that_writes_it(small):
    texts = lab.boxes("fit into")
    begun = small.tgt_tokenizer.encode_batch([lab._subject(text) for text in texts], bos=True)
    assert begun.shape == (9, 3)
    with torch.no_grad(), tl.record_attention(small.model) as record:
        small.model(small.src_tokenizer.encode_batch(texts), begun)
    row = record["decoder.layers.1.cross_attention"][:, :, 2].mean(dim=(0, 1))
    found = lab.read_for_passte(small)
    assert found == {"fit": pytest.approx(float(row[4]), abs=1e-4), "into": pytest.approx(float(row[5]), abs=1e-4)}


def test_the_stored_numbers_of_our_translator_are_found_again():
    found, stored = lab.measure(TRAINED), MODELS["course"]
    assert {name: found[name] for name in ("hidden", "replaced", "passte")} == {
        name: stored[name] for name in ("hidden", "replaced", "passte")
    }
    assert found["bank of money"] == stored["bank of money"] == "Der Mann wollte die Bank beim Fluss sehen."
    assert found["read for passte"] == pytest.approx(stored["read for passte"], abs=2e-3)


def test_what_is_measured_has_the_form_of_what_is_stored(monkeypatch):
    monkeypatch.setattr(study, "PAIRS", 40)
    monkeypatch.setattr(lab, "measure", lambda _: {name: MODELS["course"][name] for name in names[1:6]})
    names = list(MODELS["course"])
    found = study.measure(TRAINED)
    assert [*found] == names and form(found["aligned"]) == form(MODELS["course"]["aligned"])
    assert {row: {side: list(n) for side, n in sides.items()} for row, sides in found["pronouns"].items()} == MODELS[
        "course"
    ]["pronouns"]


def test_what_all_five_trainings_agree_in():
    assert [*MODELS] == ["course", *(f"seed {seed}" for seed in study.STUDY.seeds)]
    for model in MODELS.values():
        assert model["replaced"] == MODELS["course"]["replaced"]
        assert min(model["aligned"]["noun"][1], model["aligned"]["ambiguous"][1]) > 0.97
        assert model["passte"]["fit into"] == 9 and model["passte"]["cross near"] == 0
        for name, counts in model["hidden"].items():
            assert sum(counts.values()) == 18, name


def test_a_pronoun_that_is_wrong_untouched_does_not_flip():
    it = [pair for pair in HELDOUT if pair.word == "it"]
    for model in MODELS.values():
        wrong = sum(side[2] for side in model["pronouns"]["nothing"].values())
        for row, sides in model["pronouns"].items():
            assert row == "nothing" or all(n is None or n <= 72 for side in sides.values() for n in side)
            assert row == "nothing" or sum(side[2] for side in sides.values()) <= len(it) - wrong


def test_the_rows_of_the_figures_are_those_stored():
    panels = lab.pronouns(MODELS)
    assert panels["flips if replaced"]["adjective"][1] == sum(
        side[2] for side in MODELS["seed 1"]["pronouns"]["adjective"].values()
    )
    assert [*panels["read most"]] == [*lab.PRONOUN_ROWS] and panels["read most"]["all but adjective"] == []
    assert len(panels["flips if hidden"]["it"]) == len(MODELS) == len(lab.aligned(MODELS, 2)["noun"])
    assert lab.aligned(MODELS, 1)["verb"][3] == MODELS["seed 3"]["aligned"]["verb"][0]


def test_the_bank_is_where_it_is_said_to_be():
    for text in (lab.RIVER, lab.MONEY):
        assert WordTokenizer.tokenize(text)[lab.BANK] == "bank"


def test_into_never_occurs_without_fit():
    into = [pair.src for pair in CORPUS["train"] if " into " in pair.src]
    assert into and all(" fit " in text for text in into)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lab.tired("drink"), "verb must be one of 'cross', 'eat', got 'drink'"),
        (lambda: lab.boxes("fit"), "a verb and a preposition, such as 'fit into', got 'fit'"),
        (lambda: lab.lent(TRAINED, ["a", "b"], ["c"], 4), "each text needs one other, got 2 and 1"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_kinds_of_words_are_those_of_the_alignments():
    assert [*MODELS["seed 1"]["aligned"]] == list(alignments.KINDS)
