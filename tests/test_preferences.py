"""Losses from judgements: by hand in loops and against autograd of formulas that are written out, in float64."""

from __future__ import annotations

import math

import pytest
import torch

import transformer_lib as tl
from factories import default_dtype, random_ids, randomise

pytestmark = pytest.mark.fast

BATCH, LENGTH, VOCABULARY = 5, 7, 23
CONFIG = tl.modern.Config(vocab_size=VOCABULARY, d_model=20, n_heads=5, n_layers=2, d_ff=17, n_kv_heads=1)


def writer(seed=0):
    torch.manual_seed(seed)
    with default_dtype(torch.float64):
        return randomise(tl.modern.LanguageModel(CONFIG)).eval()


def draw(*shape, seed=0):
    numbers = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return numbers.requires_grad_()


def answers_mask():
    """Row i: a prompt of i + 1 tokens, an answer, and padding from token 6 on in odd rows."""
    mask = torch.ones(BATCH, LENGTH, dtype=torch.bool)
    for row in range(BATCH):
        mask[row, : row + 1] = False
        if row % 2:
            mask[row, 6:] = False
    return mask


# Log probabilities ------------------------------------------------------------------------------------------


def test_log_probabilities_are_those_of_the_masked_tokens():
    model, ids, mask = writer(), random_ids(VOCABULARY, BATCH, LENGTH), answers_mask()
    found = tl.preferences.token_log_probs(model, ids, mask)
    assert found.shape == (BATCH, LENGTH)
    for row in range(BATCH):
        for t in range(LENGTH):
            wanted = (
                model(ids[row : row + 1, :t])[0, -1].log_softmax(-1)[ids[row, t]] if mask[row, t] else torch.zeros(())
            )
            torch.testing.assert_close(found[row, t], wanted.to(found))
    torch.testing.assert_close(tl.preferences.sequence_log_probs(model, ids, mask), found.sum(dim=1))


def test_their_gradient_is_that_of_all_logits():
    ids, mask, weight = random_ids(VOCABULARY, BATCH, LENGTH), answers_mask(), draw(BATCH).detach()
    model, other = writer(), writer()
    (tl.preferences.sequence_log_probs(model, ids, mask) * weight).sum().backward()
    whole = other(ids[:, :-1]).log_softmax(-1).gather(2, ids[:, 1:, None])[..., 0]
    ((whole * mask[:, 1:]).sum(dim=1) * weight).sum().backward()
    for one, same in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one.grad, same.grad)


def test_what_it_is_given_is_checked():
    ids, mask = random_ids(VOCABULARY, BATCH, LENGTH), answers_mask()
    for given, kind, message in (
        ((tl.LanguageModel(23, 1, 20, 5, 17), ids, mask), TypeError, "model must be a tl.modern.LanguageModel"),
        ((writer(), ids, mask.logical_not()), ValueError, "counted must be False in its first column"),
        ((writer(), ids, mask.long()), TypeError, "counted must be boolean"),
        ((writer(), ids + 20, mask), ValueError, r"ids must hold ids in \[0, 23\)"),
    ):
        with pytest.raises(kind, match=message):
            tl.preferences.token_log_probs(*given)


# Pairs ------------------------------------------------------------------------------------------------------


def test_dpo_by_hand():
    # margin: (−1 − −2) − (−4 − −3) = 2, and with β = .5 the loss is log(1 + e^−1)
    values = [torch.tensor([value]) for value in (-1.0, -4.0, -2.0, -3.0)]
    assert tl.preferences.dpo_loss(*values, beta=0.5).item() == pytest.approx(math.log(1 + math.exp(-1)))
    same = torch.tensor([-3.0, -50.0])
    assert tl.preferences.dpo_loss(same, same - 7, same, same - 7).item() == pytest.approx(math.log(2))


