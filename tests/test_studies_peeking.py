"""Writers and translators without the look-ahead mask: the language, the models, and what the stored study says."""

from __future__ import annotations

import pytest
import torch

from transformer_lib.course.studies import ladder, peeking
from transformer_lib.data.corpora import load_corpus


def test_sentences_follow_the_table():
    ids = peeking.sentences(20_000, torch.Generator().manual_seed(0))
    assert ids.shape == (20_000, peeking.INPUTS + 1)
    counts = torch.zeros(8, 8).index_put_((ids[:, :-1].flatten(), ids[:, 1:].flatten()), torch.ones(1), accumulate=True)
    assert torch.allclose(counts / counts.sum(dim=1, keepdim=True), peeking.FOLLOWS, atol=0.03)
    assert torch.allclose(peeking.FOLLOWS.sum(dim=1), torch.ones(8))


def test_surprise_is_the_loss_of_the_true_table():
    inputs, labels = peeking.test_sentences(300)
    ids = torch.cat((inputs, labels[:, -1:]), dim=1)
    by_hand = peeking.losses(peeking.FOLLOWS[inputs].log(), labels).mean().item()
    assert peeking.surprise(ids) == pytest.approx(by_hand, abs=1e-5)


def model(*, masked):
    torch.manual_seed(3)
    return peeking.Writer(masked=masked).double()


def test_only_without_the_mask_does_a_row_depend_on_later_words():
    inputs, _ = peeking.test_sentences(5)
    other = inputs.clone()
    other[:, 4] = (other[:, 4] + 1) % 8
    for masked in (True, False):
        moves = (model(masked=masked)(other) - model(masked=masked)(inputs)).abs().amax(dim=(0, 2))
        assert (moves[4:] > 0).any()
        assert (moves[:4] == 0).all() == masked


def test_with_the_mask_the_honest_form_is_the_training_form():
    inputs, _ = peeking.test_sentences(7)
    writer = model(masked=True)
    torch.testing.assert_close(peeking.honest(writer, inputs), writer(inputs), rtol=0, atol=1e-12)


def test_one_pass_gives_the_gradients_of_all_steps():
    inputs, labels = peeking.test_sentences(7)
    writer = model(masked=True)
    forms = (writer(inputs), peeking.honest(writer, inputs))
    both = [torch.autograd.grad(peeking.losses(logits, labels).mean(), list(writer.parameters())) for logits in forms]
    torch.testing.assert_close(*both, rtol=0, atol=1e-12)


def test_shifting_keeps_the_words_and_moves_the_last_one():
    inputs, _ = peeking.test_sentences(7)
    writer = model(masked=False)
    shifted = peeking.honest(writer, inputs, last_at=7)
    torch.testing.assert_close(shifted[:, 7], writer(inputs)[:, 7])
    torch.testing.assert_close(shifted[:, 2], writer(inputs[:, :3], 5)[:, -1])
    assert not torch.allclose(shifted[:, 2], peeking.honest(writer, inputs)[:, 2])


def test_writing_appends_words_and_reads_the_last_ones_only():
    inputs, _ = peeking.test_sentences(4)
    writer = model(masked=False).float()
    text = peeking.write(writer, inputs, 3)
    assert text.shape == (4, 11)
    assert torch.equal(text[:, :8], inputs)
    longer = torch.cat((inputs.flip(1), inputs), dim=1)
    assert torch.equal(peeking.write(writer, longer, 3)[:, 16:], text[:, 8:])


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


@pytest.fixture(scope="module")
def stored() -> dict:
    return peeking.load_results()


def test_the_stored_study_is_complete(stored):
    assert stored["command"] == "python -m transformer_lib.course.studies.peeking --seeds 0 1 2"
    given = {(run["masked"], run["seed"], run["rate"], run["steps"]) for run in stored["writers"]}
    assert len(given) == len(stored["writers"]) == 2 * 3 * 3 * 2
    assert {run[2:] for run in given} == {(r, s) for r in peeking.RATES for s in (peeking.STEPS, peeking.LONGER)}
    assert [run["seed"] for run in stored["translators"]] == [0, 1, 2]


def test_a_short_run_repeats_the_stored_one(stored):
    for kept in (run for run in stored["writers"] if (run["steps"], run["seed"], run["rate"]) == (250, 1, 0.005)):
        found = peeking.run(kept["masked"], kept["seed"], kept["rate"], kept["steps"])
        assert found["training"] == pytest.approx(kept["training"], abs=0.05)
        assert found["honest"] == pytest.approx(kept["honest"], abs=0.3)
        assert found["shifted"] == pytest.approx(kept["shifted"], abs=0.3)


def test_every_cheater_learned_the_table_at_one_position(stored):
    """What notebook 07, section 8, says of all 18: learning rates, budgets and seeds."""
    cheaters = [run for run in stored["writers"] if not run["masked"]]
    assert len(cheaters) == 18
    for run in cheaters:
        assert max(run["training"][:7]) < 0.2
        assert run["training"][7] < 1.1
        assert run["honest"][3] > 2.06
        assert run["shifted"][3] < 1.77
        assert all(shifted < honest for shifted, honest in zip(run["shifted"][2:7], run["honest"][2:7], strict=True))
        assert run["written"] > 1.8
        assert run["written with a full window"] < 1
    for run in (run for run in stored["writers"] if run["masked"]):
        assert run["shifted"] == pytest.approx(run["honest"], abs=0.03)
        assert sum(run["training"]) / 8 == pytest.approx(0.875, abs=0.015)


def test_hardly_a_translation_comes_out_right_without_the_mask(stored):
    honest_ones = ladder.load_results()["runs"]["07"]
    for run, honest in zip(stored["translators"], honest_ones, strict=True):
        for passes in map(str, ladder.PASSES):
            assert run["scores"][passes]["exact match"] < 0.001  # at most one sentence
            assert run["scores"][passes]["loss"] < honest["scores"][passes]["loss"] / 5
        assert run["scores"]["4"]["exact match"] == 0
        assert run["rate"] == honest["rate"]
