"""Writers and translators without the look-ahead mask: the language, the models, and what the stored study says."""

from __future__ import annotations

import pytest
import torch

from studies import ladder, peeking
from transformer_lib.course.lab import ladder as ladder_lab
from transformer_lib.course.lab import peeking as peeking_lab
from transformer_lib.data.corpora import load_corpus


def test_sentences_follow_the_table():
    ids = peeking_lab.sentences(20_000, torch.Generator().manual_seed(0))
    assert ids.shape == (20_000, peeking_lab.INPUTS + 1)
    counts = torch.zeros(8, 8).index_put_((ids[:, :-1].flatten(), ids[:, 1:].flatten()), torch.ones(1), accumulate=True)
    assert torch.allclose(counts / counts.sum(dim=1, keepdim=True), peeking_lab.FOLLOWS, atol=0.03)


def test_all_words_are_equally_frequent_at_every_position():
    assert torch.allclose(peeking_lab.FOLLOWS.sum(dim=1), torch.ones(8))
    assert torch.allclose(peeking_lab.FOLLOWS.sum(dim=0), torch.ones(8), atol=1e-4)
    ids = peeking_lab.sentences(20_000, torch.Generator().manual_seed(1))
    shares = torch.nn.functional.one_hot(ids, 8).double().mean(dim=0)
    assert (shares - 1 / 8).abs().max() < 0.012


def test_surprise_is_the_loss_of_the_true_table():
    inputs, labels = peeking_lab.test_sentences(300)
    ids = torch.cat((inputs, labels[:, -1:]), dim=1)
    by_hand = peeking_lab.losses(peeking_lab.FOLLOWS[inputs].log(), labels).mean().item()
    assert peeking_lab.surprise(ids) == pytest.approx(by_hand, abs=1e-5)


def model(*, masked):
    torch.manual_seed(3)
    return peeking_lab.Writer(masked=masked).double()


def test_only_without_the_mask_does_a_row_depend_on_later_words():
    inputs, _ = peeking_lab.test_sentences(5)
    other = inputs.clone()
    other[:, 4] = (other[:, 4] + 1) % 8
    for masked in (True, False):
        moves = (model(masked=masked)(other) - model(masked=masked)(inputs)).abs().amax(dim=(0, 2))
        assert (moves[4:] > 0).any()
        assert (moves[:4] == 0).all() == masked


def test_with_the_mask_the_honest_form_is_the_training_form():
    inputs, _ = peeking_lab.test_sentences(7)
    writer = model(masked=True)
    torch.testing.assert_close(peeking_lab.honest(writer, inputs), writer(inputs), rtol=0, atol=1e-12)


def test_one_pass_gives_the_gradients_of_all_steps():
    inputs, labels = peeking_lab.test_sentences(7)
    writer = model(masked=True)
    forms = (writer(inputs), peeking_lab.honest(writer, inputs))
    both = [
        torch.autograd.grad(peeking_lab.losses(logits, labels).mean(), list(writer.parameters())) for logits in forms
    ]
    torch.testing.assert_close(*both, rtol=0, atol=1e-12)


def test_only_the_last_words_are_shown_and_the_position_is_kept():
    inputs, labels = peeking_lab.test_sentences()
    writer = model(masked=False)
    for n_words, last_at in ((1, 0), (1, 7), (3, 2), (5, 11), (8, 7)):
        by_hand = peeking_lab.losses(writer(inputs[:, 8 - n_words :], last_at + 1 - n_words)[:, -1:], labels[:, 7:])
        assert peeking_lab.after(writer, n_words, last_at) == pytest.approx(by_hand.item())
    assert peeking_lab.after(writer, 1, 0) != pytest.approx(peeking_lab.after(writer, 1, 7), abs=1e-4)


@pytest.mark.parametrize(("n_words", "last_at", "most"), [(0, 7, 8), (9, 11, 8), (4, 2, 3)])
def test_words_that_are_not_there_cannot_be_shown(n_words, last_at, most):
    message = f"n_words must be from 1 to {most} up to position {last_at}, got {n_words}"
    with pytest.raises(ValueError, match=message):
        peeking_lab.after(model(masked=True), n_words, last_at)


def test_where_all_read_the_same_no_row_depends_on_another_word(monkeypatch):
    writer, (inputs, labels) = model(masked=False), peeking_lab.test_sentences(7)
    monkeypatch.setattr(peeking_lab, "test_sentences", lambda: (inputs, labels))
    found = peeking_lab.reading_the_same(writer)
    x, read, _ = writer.attend(inputs)
    same = read.flatten(0, 1).mean(dim=0)
    logits = torch.stack([torch.stack([writer.readout(torch.cat((row, same))) for row in rows]) for rows in x])
    torch.testing.assert_close(found, peeking_lab.losses(logits, labels))
    assert found.shape == (8,)


def test_without_the_last_row_the_last_word_of_a_sentence_teaches_nothing(monkeypatch):
    drawn = peeking_lab.sentences

    def other_ends(*given):
        ids = drawn(*given)
        ids[:, -1] = (ids[:, -1] + 3) % 8
        return ids

    def trained(last_row):
        return peeking_lab.train(masked=False, seed=0, steps=3, last_row=last_row).readout.weight

    before = {last_row: trained(last_row) for last_row in (True, False)}
    monkeypatch.setattr(peeking_lab, "sentences", other_ends)
    assert torch.equal(trained(False), before[False])
    assert not torch.equal(trained(True), before[True])
    with pytest.raises(ValueError, match="last_row must be True where sentences are cut, got False"):
        peeking_lab.train(masked=False, seed=0, steps=1, cut=True, last_row=False)


