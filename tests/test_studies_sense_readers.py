"""Readers of senses: which vectors they are given, how their answers are judged, and what a cut leaves."""

from __future__ import annotations

import pytest
import torch

from read_once import TRAINED
from transformer_lib.course.lab import cuts, senses
from transformer_lib.course.lab import sense_readers as study


@pytest.fixture(scope="module")
def asked():
    return study.Sentences(TRAINED, senses.load_senses()[2]["heldout"], every=10)


def test_the_places_are_those_of_the_words(asked):
    pairs = senses.load_senses()[2]["heldout"].pairs[::10]
    words = TRAINED.src_tokenizer.words

    def said(place):
        return [words[i] for i in asked.src[torch.arange(len(asked)), asked.places[place]].tolist()]

    assert said("noun") == [pair.word for pair in pairs] and said("cue") == [pair.cue for pair in pairs]
    assert set(said("last token")) == {".", "?"} and len(asked) == len(pairs) == 92
    assert (asked.places["word after"] - asked.places["word before"] == 2).all() and not asked.places[
        "first token"
    ].any()


def test_the_levels_lead_from_the_embeddings_to_the_memory(asked):
    model = TRAINED.model
    torch.testing.assert_close(asked.levels[-1], model.encode(asked.src))
    x = asked.levels[0]
    for layer, after in zip(model.encoder.layers, asked.levels[1:], strict=True):
        x = layer(x, asked.mask)
        torch.testing.assert_close(x, after)
    assert torch.equal(asked.at("cue", 1)[3], asked.levels[1][3, asked.cue[3]])
    assert len(asked.levels) == len(study.LEVELS) and not model.encoder.layers[0]._forward_pre_hooks


def test_only_the_nouns_own_senses_are_compared(asked):
    scores = 100.0 * (~asked.candidates) + torch.nn.functional.one_hot(asked.labels, 46)
    assert asked.share_right(scores) == 1


def test_the_linear_reader_finds_what_a_linear_map_can_tell():
    known, asked = torch.randn(2, 60, 5, generator=torch.Generator().manual_seed(0))
    labels, wanted = ((x @ torch.tensor([3.0, -1, 0, 0, 0]) > 0.5).long() for x in (known, asked))
    assert (study.linear_reader(known, labels, asked).argmax(dim=1) == wanted).double().mean() > 0.85


def test_with_one_connection_left_a_noun_reads_its_cue_alone(asked):
    far = torch.where(asked.cue > asked.word, asked.word - 1, asked.word + 1)  # never the cue
    before = asked.noun_under(cuts.only(TRAINED.model, asked, asked.word, asked.cue))
    for place, moves in ((asked.cue, True), (far, False)):
        src = asked.src.clone()
        src[torch.arange(len(src)), place] = 7
        kept, asked.src = asked.src, src
        moved = (asked.noun_under(cuts.only(TRAINED.model, asked, asked.word, asked.cue)) - before).abs().amax(dim=1)
        asked.src = kept
        assert (moved > 1e-4).all() if moves else moved.max() < 1e-5


def test_the_planes_hold_the_sentences_of_one_noun(asked):
    points, names = study.planes(asked, asked, "bank")
    assert len(points) == 3 and set(names) <= {"das Ufer", "die Bank"}
    assert all(grid.shape == (len(names), 2) for grid in points)
