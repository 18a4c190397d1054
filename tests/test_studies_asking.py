"""Which words ask for which: scores of words, roles exchanged between sentences, and what is stored of five models."""

from __future__ import annotations

import math

import pytest
import torch

from factories import make_config
from read_once import CORPUS, TRAINED
from studies import asking as study
from test_studies_shared import form
from transformer_lib.course.lab import asking as lab
from transformer_lib.course.lab.sense_vectors import lexicon
from transformer_lib.data.tokenizers import WordTokenizer
from transformer_lib.decoding.translator import Translator
from transformer_lib.model.transformer import Transformer

STORED = lab.load_results()


@pytest.fixture(scope="module")
def small():
    """An untrained translator with two heads of width 11 in two layers."""
    words = WordTokenizer.from_texts(
        ["The man saw the bank near the river .", "Near the money , the man saw the bank ."]
    )
    torch.manual_seed(0)
    sizes = {"d_model": 22, "n_heads": 2, "n_layers": 2, "d_ff": 5, "dropout": 0.0}
    config = make_config(src_vocab_size=len(words), tgt_vocab_size=len(words), **sizes)
    return Translator(Transformer(config).eval(), words, words)


def encoded(translator, texts):
    with torch.no_grad():
        return translator.model.encode(translator.src_tokenizer.encode_batch(texts))


@pytest.mark.parametrize("frame", lab.FRAMES)
def test_the_frames_have_the_words_where_they_say(frame):
    for word in ("bank", "crane", "seal"):
        group = lab.twins(word, frame)
        assert len(group.texts) == len(group.senses) == len({*group.texts}) == sum(map(len, lexicon()[word].values()))
        for text, sense in zip(group.texts, group.senses, strict=True):
            tokens = WordTokenizer.tokenize(text)
            assert (tokens[frame.subject], tokens[frame.noun]) == ("man", word) and tokens[frame.cue] in lexicon()[
                word
            ][sense]


def test_twins_have_another_sense_or_the_same_and_another_cue():
    for word, senses in lexicon().items():
        group = lab.twins(word)
        for number, sense in enumerate(group.senses):
            assert group.senses[group.other[number]] != sense == group.senses[group.same[number]]
            assert group.same[number] != number or len(senses[sense]) == 1
        assert {group.senses[number] for number in group.other} == {*senses}