def test_the_gradient_of_dpo_is_that_of_equation_7():
    ours, theirs = ([draw(BATCH, seed=seed) for seed in range(4)] for _ in range(2))
    loss = tl.preferences.dpo_loss(*ours, beta=0.3)
    chosen, rejected, reference_chosen, reference_rejected = theirs
    ratio_chosen, ratio_rejected = chosen.exp() / reference_chosen.exp(), rejected.exp() / reference_rejected.exp()
    wanted = (
        sum(
            -(1 / (1 + (-0.3 * (a.log() - b.log())).exp())).log()
            for a, b in zip(ratio_chosen, ratio_rejected, strict=True)
        )
        / BATCH
    )
    torch.testing.assert_close(loss, wanted)
    for one, same in zip(torch.autograd.grad(loss, ours), torch.autograd.grad(wanted, theirs), strict=True):
        torch.testing.assert_close(one, same)


def test_dpo_is_finite_far_away():
    far = torch.tensor([-1e4], requires_grad=True)
    loss = tl.preferences.dpo_loss(far, torch.zeros(1), torch.zeros(1), torch.zeros(1), beta=1.0)
    assert loss.item() == 1e4 and torch.autograd.grad(loss, far)[0].item() == -1


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (((5,), (5,), (5,), (4,)), {}, r"reference_rejected must have the shape of chosen \(5,\), got \(4,\)"),
        (((5, 1), (5, 1), (5, 1), (5, 1)), {}, "chosen must have 1 axes"),
        (((5,), (5,), (5,), (5,)), {"beta": 0.0}, "beta must be positive"),
    ],
)
def test_dpo_refuses(values, options, message):
    with pytest.raises(ValueError, match=message):
        tl.preferences.dpo_loss(*(draw(*shape) for shape in values), **options)


# Rewards ----------------------------------------------------------------------------------------------------


def test_advantages_by_hand():
    rewards = torch.tensor([[1.0, 0.0, 0.0, 1.0], [3.0, 3.0, 3.0, 3.0], [5.0, 1.0, 1.0, 1.0]], dtype=torch.float64)
    found = tl.preferences.group_advantages(rewards, eps=0.0)[[0, 2]]
    assert found.tolist() == [
        pytest.approx([0.5 * 3**0.5, -0.5 * 3**0.5, -0.5 * 3**0.5, 0.5 * 3**0.5]),
        [1.5, -0.5, -0.5, -0.5],
    ]
    assert tl.preferences.group_advantages(rewards)[1].tolist() == [0, 0, 0, 0]
    assert tl.preferences.group_advantages(1e3 * rewards)[0, 0].item() == pytest.approx(0.5 * 3**0.5, rel=1e-5)


@pytest.mark.parametrize(
    ("rewards", "kind", "message"),
    [
        (torch.ones(5), ValueError, "rewards must have 2 axes"),
        (torch.ones(5, 1), ValueError, "rewards must have at least 2 answers in a group"),
        (torch.ones(5, 2).bool(), TypeError, "rewards must hold floating-point numbers"),
    ],
)
def test_advantages_refuse(rewards, kind, message):
    with pytest.raises(kind, match=message):
        tl.preferences.group_advantages(rewards)


def test_the_estimate_is_of_one_divergence_and_its_gradient_of_the_other():
    scores, reference = draw(VOCABULARY, seed=1), draw(VOCABULARY, seed=2).detach().log_softmax(-1)
    log_p = scores.log_softmax(-1)
    each = tl.preferences.kl_estimate(log_p, reference)
    assert (each >= 0).all() and not tl.preferences.kl_estimate(log_p, log_p).any()
    p, q = log_p.detach().exp(), reference.exp()
    torch.testing.assert_close((p * each).sum(), (log_p.exp() * (log_p - reference)).sum())
    (one,) = torch.autograd.grad((p * each).sum(), scores, retain_graph=True)
    (other,) = torch.autograd.grad((q * (reference - log_p)).sum(), scores)
    torch.testing.assert_close(one, other)


