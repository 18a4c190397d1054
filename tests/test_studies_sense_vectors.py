"""Vectors of ambiguous nouns in the translator: their sentences, their cosines, and what a lent vector changes."""

from __future__ import annotations

import pytest
import torch

from read_once import TRAINED
from transformer_lib.course.lab import sense_vectors as study
from transformer_lib.data.tokenizers import WordTokenizer


def test_every_noun_has_two_or_three_senses_and_no_word_decides_for_two_of_them():
    lexicon = study.lexicon()
    assert len(lexicon) == 22 and {len(senses) for senses in lexicon.values()} == {2, 3}
    for senses in lexicon.values():
        cues = [cue for group in senses.values() for cue in group]
        assert len(cues) == len(set(cues)) and all(3 <= len(group) <= 6 for group in senses.values())


def test_sentences_differ_in_the_deciding_word_alone():
    for text in (text for word in study.lexicon() for group in study.sentences(word).values() for text in group):
        tokens = WordTokenizer.tokenize(text)
        assert tokens[study.NOUN] in study.lexicon() and text == study.SENTENCE.format(
            tokens[study.NOUN], tokens[study.CUE]
        )


def test_the_vectors_are_those_of_the_encoder():
    texts = ["The woman found the mole near the garden.", "The woman found the mole near the face."]
    src = TRAINED.src_tokenizer.encode_batch(texts)
    found = study.layer_outputs(TRAINED, texts)
    with torch.no_grad():
        memory = TRAINED.model.encode(src)
        rows = TRAINED.model.src_embedding(src)[:, study.NOUN]
    assert len(found) == 3 and torch.equal(found[-1], memory[:, study.NOUN])
    assert torch.equal(found[0][0], found[0][1]) and torch.equal(rows[0], rows[1])
    assert not TRAINED.model.encoder.layers[0]._forward_hooks


def test_cosines_are_sorted_by_sense():
    vectors = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0], [1.0, 1.0]])
    same, other = study.cosines(vectors, ["a", "a", "b", "a"])
    torch.testing.assert_close(same, torch.tensor([1.0, 0.5**0.5, 0.5**0.5]))
    torch.testing.assert_close(other, torch.tensor([0.0, 0.0, 0.5**0.5]))


def test_a_lent_vector_is_given_back():
    src = TRAINED.src_tokenizer.encode_batch(["The woman found the mole near the garden."])
    with torch.no_grad():
        before = TRAINED.model.encode(src)
        other = TRAINED.src_tokenizer.encode_batch(["The woman found the mole near the face."])
        with study.lent(TRAINED.model, other, 4, 7):
            inside = TRAINED.model.encode(src)
        after, lender = TRAINED.model.encode(src), TRAINED.model.encode(other)
    assert torch.equal(before, after)
    assert torch.equal(inside[:, [4, 7]], lender[:, [4, 7]])
    assert torch.equal(inside[:, list(study.OTHERS)], before[:, list(study.OTHERS)])


def test_the_translation_goes_with_the_noun_or_with_the_deciding_word():
    noun, cue = (study.followed(TRAINED, place) for place in (study.NOUN, study.CUE))
    assert {(noun[word], cue[word]) for word in ("bank", "mole")} == {(1, 0)}
    assert {(noun[word], cue[word]) for word in ("crane", "nail")} == {(0, 1)}
    assert sum((noun[word], cue[word]) == (1, 0) for word in noun) == 14


def test_the_two_places_hold_all_of_the_sense():
    assert set(study.followed(TRAINED, study.NOUN, study.CUE).values()) == {1}
    assert set(study.followed(TRAINED, *study.OTHERS).values()) == {0}


@pytest.mark.parametrize("place", [study.NOUN, study.CUE])
def test_a_vector_lent_within_a_sense_changes_nothing(place):
    assert set(study.followed(TRAINED, place, same_sense=True).values()) == {1}


def test_translations_are_those_of_the_translator():
    texts = [text for word, _, text in study.asked() if word in ("bank", "nut")]
    assert TRAINED.translate(texts) == [
        german
        for german, (word, _, _) in zip(study.translated(TRAINED), study.asked(), strict=True)
        if word in ("bank", "nut")
    ]


def test_every_sentence_is_translated_with_its_sense():
    assert study.share_right(TRAINED) == 1