def test_scores_of_words_are_those_of_the_first_layer_without_positions(small):
    words = ["bank", "the", "river", "man", "bank"]
    x = lab.word_vectors(small, words)
    attention = small.model.encoder.layers[0].self_attention
    assert x.shape == (5, 22) and torch.equal(x[0], x[4])
    ids = [small.src_tokenizer.words.index(word) for word in words]
    torch.testing.assert_close(x, small.model.src_embedding.weight[ids].detach() * math.sqrt(22))
    scores = lab.word_scores(small, words)
    for head in range(2):
        rows = slice(11 * head, 11 * head + 11)
        W_QK = attention.w_q.weight[rows].T @ attention.w_k.weight[rows]
        torch.testing.assert_close(scores[head], (x @ W_QK @ x.T / math.sqrt(11)).detach(), rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        _, weights = attention(x[None], x[None], x[None], return_weights=True)
    torch.testing.assert_close(scores.softmax(dim=-1), weights[0], rtol=1e-4, atol=1e-5)


def test_the_vocabulary_has_words_only():
    words = lab.vocabulary(TRAINED)
    assert len(words) == 448 == len({*words}) and {"bank", "the", "river"} <= {*words}
    assert not {".", ",", "<pad>"} & {*words}


def test_nothing_exchanged_nothing_changes_and_all_is_given_back(small):
    texts = ["The man saw the bank near the river.", "The man saw the bank near the money."]
    before = encoded(small, texts)
    with lab.exchanged(small, ["query", "key", "value"], lambda part: part, 7):
        torch.testing.assert_close(encoded(small, texts), before)
    with lab.exchanged(small, ["value"], lambda part: part.flip(0), 7):
        assert not torch.allclose(encoded(small, texts), before)
    assert torch.equal(encoded(small, texts), before)


def test_who_notices_an_exchange_in_the_first_layer(small):
    """A query changes its own row alone; a key and a value together, in one layer, carry what the cue would say."""
    texts = ["The man saw the bank near the river.", "The man saw the bank near the money."]
    small_layer = small.model.encoder.layers[0]
    kept: dict[str, torch.Tensor] = {}
    hook = small_layer.self_attention.register_forward_hook(lambda module, args, output: kept.update(now=output))
    try:
        encoded(small, texts)
        plain = kept["now"]
        with lab.exchanged(small, ["query"], lambda part: part.flip(0), 7):
            encoded(small, texts)
        changed = (kept["now"] - plain).abs().amax(dim=-1) > 1e-6
        assert changed[:, 7].all() and not changed[:, :7].any() and not changed[:, 8:].any()
        with lab.exchanged(small, ["key", "value"], lambda part: part.flip(0), 7):
            encoded(small, texts)
        rest = [place for place in range(9) if place != 7]
        torch.testing.assert_close(kept["now"][:, rest], plain.flip(0)[:, rest])  # all but the cue read the other cue
    finally:
        hook.remove()


def test_the_translator_goes_with_the_value_of_the_cue():
    group = lab.twins("bank")
    found = {}
    for role in ("key", "value"):
        with lab.exchanged(TRAINED, [role], lambda part: part[group.other], 7):
            found[role] = lab.right_and_turned(TRAINED, "bank", group)
    assert found == {"key": (12, 0), "value": (0, 12)} and lab.right_and_turned(TRAINED, "bank", group) == (12, 0)


def test_the_course_translator_is_measured_again():
    stored = STORED["models"]["course"]
    found = lab.mean_weights(TRAINED)
    for way, weights in found.items():
        assert weights == pytest.approx(stored["weights"][way], abs=2e-3)
    assert (
        len(lab.weights_of_others()) == 4 and lab.weights_of_others()["seed 3"] == STORED["models"]["seed 3"]["weights"]
    )


def test_a_study_of_few_nouns_has_the_form_of_the_stored_one(monkeypatch):
    few = {word: lexicon()[word] for word in ("bank", "crane")}
    monkeypatch.setattr(study, "lexicon", lambda: few)
    monkeypatch.setattr(lab, "mean_weights", lambda _: STORED["models"]["course"]["weights"])
    found, stored = study.measure(TRAINED), STORED["models"]["course"]
    assert form(found["weights"]) == form(stored["weights"]) and [*found] == [*stored]
    assert [*found["changed"]] == [*stored["changed"]] == [*study.CHANGES]
    for change, counts in found["changed"].items():
        assert counts == {word: stored["changed"][change][word] for word in few}


def test_every_noun_was_asked_in_both_frames():
    for model in STORED["models"].values():
        for counts in model["changed"].values():
            assert {word: total for word, (_, _, total) in counts.items()} == {
                word: 2 * len(lab.twins(word).texts) for word in lexicon()
            }


def test_kept_shares():
    found = lab.kept(["bank"])
    assert [*found] == [*study.CHANGES] and found["nothing"] == [1] * 5
    assert found["value of the other cue"][0] == 0 and found["key of the other cue"][0] == 1
    counts = STORED["models"]["seed 2"]["changed"]["key of the other cue"].values()
    assert lab.kept()["key of the other cue"][2] == sum(c[0] for c in counts) / sum(c[2] for c in counts)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lab.twins("money"), "word must be one of bank, bat, .*, got 'money'"),
        (
            lambda: lab.word_vectors(TRAINED, ["bank", "sofabed"]),
            "words must be known to the translator, got 'sofabed'",
        ),
        (lambda: lab.exchanged(TRAINED, ["score"], abs, 7).__enter__(), "roles must be some of query, key, value"),
        (lambda: lab.kept(["bank", "money"]), "nouns must be some of bank, .*, got money"),
    ],
)
def test_what_is_not_there_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_nouns_meet_no_cue_but_their_own_in_training():
    """What notebook 03 says of bank and the ogre, of every noun."""
    own = {word: {cue for group in senses.values() for cue in group} for word, senses in lexicon().items()}
    every = set().union(*own.values())
    for pair in CORPUS["train"]:
        if pair.word in own:
            assert {*WordTokenizer.tokenize(pair.src)} & every <= own[pair.word] | {pair.word}