def grpo_by_hand(log_probs, advantages, mask, old, reference, beta, clip):
    rows = []
    for row in range(BATCH):
        tokens = []
        for t in range(LENGTH):
            if mask[row, t]:
                ratio = log_probs[row, t].exp() / old[row, t].exp()
                gain = ratio * advantages[row]
                if clip is not None:
                    bound = 1 + clip if advantages[row] > 0 else 1 - clip
                    past = ratio > bound if advantages[row] > 0 else ratio < bound
                    gain = bound * advantages[row] if past else gain
                apart = reference[row, t].exp() / log_probs[row, t].exp()
                tokens.append(gain - beta * (apart - apart.log() - 1))
        rows.append(sum(tokens) / len(tokens))
    return -sum(rows) / BATCH


@pytest.mark.parametrize("clip", [None, 0.2])
@pytest.mark.parametrize("beta", [0.0, 0.3])
def test_grpo_and_its_gradient_by_hand(clip, beta):
    log_probs, other = draw(BATCH, LENGTH, seed=1), draw(BATCH, LENGTH, seed=1)
    old, reference = (draw(BATCH, LENGTH, seed=seed).detach() for seed in (2, 3))
    advantages, mask = draw(BATCH, seed=4).detach(), answers_mask()
    assert 0 < (advantages > 0).sum() < BATCH
    loss = tl.preferences.grpo_loss(log_probs, advantages, mask, old=old, reference=reference, beta=beta, clip=clip)
    wanted = grpo_by_hand(other, advantages, mask, old, reference, beta, clip)
    torch.testing.assert_close(loss, wanted)
    found, same = torch.autograd.grad(loss, log_probs)[0], torch.autograd.grad(wanted, other)[0]
    torch.testing.assert_close(found, same)
    assert not found[~mask].any()


def test_the_plain_policy_gradient_is_a_special_case():
    log_probs, advantages, mask = draw(BATCH, LENGTH), draw(BATCH, seed=1).detach(), answers_mask()
    loss = tl.preferences.grpo_loss(log_probs, advantages, mask)
    (found,) = torch.autograd.grad(loss, log_probs)
    plain = -(advantages[:, None] * log_probs * mask / mask.sum(dim=1, keepdim=True)).sum() / BATCH
    torch.testing.assert_close(found, torch.autograd.grad(plain, log_probs)[0])
    torch.testing.assert_close(loss, -advantages.mean())


def test_it_raises_the_probability_of_what_is_rewarded():
    model, ids, mask = writer(), random_ids(VOCABULARY, BATCH, LENGTH), answers_mask()
    rewards = torch.tensor([[1.0, 0.0, 0.0, 1.0, 0.0]])
    before = tl.preferences.sequence_log_probs(model, ids, mask).detach()
    adam = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(5):
        log_probs = tl.preferences.token_log_probs(model, ids, mask)
        loss = tl.preferences.grpo_loss(log_probs, tl.preferences.group_advantages(rewards)[0], mask)
        adam.zero_grad()
        loss.backward()
        adam.step()
    change = tl.preferences.sequence_log_probs(model, ids, mask).detach() - before
    assert ((change > 0) == (rewards[0] > 0)).all()


GOOD = {"log_probs": (BATCH, LENGTH), "advantages": (BATCH,)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"advantages": draw(BATCH, 1)}, r"advantages must have shape \(5,\), got \(5, 1\)"),
        ({"mask": answers_mask()[:, 1:]}, r"mask must have the shape of log_probs \(5, 7\), got \(5, 6\)"),
        ({"old": draw(BATCH)}, "old must have the shape of log_probs"),
        ({"reference": draw(BATCH, 1)}, "reference must have the shape of log_probs"),
        ({"beta": 0.1}, r"reference must be given with beta = 0\.1"),
        ({"beta": -0.1, "reference": draw(BATCH, LENGTH)}, "beta must be at least 0"),
        ({"clip": 0.0}, "clip must be positive"),
        ({"mask": torch.zeros(BATCH, LENGTH, dtype=torch.bool)}, "mask must be True for a token in every row"),
    ],
)
def test_grpo_refuses(change, message):
    given = {name: draw(*shape) for name, shape in GOOD.items()} | {"mask": answers_mask()} | change
    with pytest.raises(ValueError, match=message):
        tl.preferences.grpo_loss(**given)
