"""The reference against PyTorch's own functions, so that what the other tests lean on is itself right."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from transformer_lib import numpy_reference as ref

pytestmark = pytest.mark.fast

RNG = np.random.default_rng(0)
TIGHT = {"rtol": 0, "atol": 1e-10}


def test_softmax():
    x = RNG.normal(size=(2, 3, 5)) * 10
    np.testing.assert_allclose(ref.softmax(x), torch.tensor(x).softmax(-1).numpy(), **TIGHT)
    np.testing.assert_allclose(ref.softmax(x, axis=1), torch.tensor(x).softmax(1).numpy(), **TIGHT)
    np.testing.assert_allclose(ref.softmax(np.array([1e4, 1e4])), [0.5, 0.5], **TIGHT)


@pytest.mark.parametrize("masked", [False, True])
def test_attention(masked):
    query, key, value = (RNG.normal(size=(2, 3, n, d)) for n, d in ((5, 7), (11, 7), (11, 13)))
    mask = RNG.random((2, 1, 5, 11)) > 0.5
    mask[..., 0] = True
    output, weights = ref.attention(query, key, value, mask if masked else None)
    tensors = [torch.tensor(x) for x in (query, key, value)]
    wanted = F.scaled_dot_product_attention(*tensors, attn_mask=torch.tensor(mask) if masked else None)
    np.testing.assert_allclose(output, wanted.numpy(), **TIGHT)
    np.testing.assert_allclose(weights.sum(axis=-1), np.ones((2, 3, 5)), **TIGHT)
    np.testing.assert_allclose(weights @ value, output, **TIGHT)


def test_attention_that_sees_nothing():
    query, key, value = RNG.normal(size=(3, 7)), RNG.normal(size=(5, 7)), RNG.normal(size=(5, 2))
    mask = np.ones((3, 5), dtype=bool)
    mask[1] = False
    output, weights = ref.attention(query, key, value, mask)
    assert not weights[1].any() and not output[1].any() and weights[[0, 2]].all()


def test_sinusoidal_encoding():
    table = ref.sinusoidal_encoding(5, 6)
    assert table.shape == (5, 6)
    np.testing.assert_allclose(table[:, 0], np.sin(np.arange(5)), **TIGHT)
    np.testing.assert_allclose(table[:, 1], np.cos(np.arange(5)), **TIGHT)
    np.testing.assert_allclose(table[3, 4:], [np.sin(3 / 10000 ** (2 / 3)), np.cos(3 / 10000 ** (2 / 3))], **TIGHT)


def test_layer_norm():
    x, weight, bias = RNG.normal(size=(2, 3, 7)), RNG.normal(size=7), RNG.normal(size=7)
    wanted = F.layer_norm(*(torch.tensor(x), (7,), torch.tensor(weight), torch.tensor(bias)), eps=0.1)
    np.testing.assert_allclose(ref.layer_norm(x, weight, bias, eps=0.1), wanted.numpy(), **TIGHT)


def test_feed_forward():
    x, w_1, b_1, w_2, b_2 = (RNG.normal(size=shape) for shape in ((2, 3, 5), (5, 11), (11,), (11, 5), (5,)))
    t = [torch.tensor(a) for a in (x, w_1, b_1, w_2, b_2)]
    wanted = F.linear(F.relu(F.linear(t[0], t[1].T, t[2])), t[3].T, t[4])
    np.testing.assert_allclose(ref.feed_forward(x, w_1, b_1, w_2, b_2), wanted.numpy(), **TIGHT)


@pytest.mark.parametrize("masked", [False, True])
def test_multi_head_attention(masked):
    torch.manual_seed(0)
    theirs = torch.nn.MultiheadAttention(15, 3, bias=False, batch_first=True).double()
    query, memory = torch.randn(2, 5, 15).double(), torch.randn(2, 7, 15).double()
    seen = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])
    weights = [w.detach().numpy().T for w in (*theirs.in_proj_weight.chunk(3), theirs.out_proj.weight)]
    output = ref.multi_head_attention(
        query.numpy(), memory.numpy(), memory.numpy(), *weights, 3, seen[:, None, None].numpy() if masked else None
    )
    wanted = theirs(query, memory, memory, key_padding_mask=~seen if masked else None)[0]
    np.testing.assert_allclose(output, wanted.detach().numpy(), **TIGHT)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
def test_label_smoothed_loss(smoothing):
    logits, labels = RNG.normal(size=(3, 5, 7)), RNG.integers(0, 7, size=(3, 5))
    labels[0, 3:] = 6
    wanted = F.cross_entropy(
        torch.tensor(logits).flatten(0, 1), torch.tensor(labels).flatten(), ignore_index=6, label_smoothing=smoothing
    )
    assert ref.label_smoothed_loss(logits, labels, 6, smoothing) == pytest.approx(float(wanted), abs=1e-10)


def test_label_smoothed_loss_by_hand():
    logits = np.log([[[0.5, 0.25, 0.25]]])
    # ε = 0.3 over three tokens: 0.8 on the label, 0.1 on each of the others.
    wanted = -(0.8 * np.log(0.5) + 0.1 * np.log(0.25) * 2)
    assert ref.label_smoothed_loss(logits, np.array([[0]]), pad_id=1, smoothing=0.3) == pytest.approx(wanted)


def test_numbers_in_16_bits_are_widened():
    """(60 · 60) · 64 and 300² are more than float16 can hold."""
    query, key = np.full((3, 64), 60, dtype=np.float16), np.full((5, 64), 60, dtype=np.float16)
    key[1:3] *= -1
    value = RNG.normal(size=(5, 2)).astype(np.float16)
    output, weights = ref.attention(query, key, value)
    np.testing.assert_allclose(weights, np.tile([1 / 3, 0, 0, 1 / 3, 1 / 3], (3, 1)), rtol=1e-6)
    np.testing.assert_allclose(output, np.tile(value[[0, 3, 4]].astype(float).mean(axis=0), (3, 1)), rtol=1e-6)
    x = (300 * RNG.normal(size=(3, 64))).astype(np.float16)
    np.testing.assert_allclose(ref.standardise(x)[0], ref.standardise(x.astype(float))[0], rtol=1e-4, atol=1e-5)
    assert ref.softmax(np.zeros(3)).dtype == np.float64 and ref.softmax(np.zeros(3, np.float32)).dtype == np.float32
