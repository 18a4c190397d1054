"""Vectors of ambiguous nouns in the translator: their sentences, their cosines, and what a lent vector changes."""

from __future__ import annotations

import pytest
import torch

from transformer_lib import load_trained
from transformer_lib.course.studies import sense_vectors as study
from transformer_lib.data.tokenizers import WordTokenizer


@pytest.fixture(scope="module")
def translator():
    return load_trained()


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


def test_an_unknown_noun_is_refused():
    with pytest.raises(ValueError, match=r"word must be one of bank, bat, .*, got 'money'"):
        study.sentences("money")


def test_the_vectors_are_those_of_the_encoder(translator):
    texts = ["The woman found the mole near the garden.", "The woman found the mole near the face."]
    src = translator.src_tokenizer.encode_batch(texts)
    found = study.layer_outputs(translator, texts)
    with torch.no_grad():
        memory = translator.model.encode(src)
        rows = translator.model.src_embedding(src)[:, study.NOUN]
    assert len(found) == 3 and torch.equal(found[-1], memory[:, study.NOUN])
    assert torch.equal(found[0][0], found[0][1]) and torch.equal(rows[0], rows[1])
    assert not translator.model.encoder.layers[0]._forward_hooks


def test_cosines_are_sorted_by_sense():
    vectors = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0], [1.0, 1.0]])
    same, other = study.cosines(vectors, ["a", "a", "b", "a"])
    torch.testing.assert_close(same, torch.tensor([1.0, 0.5**0.5, 0.5**0.5]))
    torch.testing.assert_close(other, torch.tensor([0.0, 0.0, 0.5**0.5]))


def test_a_lent_vector_is_given_back(translator):
    src = translator.src_tokenizer.encode_batch(["The woman found the mole near the garden."])
    with torch.no_grad():
        before = translator.model.encode(src)
        with study.lent(translator.model, 4, torch.zeros(1, before.shape[-1])):
            inside = translator.model.encode(src)
        after = translator.model.encode(src)
    assert torch.equal(before, after) and not inside[:, 4].any()
    assert torch.equal(inside[:, :4], before[:, :4]) and torch.equal(inside[:, 5:], before[:, 5:])


def test_the_translation_goes_with_the_noun_or_with_the_deciding_word(translator):
    for word, noun, cue in (("bank", 1, 0), ("mole", 1, 0), ("crane", 0, 1), ("nail", 0, 1)):
        assert study.followed(translator, word) == noun
        assert study.followed(translator, word, place=study.CUE) == cue


def test_a_vector_lent_within_a_sense_changes_nothing(translator):
    assert all(
        study.followed(translator, word, place=place, same_sense=True) == 1
        for word in ("bank", "crane", "nut", "bow")
        for place in (study.NOUN, study.CUE)
    )


def test_every_sentence_is_translated_with_its_sense(translator):
    assert study.share_right(translator) == 1