def test_the_two_writers_differ_by_the_mask_alone(monkeypatch):
    asked = []
    monkeypatch.setattr(peeking_lab, "train", lambda **setup: asked.append(setup) or peeking_lab.Writer(masked=True))
    writers = peeking_lab.two_writers(seeds=(3, 5))
    assert [len(models) for models in writers.values()] == [2, 2]
    assert asked == [{"masked": masked, "seed": seed} for masked in (True, False) for seed in (3, 5)]
    assert writers["Ben"][0].table.weight.dtype == torch.float64


def test_with_a_full_window_the_first_word_is_that_of_the_last_position():
    ids = peeking_lab.sentences(1000, torch.Generator().manual_seed(98), 9)
    writer = model(masked=False)
    by_hand = peeking_lab.losses(writer(ids[:, :8]), ids[:, 1:])[7].item()
    assert peeking_lab.with_full_window(writer, 1) == pytest.approx(by_hand)


def test_the_judge_takes_the_three_forms():
    inputs, labels = peeking_lab.test_sentences()
    writer = model(masked=True).float()
    in_training, alone, written = peeking_lab.judge(writer)
    assert in_training == pytest.approx(alone, abs=1e-5)
    assert in_training == pytest.approx(peeking_lab.losses(writer(inputs), labels).mean().item())
    assert written == pytest.approx(peeking_lab.surprise(peeking_lab.write(writer, inputs[:, :1], 8)))


def test_writing_appends_words_and_reads_the_last_ones_only():
    inputs, _ = peeking_lab.test_sentences(4)
    writer = model(masked=False).float()
    text = peeking_lab.write(writer, inputs, 3)
    assert text.shape == (4, 11)
    assert torch.equal(text[:, :8], inputs)
    longer = torch.cat((inputs.flip(1), inputs), dim=1)
    assert torch.equal(peeking_lab.write(writer, longer, 3)[:, 16:], text[:, 8:])


def test_the_peeking_translator_differs_by_its_mask_alone():
    corpus = load_corpus("context")
    peeker, rung = peeking.new_peeker(corpus, 0), ladder.new_translator(corpus, "07", 0)
    src, tgt = torch.tensor([[5, 6, 7, 2]]), torch.tensor([[1, 5, 6, 7]])
    other = tgt.clone()
    other[0, 3] = 8
    with torch.no_grad():
        moves = [(t.model(src, other) - t.model(src, tgt)).abs().amax(dim=-1)[0] for t in (peeker, rung)]
        torch.testing.assert_close(peeker.model(src, tgt)[:, -1], rung.model(src, tgt)[:, -1])  # it may read all anyway
    assert (moves[0] > 0).all()
    assert (moves[1][:3] == 0).all()


STORED = peeking_lab.load_results()


def test_a_short_run_repeats_the_stored_one():
    for kept in (run for run in STORED["writers"] if (run["steps"], run["seed"], run["rate"]) == (250, 1, 0.005)):
        found = peeking.run(**{name: kept[name] for name in ("masked", "cut", "last_row", "seed", "rate", "steps")})
        for name in ("training", "honest", "written", "full window"):
            assert found[name] == pytest.approx(kept[name], abs=0.02, rel=0.05)
        for name in ("the same reading", "at the end", "from the start"):
            assert found[name] == pytest.approx(kept[name], abs=0.02, rel=0.1)


def those(stored, *, masked, cut=False, last_row=True):
    found = [
        run for run in stored["writers"] if (run["masked"], run["cut"], run["last_row"]) == (masked, cut, last_row)
    ]
    assert len(found) == 18
    return found


def test_every_cheater_knows_the_language_and_talks_over_it():
    """What notebook 07, section 8, says, at all learning rates, budgets and with all seeds."""
    floor = 1.293
    for run in those(STORED, masked=False):
        assert max(run["by position"][:7]) < 0.2
        assert run["training"] < floor / 4
        assert run["honest"] > 4
        assert run["written"] > 2
        assert run["full window"] < 1.9
        assert run["at the end"][0] > 5 > 4.3 > run["at the end"][1] > run["at the end"][3] > run["at the end"][7]
        assert min(run["from the start"][:6]) > 3.5
        assert sum(run["the same reading"]) / 8 < 1.7
    for run in those(STORED, masked=True):
        for curve in (run["at the end"], run["from the start"]):
            assert curve == pytest.approx([floor] * 8, abs=0.06)
        assert run["training"] == pytest.approx(floor, abs=0.05)


def test_who_is_cut_at_random_writes_well_and_leaks_all_the_same():
    for run in those(STORED, masked=False, cut=True):
        assert run["written"] < 1.6
        assert run["training"] < 0.8


def test_without_the_last_row_the_language_is_learned_and_restraint_is_not():
    runs = those(STORED, masked=False, last_row=False)
    assert min(run["honest"] for run in runs) > 7
    assert sorted(sum(run["the same reading"]) / 8 for run in runs)[15] < 1.92


def test_hardly_a_translation_comes_out_right_without_the_mask():
    honest_ones = ladder_lab.load_results()["runs"]["07"]
    for run, honest in zip(STORED["translators"], honest_ones, strict=True):
        for passes in map(str, peeking.PASSES):
            assert run["scores"][passes]["exact match"] < 0.001  # at most one sentence
            assert run["scores"][passes]["loss"] < honest["scores"][passes]["loss"] / 5
        assert run["scores"]["4"]["exact match"] == 0
        assert run["rate"] == honest["rate"]
