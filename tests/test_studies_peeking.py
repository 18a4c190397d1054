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


def test_four_words_are_moved_without_being_changed():
    inputs, labels = peeking_lab.test_sentences()
    writer = model(masked=False)
    for last_at in (3, 7, 10):
        by_hand = peeking_lab.losses(writer(inputs[:, 4:], last_at - 3)[:, -1:], labels[:, 7:])
        assert peeking_lab.after_four(writer, last_at) == pytest.approx(by_hand.item())
    assert peeking_lab.after_four(writer, 3) != pytest.approx(peeking_lab.after_four(writer, 7), abs=1e-4)


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
        found = peeking.run(**{name: kept[name] for name in ("masked", "cut", "seed", "rate", "steps")})
        for name in ("training", "honest", "written", "full window"):
            assert found[name] == pytest.approx(kept[name], abs=0.02, rel=0.05)
        assert found["after four"] == pytest.approx(kept["after four"], abs=0.02, rel=0.1)


def those(stored, *, masked, cut):
    return [run for run in stored["writers"] if (run["masked"], run["cut"]) == (masked, cut)]


def test_every_cheater_learned_the_table_at_one_position():
    """What notebook 07, section 8, says, at all learning rates, budgets and with all seeds."""
    cheaters, floor = those(STORED, masked=False, cut=False), 1.293
    assert len(cheaters) == 18
    for run in cheaters:
        assert max(run["by position"][:7]) < 0.2
        assert run["training"] < floor / 4
        assert run["honest"] > 4
        assert run["written"] > 2
        assert run["after four"][4] < 0.55 * run["after four"][0]
        assert run["full window"] < 1.9
    for run in those(STORED, masked=True, cut=False):
        assert max(run["after four"][:5]) - min(run["after four"][:5]) < 0.05
        assert run["training"] == pytest.approx(floor, abs=0.05)


def test_hardly_a_translation_comes_out_right_without_the_mask():
    honest_ones = ladder_lab.load_results()["runs"]["07"]
    for run, honest in zip(STORED["translators"], honest_ones, strict=True):
        for passes in map(str, peeking.PASSES):
            assert run["scores"][passes]["exact match"] < 0.001  # at most one sentence
            assert run["scores"][passes]["loss"] < honest["scores"][passes]["loss"] / 5
        assert run["scores"]["4"]["exact match"] == 0
        assert run["rate"] == honest["rate"]
