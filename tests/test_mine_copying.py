"""`mine.copying`: two attention layers of the learner's functions compute, learn and are cut as the library's."""

from __future__ import annotations

import inspect
import math

import pytest
import torch

import transformer_lib as tl
from exercise_styles_21 import induction_score
from transformer_lib.course import mine
from transformer_lib.course.lab import copying
from transformer_lib.course.mine.in_context import USED, CopierParts, MyCopier


def project(X, W_Q, W_K, W_V):
    return X @ W_Q, X @ W_K, X @ W_V


def masked_attention(query, key, value, mask):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
    return weights @ value, weights


def causal_mask(seq_len):
    return torch.tensor([[j <= i for j in range(seq_len)] for i in range(seq_len)])


def split_heads(x, n_heads):
    batch, seq_len, width = x.shape
    return x.view(batch, seq_len, n_heads, width // n_heads).permute(0, 2, 1, 3)


def merge_heads(x):
    return x.permute(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


def ablate_head(heads, head):
    new = heads.clone()
    new[:, head] = heads[:, head].mean(dim=(0, 1))
    return new


THEIRS = (project, masked_attention, causal_mask, split_heads, merge_heads, induction_score, ablate_head)


def batch(seed=0):
    return copying.batch(5, torch.Generator().manual_seed(seed), [13])


def copier(n_heads=2, parts=()):
    return MyCopier(copying.new_model(2, n_heads, seed=3), CopierParts({one.__name__: one for one in parts}))


@pytest.mark.parametrize("parts", [(), THEIRS])
def test_logits_and_gradients_are_the_librarys(parts):
    own, (ids, periods) = copier(parts=parts).double(), batch()
    wanted = own.weights(ids)
    torch.testing.assert_close(own(ids), wanted, rtol=0, atol=1e-12)
    losses = (copying.repeat_loss(logits, ids, periods) for logits in (own(ids), wanted))
    parameters = list(own.parameters())
    for one, other in zip(*(torch.autograd.grad(loss, parameters) for loss in losses), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("parts", [(), THEIRS])
def test_a_head_is_replaced_by_its_mean(parts):
    own, (ids, _) = copier(parts=parts), batch()
    with torch.no_grad():
        before = own(ids)
        for layer in (0, 1):
            for head in (0, 1):
                with tl.circuits.ablate_head(own.weights, layer, head, how="mean"):
                    wanted = own.weights(ids)
                with own.without(layer, head):
                    torch.testing.assert_close(own(ids), wanted, rtol=1e-4, atol=1e-5)
                assert (wanted - before).abs().max() > 1e-3
        torch.testing.assert_close(own(ids), before, rtol=0, atol=0)


@pytest.mark.parametrize("parts", [(), THEIRS])
def test_scores_are_those_of_the_heads(parts):
    own, (ids, _) = copier(parts=parts), batch()
    for found, weights in zip(own.scores(ids, 13), tl.circuits.trace(own.weights, ids).weights, strict=True):
        torch.testing.assert_close(torch.tensor(found), tl.circuits.induction_score(weights, 13))


def test_it_takes_what_is_kept_and_says_so():
    assert mine.copying(0).whose.startswith("All 9 functions are the library's")
    for function in THEIRS[1:3]:
        mine.keep(function.__name__, function)
    own = mine.copying(0)
    assert own.whose == "2 of 9 functions are yours: masked_attention, causal_mask."
    assert mine.copying(0, parts=["causal_mask"]).whose == "1 of 9 functions is yours: causal_mask."
    with pytest.raises(ValueError, match="parts must be among yours, masked_attention, causal_mask, got softmax"):
        mine.copying(0, parts=["softmax"])


def test_each_function_is_asked():
    own, called = copier(), set()
    for name in USED:
        function = getattr(own.parts, name)
        setattr(own.parts, name, lambda *args, f=function, n=name: (called.add(n), f(*args))[1])
    with own.without(1, 0):
        own.scores(batch()[0], 13)
    assert called == set(USED)


def test_it_learns():
    own = mine.copying(3)
    fresh = copying.new_model(2, 1, seed=0)
    before = fresh.embedding.weight.detach().clone()
    copying.fit(fresh, 3, seed=0)
    assert (fresh.embedding.weight - before).abs().max() > 1e-4
    for one, other in zip(own.weights.parameters(), fresh.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_it_writes_the_likeliest_letters():
    own = copier()
    written = own.write("abcabc", 4)
    text = "abcabc"
    for letter in written:
        ids = torch.tensor([[ord(each) - ord("a") for each in text]])
        assert letter == chr(ord("a") + int(own.weights(ids)[0, -1].argmax()))
        text += letter
    assert len(written) == 4


def test_what_does_not_fit_is_refused():
    own = copier()
    with pytest.raises(ValueError, match="text must have letters from a to z alone, got 'A b'"):
        own.write("A b", 2)
    with pytest.raises(ValueError, match="text and count must be at most 32 together, got 33"):
        own.write("abc", 30)
    for place, message in (((2, 0), "layer must be less than 2, got 2"), ((0, 2), "head must be less than 2, got 2")):
        with pytest.raises(ValueError, match=message), own.without(*place):
            pass
    for options in ({"norm_first": True}, {"position": "rotary"}):
        model = tl.circuits.AttentionOnly(26, 2, 16, 2, max_len=32, **options)
        with pytest.raises(ValueError, match="model must have no norms, and positions that are added"):
            MyCopier(model, CopierParts({}))


def biased(model):
    model.layers[1] = tl.MultiHeadAttention(16, 2, bias=True)


def dropping_weights(model):
    model.layers[0].dropout = 0.1


def normed(model):
    model.norms[1] = tl.LayerNorm(16)


@pytest.mark.parametrize("change", [biased, dropping_weights, normed])
def test_a_model_that_was_changed_is_refused(change):
    model = tl.circuits.AttentionOnly(26, 2, 16, 2, max_len=32)
    change(model)
    with pytest.raises(
        ValueError, match="model must have no norms, .* and neither biases nor dropout in its attention"
    ):
        MyCopier(model, CopierParts({}))


def test_the_parts_of_the_notebook_have_their_signatures():
    parts = {part.name: part.arguments for part in mine.PARTS if part.notebook == "21"}
    assert parts == {one.__name__: tuple(inspect.signature(one).parameters) for one in (induction_score, ablate_head)}
