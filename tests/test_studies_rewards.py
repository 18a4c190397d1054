"""The writer that a program rewards: what it draws, what moves it, and what is measured of it."""

from __future__ import annotations

import copy

import pytest
import torch

from studies import rewards as study
from transformer_lib.course.lab import masks, one_stack
from transformer_lib.course.lab import rewards as lab
from transformer_lib.training.preferences import group_advantages

pytestmark = pytest.mark.fast


@pytest.fixture(scope="module")
def writer():
    return lab.new_writer(0, steps=3)


def test_texts_begin_and_end_and_are_padded_behind(writer):
    ids = lab.write(writer, 31, torch.Generator().manual_seed(0))
    assert (ids[:, 0] == 1).all() and ids.shape[1] <= 25
    for row in ids.tolist():
        said = row[1 : row.index(2)] if 2 in row else row[1:]
        assert 2 not in said and set(row[1 + len(said) :]) <= {0, 2}
    assert torch.equal(ids, lab.write(writer, 31, torch.Generator().manual_seed(0)))


def test_at_a_low_temperature_it_says_what_is_likeliest(writer):
    ids = lab.write(writer, 3, torch.Generator().manual_seed(0), temperature=1e-4)
    for place in range(1, min(ids.shape[1], 5)):
        assert (writer(ids[:, :place])[:, -1].argmax(dim=-1) == ids[:, place]).all()


def test_a_reward_is_earned_more_often_and_the_price_holds_the_model_back(writer):
    def short(said):
        return [-float(len(text.split())) for text in said]

    models = {beta: copy.deepcopy(writer) for beta in (0.0, 100.0)}
    earned = {beta: list(lab.reinforce(model, 8, 1, reward=short, beta=beta)) for beta, model in models.items()}
    assert earned[0.0][-1] > earned[0.0][0] + 0.5 and earned[0.0][0] == earned[100.0][0]
    ids = one_stack.heldout()[:, :5]
    apart = {beta: (model(ids) - writer(ids)).abs().mean() for beta, model in models.items()}
    assert apart[0.0] > 2 * apart[100.0] > 0


def test_a_step_is_that_of_the_notebook(writer):
    models = [copy.deepcopy(writer) for _ in range(2)]
    next(lab.reinforce(models[0], 1, 5))
    adam = torch.optim.Adam(models[1].parameters(), lr=lab.RATE)
    ids = lab.write(models[1], lab.ANSWERS, torch.Generator().manual_seed(5))
    advantages = group_advantages(torch.tensor([lab.grammatical(lab.texts(ids))]))
    words = [row[1 : row.index(2) + 1] if 2 in row else row[1:] for row in ids.tolist()]  # to eos
    log_probs = models[1](ids).log_softmax(dim=-1)  # hardly trained, it says padding, too, which does not count
    means = torch.stack(
        [
            torch.stack([log_probs[i, t, word] for t, word in enumerate(said) if word]).mean()
            for i, said in enumerate(words)
        ]
    )
    torch.testing.assert_close(lab.mean_log_prob(models[1], ids), means)
    (-advantages[0] * lab.mean_log_prob(models[1], ids)).mean().backward()
    torch.nn.utils.clip_grad_norm_(models[1].parameters(), 1.0)
    adam.step()
    for ours, theirs in zip(*(model.parameters() for model in models), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_what_is_said_of_texts_by_hand():
    good, bad = "Der Mann sah das Ufer.", "Ufer Mann."
    assert masks.is_grammatical(good) and lab.grammatical([good, bad]) == [1.0, 0.0]
    found = study.of_texts([good, bad, good, "der."])
    assert found == {"grammatical": 0.5, "distinct": 0.75, "commonest": 0.5, "words": 3.25, "text": good}


def test_the_best_of_several_is_grammatical_where_one_is(monkeypatch):
    drawn = iter([["a", "b", "c"], ["A", "b", "C"]])
    monkeypatch.setattr(lab, "write", lambda *_: None)
    monkeypatch.setattr(lab, "texts", lambda _: next(drawn))
    monkeypatch.setattr(lab, "grammatical", lambda said: [float(text.isupper()) for text in said])
    assert study.best_of(None, 2) == ["A", "b", "C"]


@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_the_perplexity_is_that_of_each_word(temperature, writer, monkeypatch):
    ids = one_stack.heldout()[:5]
    monkeypatch.setattr(one_stack, "heldout", lambda: ids)
    logits = writer(ids[:, :-1]) / temperature
    losses = [
        -logits[row, place].log_softmax(-1)[token]
        for row in range(5)
        for place, token in enumerate(ids[row, 1:].tolist())
        if token != 0
    ]
    assert study.perplexity(writer, temperature) == pytest.approx(torch.stack(losses).mean().exp().item())


def test_it_learns_from_its_own_good_texts_alone(writer, monkeypatch):
    learned = []

    def watched(model, ids):
        learned.append(ids)
        return loss_of(model, ids)

    loss_of = lab.next_word_loss
    monkeypatch.setattr(lab, "next_word_loss", watched)
    model = copy.deepcopy(writer)
    lab.learn_from_own(model, 2, 1, reward=lambda said: [float(text.startswith("D")) for text in said])
    assert len(learned) == 2 and all(ids.shape == (lab.ANSWERS, lab.LONGEST + 1) for ids in learned)
    assert all(text.startswith("D") for ids in learned for text in lab.texts(ids))
    assert not torch.equal(model.embedding.weight, writer.embedding.weight)


def test_a_look_is_what_the_study_measures(writer):
    said, right, perplexity = lab.look(writer, 0.5, 31)
    assert len(said) == 31 and right == sum(lab.grammatical(said)) / 31
    assert perplexity == pytest.approx(study.perplexity(writer, 1.0), rel=1e-5)


def test_what_is_stored_is_given_by_seed():
    assert len(lab.measured("KL 0.05", 150, "distinct")) == 3
    assert lab.measured("best of 4", 0, "perplexity") == []
    every = lab.load_results()["runs"]
    assert {run["arm"] for run in every} == set(study.ARMS) and len(every) == 3 * len(study.ARMS)
