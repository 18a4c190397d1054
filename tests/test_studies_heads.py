"""Interventions on a translator, each against what it must do to a small model; and the stored study."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

import transformer_lib as tl
from factories import make_model, random_ids
from read_once import HELDOUT, TRAINED
from studies import heads as study
from test_studies_shared import form
from transformer_lib.course.lab import cuts as change_lab
from transformer_lib.course.lab import entries
from transformer_lib.course.lab import heads as study_lab
from transformer_lib.course.lab import questions as questions_lab


@pytest.fixture(scope="module")
def it():
    return questions_lab.Questions(TRAINED, [pair for pair in HELDOUT if pair.word == "it"][:23])


@pytest.fixture(scope="module")
def noun():
    return questions_lab.Questions(TRAINED, [pair for pair in HELDOUT if pair.word != "it"][:17])


def test_questions_find_the_word_and_its_cue(noun):
    assert len(noun) == 17 and noun.right.sum() == 17
    for words, pair, word, cue in zip(noun.words, noun.pairs, noun.word, noun.cue, strict=True):
        assert (words[word], words[cue]) == (pair.word, pair.cue)


def test_the_margin_is_the_difference_of_the_log_probabilities(noun):
    for pair, margin in zip(noun.pairs[:5], questions_lab.margins(TRAINED.model.eval(), noun)[:5], strict=True):
        texts = [pair.tgt, *pair.contrast]
        log_p = TRAINED.log_probabilities([pair.src] * len(texts), texts).sum(dim=1)
        torch.testing.assert_close(margin, log_p[0] - log_p[1:].max(), rtol=0, atol=1e-3)


def test_the_nouns_of_it_are_the_one_meant_and_the_other(it):
    meant, other = questions_lab.nouns(it)
    for words, pair, m, o in zip(it.words, it.pairs, meant, other, strict=True):
        assert m != o and not {words[m], words[o]} & {"it", "the", pair.cue}
    dog = next(i for i, pair in enumerate(it.pairs) if pair.sense == "das Pferd")
    assert it.words[dog][meant[dog]] == "horse"


NAME = "encoder.layers.1.self_attention"


def test_a_silent_head_is_one_with_a_zero_matrix():
    model, x = make_model(), torch.randn(5, 7, 30)
    layer = model.encoder.layers[1].self_attention
    twin, before = copy.deepcopy(layer), layer(x, x, x)
    with torch.no_grad():
        twin.w_o.weight[:, 10:30] = 0
    with change_lab.silenced(model, [(NAME, 1), (NAME, 2)]):
        torch.testing.assert_close(layer(x, x, x), twin(x, x, x))
    torch.testing.assert_close(layer(x, x, x), before)


def test_every_head_is_named_once_in_the_order_of_the_model():
    model = make_model()
    found = change_lab.heads_of(model)
    assert len(set(found)) == len(found) == 6 * model.config.n_heads
    assert found[0] == ("encoder.layers.0.self_attention", 0) and found[-1] == ("decoder.layers.1.cross_attention", 2)
    assert change_lab.by_attention([found[0], found[-1], found[2]]) == {found[0][0]: [0, 2], found[-1][0]: [2]}


def test_heads_are_replaced_and_the_others_kept():
    x, other = torch.randn(2, 3, 12), torch.randn(2, 3, 12)
    found = change_lab.replace_heads(x, other, 4, [3, 1])
    torch.testing.assert_close(found[..., 3:6], other[..., 3:6])
    torch.testing.assert_close(found[..., 9:], other[..., 9:])
    torch.testing.assert_close(found[..., :3], x[..., :3])


def test_all_heads_of_the_twin_turn_what_its_memory_turns(it):
    model, donor = TRAINED.model, questions_lab.donors(TRAINED, it, HELDOUT)
    outputs = change_lab.head_outputs(model, it, donor)
    cross = [head for head in change_lab.heads_of(model) if "cross" in head[0]]
    with study.replaced(model, cross, outputs):
        lent = questions_lab.margins(model, it)
    with torch.no_grad():
        expected = questions_lab.margins(model, it, model.encode(donor))
    torch.testing.assert_close(lent, expected)
    whole = questions_lab.margins(model, it)
    with study.replaced(model, change_lab.heads_of(model), change_lab.head_outputs(model, it, it.src)):
        torch.testing.assert_close(questions_lab.margins(model, it), whole)  # its own outputs change nothing
    assert all(not layer.w_o._forward_pre_hooks for layer in (model.get_submodule(name) for name in outputs))


def test_a_masked_entry_is_not_read_in_the_head_named():
    model, src = make_model(), random_ids(23, 5, 7)
    may = torch.ones(5, 3, 7, 7, dtype=torch.bool)
    may[2, 1, 3, 5] = False
    with change_lab.masked(model.encoder.layers[0].self_attention, may), tl.record_attention(model) as record:
        model.encode(src)
    weights = record["encoder.layers.0.self_attention"]
    assert weights[2, 1, 3, 5] == 0 and (weights > 0).sum() == weights.numel() - 1


@pytest.mark.parametrize("layers", [None, (0,), (1,)])
def test_cutting_and_hiding_reach_the_layers_named_or_all(it, layers):
    model, here = TRAINED.model.eval(), torch.arange(len(it))
    reached = [layers is None or number in layers for number in (0, 1)]
    with change_lab.cut_rows(model, it, it.word, it.cue, layers=layers), tl.record_attention(model) as record:
        model.encode(it.src)
    cut = [grid[here, :, it.word, it.cue] for grid in record.values()]
    with change_lab.hidden(model, it, it.cue, layers=layers), tl.record_attention(model) as record:
        questions_lab.margins(model, it)
    rows, places = torch.arange(len(it.owner)), it.cue[it.owner]
    crossed = [grid[rows, :, :, places] for name, grid in record.items() if "cross" in name]
    for column, weights in zip(reached, cut, strict=True):
        assert (weights == 0).all() if column else (weights > 0).all()
    for column, weights in zip(reached, crossed, strict=True):
        assert (weights == 0).all() if column else (weights[:, :, 0] > 0).all()


def test_closed_places_are_read_by_themselves_alone(it):
    model, here = TRAINED.model.eval(), torch.arange(len(it))
    with change_lab.unread(model, it, it.cue, it.word), tl.record_attention(model) as record:
        model.encode(it.src)
    for grid in record.values():
        column = grid[here, :, :, it.cue]  # [n, n_heads, src_len]
        assert (column[here, :, it.cue] > 0).all()
        column[here, :, it.cue] = 0
        assert (column == 0).all()


def test_an_evened_head_gives_every_key_it_may_read_the_same_weight():
    model = make_model()
    layer, x = model.encoder.layers[1].self_attention, torch.randn(5, 7, 30)
    may = torch.arange(7)[None, None, None] < torch.tensor([7, 6, 5, 4, 3])[:, None, None, None]  # [5, 1, 1, 7]
    before, weights = layer(x, x, x, may, return_weights=True)
    weights = weights.clone()
    weights[:, 2] = may[:, 0].expand(5, 7, 7) / may[:, 0].sum(dim=-1, keepdim=True)
    value = layer.w_v(x).unflatten(-1, (3, 10)).transpose(1, 2)  # [5, 3, 7, 10]
    expected = layer.w_o((weights @ value).transpose(1, 2).flatten(2))
    with change_lab.evened(model, [(NAME, 2)]):
        torch.testing.assert_close(layer(x, x, x, may), expected)
    torch.testing.assert_close(layer(x, x, x, may), before)


def test_a_stranger_needs_the_pronoun_at_the_same_position_and_shares_no_noun():
    it = questions_lab.Questions(TRAINED, [pair for pair in HELDOUT if pair.word == "it"])
    meant, other = questions_lab.nouns(it)
    wanted = [pair.expected for pair in it.pairs]
    found = change_lab.strangers(it, wanted)
    german = [[word.lower() for word in TRAINED.tgt_tokenizer.tokenize(pair.tgt)] for pair in it.pairs]
    lengths = [words.index(pair.expected.lower()) for words, pair in zip(german, it.pairs, strict=True)]
    for i, j in enumerate(found.tolist()):
        assert i != j and it.pairs[j].expected == wanted[i] and lengths[i] == lengths[j]
        assert not {it.words[i][meant[i]], it.words[i][other[i]]} & {it.words[j][meant[j]], it.words[j][other[j]]}
        assert (meant[i] < other[i]) == (meant[j] < other[j])
    assert not torch.equal(found, change_lab.strangers(it, wanted, seed=1))
    assert torch.equal(change_lab.strangers(it, ["nobody"] * len(it)), torch.arange(len(it)))


def test_what_others_hand_on_is_that_of_their_right_translation(it):
    outputs = {"decoder.a": torch.arange(46.0)[:, None, None], "encoder.b": torch.zeros(23, 1, 1)}
    found = change_lab.from_others(it, outputs, torch.arange(23).roll(1))
    right = it.right.nonzero()[:, 0]
    assert list(found) == ["decoder.a"] and len(it.owner) == 46
    assert found["decoder.a"][it.owner == 1, 0, 0].tolist() == [right[0].item()] * 2


def test_the_largest_of_a_row_is_found_sentence_by_sentence():
    effect, weight = np.array([1.0, 5, 9, 2, 3, 1]), np.array([0.1, 0.8, 1, 0.9, 0.2, 0.1])
    noun = np.array([True, True, False, True, True, True])
    found = entries.Entries(weight, effect, effect, noun, noun, np.array([0, 0, 0, 1, 1, 1]))
    assert (found.named(weight), found.named(effect)) == (1, 2)


def test_entries_have_the_weights_lengths_and_effects_of_one_sentence(noun):
    pair, model = noun.pairs[0], TRAINED.model.eval()
    weight, length, effect, of_noun, is_cue = entries.of_sentence(TRAINED, pair)
    one = questions_lab.Questions(TRAINED, [pair])
    n, place = one.src.shape[1], int(one.word[0] * one.src.shape[1] + one.cue[0])
    assert len(weight) == n * n and of_noun.sum() == n and is_cue.nonzero()[0].tolist() == [place]
    with tl.record_attention(model) as record:
        model.encode(one.src)
    grids = torch.stack([record[f"encoder.layers.{k}.self_attention"][0] for k in (0, 1)])
    torch.testing.assert_close(torch.from_numpy(weight), grids.amax(dim=(0, 1)).flatten())
    with change_lab.cut_rows(model, one, one.word, one.cue):
        after = questions_lab.margins(model, one)
    assert effect[place] == pytest.approx(abs((after - questions_lab.margins(model, one)).item()), abs=1e-3)
    layer, x = model.encoder.layers[0].self_attention, torch.randn(2, 5, 96)
    recorded = layer(x, x, x, return_weights=True)[1]
    found = entries.carried_lengths(layer, x, recorded)
    by_hand = layer.w_v(x)[1, 3, 24:48] @ layer.w_o.weight[:, 24:48].T
    torch.testing.assert_close(found[1, 1, 2, 3], recorded[1, 1, 2, 3] * by_hand.norm())


def test_a_donor_differs_in_the_deciding_word_alone_and_turns_the_decision(noun):
    donor = questions_lab.donors(TRAINED, noun, tl.load_corpus("context")["heldout"])
    differs = donor != noun.src
    assert differs.sum() == 17 and differs[torch.arange(17), noun.cue].all()
    assert study.flipped(TRAINED.model, noun, donor) > 0.9
    assert study.flipped(TRAINED.model, noun, noun.src, noun.word) == 0


def test_the_twin_of_an_it_sentence_means_the_other_noun(it):
    meant, other = questions_lab.nouns(it)
    twins = questions_lab.Questions(TRAINED, questions_lab.twins(it, HELDOUT))
    assert torch.equal(torch.stack(questions_lab.nouns(twins)), torch.stack([other, meant]))
    assert torch.equal(twins.src, questions_lab.donors(TRAINED, it, HELDOUT))


def test_rows_are_lent_where_the_mask_says(noun):
    model, donor = TRAINED.model, questions_lab.donors(TRAINED, noun, HELDOUT)
    rows = change_lab.rows_at(noun, noun.word, noun.cue)
    assert rows.sum(dim=1).tolist() == [2] * 17 and rows[torch.arange(17), noun.cue].all()
    torch.testing.assert_close(change_lab.lent(model, noun, donor, rows & False), questions_lab.margins(model, noun))
    with torch.no_grad():
        everything = questions_lab.margins(model, noun, model.encode(donor))
    torch.testing.assert_close(change_lab.lent(model, noun, donor, rows | True), everything)
    assert study.flipped(model, noun, donor) == round(1 - questions_lab.share(everything), 3)


def test_articles_are_found(noun):
    found = study.articles(noun)
    for words, row, word in zip(noun.words, found, noun.word, strict=True):
        assert [here for here, mark in zip(words, row, strict=False) if mark] == [
            w for w in words if w in ("the", "a", "an")
        ]
        assert not row[word] and not row[len(words) :].any()


def test_the_rank_correlation_sees_the_order_alone_and_lets_equals_share_a_rank():
    x = np.array([3.0, 1.0, 4.0, 1.5, 9.0])
    assert entries.rank_correlation(x, np.exp(x)) == pytest.approx(1)
    assert entries.rank_correlation(x, -(x**3)) == pytest.approx(-1)
    assert entries.rank_correlation(np.array([1, 2, 2, 4]), np.array([10, 30, 20, 40])) == pytest.approx(
        0.9487, abs=1e-4
    )


def test_pruning_scores_a_head_with_those_that_are_silent_already():
    heads = [("a", 0), ("a", 1), ("b", 0)]
    costs = {(): 0, (0,): 1, (1,): 2, (2,): 3, (0, 1): 13, (0, 2): 4, (1, 2): 5, (0, 1, 2): 20}
    order = study.greedy_order(lambda silent: -costs[tuple(sorted(heads.index(head) for head in silent))], heads)
    assert order == [heads[0], heads[2], heads[1]]


def test_the_row_of_the_pronoun_writes_it(it):
    rows = change_lab.pronoun_rows(TRAINED, it)
    assert [tuple(grid.shape[:2]) for grid in rows.values()] == [(23, 4)] * 2
    for grid in rows.values():
        torch.testing.assert_close(grid.sum(dim=-1), torch.ones(23, 4))


def test_measuring_again_finds_what_is_stored(it):
    stored = study_lab.load_results()["models"]["course"]
    whole = questions_lab.Questions(TRAINED, [pair for pair in HELDOUT if pair.word == "it"])
    donor, model = questions_lab.donors(TRAINED, whole, HELDOUT), TRAINED.model
    found = study.together(model, whole, donor)
    for group, measures in found.items():
        assert measures == pytest.approx(stored["together"]["it"][group], abs=0.02)
    found = study.of_pronouns(TRAINED, whole, tl.load_corpus("context"))
    for key in ("cut, it", "hidden", "flipped, it"):
        assert found[key] == pytest.approx(stored[key], abs=0.02)
    name, head = "decoder.layers.1.cross_attention", 2
    with change_lab.silenced(model, [(name, head)]):
        assert questions_lab.share(questions_lab.margins(model, whole)) == pytest.approx(
            stored["alone"]["it"]["right"][name][head], abs=0.02
        )


def test_a_short_measurement_has_every_part(monkeypatch):
    few = [pair for pair in tl.load_corpus("context")["heldout"] if pair.word]
    corpus = {"heldout": few, "validation": tl.load_corpus("context")["validation"]}
    nouns = [pair for pair in few if pair.word != "it"][:16]
    pronouns = [pair for pair in few if pair.word == "it"][:4]
    asked = questions_lab.Questions(TRAINED, nouns), questions_lab.Questions(TRAINED, pronouns)
    monkeypatch.setattr(study_lab, "questions", lambda translator, pairs: asked)
    monkeypatch.setattr(study, "PRUNED_ON", 2)
    monkeypatch.setattr(study, "greedy_order", lambda score, heads: sorted(heads, key=lambda head: score([head])))
    monkeypatch.setattr(study.entries, "short_sentences", lambda pairs: nouns[:1])
    found = study.measure(TRAINED, corpus)
    stored = study_lab.load_results()["models"]["course"]
    assert form(found, lengths=False) == form(stored, lengths=False)
    assert found["pruned"]["greedy"]["loss"][0] < found["pruned"]["greedy"]["loss"][-1]


def test_the_encoders_heads_are_read_out_for_notebook_08():
    one, together = study_lab.silenced_in_encoder()
    assert list(one) == list(together) == ["course", "seed 1", "seed 2", "seed 3", "seed 4"]
    found = study_lab.load_results()["models"]["seed 3"]
    alone = found["alone"]["noun"]["right"]
    assert one["seed 3"] == alone["encoder.layers.0.self_attention"] + alone["encoder.layers.1.self_attention"]
    assert together["seed 3"] == [found["together"]["noun"]["encoder"]["silenced"]]
