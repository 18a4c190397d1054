"""What holds for every model: drawn sizes, positions, weights and sentences, the same ones in every run."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import transformer_lib as tl
from factories import POSITIONS, make_model, sources, targets, with_frequent_eos
from transformer_lib.model.attention import fused_attention

pytestmark = pytest.mark.fast

SRC_WORDS, TGT_WORDS, MAX_LEN = 23, 29, 37

few = settings(max_examples=15, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
many = settings(few, max_examples=40)
seeds = st.integers(0, 2**31 - 1)
paths = pytest.mark.parametrize("recorded", [False, True], ids=["fused", "explicit"])


@st.composite
def models(draw, dtype=torch.float64, positions=POSITIONS, scale=1.0):
    choices = {
        "position": draw(st.sampled_from(positions)),
        "norm_first": draw(st.booleans()),
        "n_heads": draw(st.sampled_from((1, 3, 5))),
        "n_layers": draw(st.integers(1, 2)),
    }
    return make_model(draw(seeds), scale=scale, dtype=dtype, **choices)


@st.composite
def sentences(draw, vocab_size=SRC_WORDS, max_length=13, min_length=1, padded=True):
    """Return ids [batch, length] of at most five sentences, the first of full length, each of at least one word."""
    batch, length = draw(st.integers(1, 5)), draw(st.integers(min_length, max_length))
    generator = torch.Generator().manual_seed(draw(seeds))
    ids = torch.randint(3, vocab_size, (batch, length), generator=generator)
    if padded:
        lengths = torch.randint(1, length + 1, (batch,), generator=generator)
        lengths[0] = length
        ids[torch.arange(length) >= lengths[:, None]] = 0
    return ids


def target_sentences(**options):
    return sentences(vocab_size=TGT_WORDS, padded=False, **options)


def run(model, src, tgt_in, recorded):
    """Logits through the fused kernel, or, while attention is recorded, through the explicit weights."""
    with tl.record_attention(model) if recorded else nullcontext(), torch.no_grad():
        return model(src, tgt_in)


@paths
@many
@given(data=st.data())
def test_causality(recorded, data):
    """What comes later in the target changes nothing before it, to the last bit."""
    model = data.draw(models(dtype=torch.float32))
    src, tgt_in = data.draw(sentences()), data.draw(target_sentences(min_length=2))
    src = src[:1].expand(len(tgt_in), -1)
    cut = data.draw(st.integers(1, tgt_in.shape[1] - 1))
    other = tgt_in.clone()
    # Other words, special tokens, and padding too.
    other[:, cut:] = torch.randint(0, TGT_WORDS, other[:, cut:].shape, generator=torch.Generator().manual_seed(cut))
    assert torch.equal(run(model, src, other, recorded)[:, :cut], run(model, src, tgt_in, recorded)[:, :cut])


def test_the_past_does_change_the_future():
    model, changed = make_model(), targets()
    changed[:, 3] = 3 + (changed[:, 3] - 2) % 26
    difference = (model(sources(), changed) - model(sources(), targets())).abs().amax(dim=(0, 2))
    assert not difference[:3].any() and (difference[3:] > 1e-3).all()


@paths
@many
@given(data=st.data())
def test_padding_invariance(recorded, data):
    """A sentence alone and the same sentence in a padded batch, with a padded target, give the same logits."""
    model, src = data.draw(models()), data.draw(sentences())
    tgt_in = data.draw(target_sentences())[:1].expand(len(src), -1)
    more = data.draw(st.integers(0, 5))
    padded_src = torch.nn.functional.pad(src, (0, more))
    padded_tgt = torch.nn.functional.pad(tgt_in, (0, more))
    logits = run(model, padded_src, padded_tgt, recorded)[:, : tgt_in.shape[1]]
    for i, row in enumerate(src):
        alone = run(model, row[row != 0][None], tgt_in[i : i + 1], recorded)
        torch.testing.assert_close(logits[i : i + 1], alone, rtol=0, atol=1e-10)


@many
@given(data=st.data())
def test_permutation_equivariance_without_positions(data):
    """Without positions the encoder commutes with every reordering of its input."""
    model, src = data.draw(models(positions=("none",))), data.draw(sentences())
    order = torch.randperm(src.shape[1], generator=torch.Generator().manual_seed(data.draw(seeds)))
    with torch.no_grad():
        torch.testing.assert_close(model.encode(src[:, order]), model.encode(src)[:, order], rtol=0, atol=1e-10)


@pytest.mark.parametrize("position", [kind for kind in POSITIONS if kind != "none"])
def test_positions_break_the_symmetry(position):
    model, src = make_model(position=position), sources(padded=False)
    assert (model.encode(src.flip(1)) - model.encode(src).flip(1)).abs().max() > 0.01


@few
@given(data=st.data())
def test_memory_order_does_not_matter_to_the_decoder(data):
    """Cross-attention has no positions of its own: a memory and its source may be reordered together."""
    model, src = data.draw(models()), data.draw(sentences())
    tgt_in = data.draw(target_sentences())[:1].expand(len(src), -1)
    order = torch.randperm(src.shape[1], generator=torch.Generator().manual_seed(data.draw(seeds)))
    with torch.no_grad():
        memory = model.encode(src)
        reordered = model.decode(tgt_in, memory[:, order], src[:, order])
        torch.testing.assert_close(reordered, model.decode(tgt_in, memory, src), rtol=0, atol=1e-10)


@few
@given(data=st.data())
def test_relative_kinds_depend_on_offsets_alone(data):
    """Padding in front shifts every position: rotary and relative encodings do not notice."""
    model = data.draw(models(positions=("rotary", "relative", "none")))
    src, shift = data.draw(sentences(padded=False)), data.draw(st.integers(1, 11))
    with torch.no_grad():
        shifted = model.encode(torch.nn.functional.pad(src, (shift, 0)))[:, shift:]
        torch.testing.assert_close(shifted, model.encode(src), rtol=0, atol=1e-10)


@pytest.mark.parametrize("position", ["sinusoidal", "learned"])
def test_absolute_kinds_do_notice_a_shift(position):
    model, src = make_model(position=position), sources(padded=False)
    shifted = model.encode(torch.nn.functional.pad(src, (3, 0)))[:, 3:]
    assert (shifted - model.encode(src)).abs().max() > 0.01


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("fused", [False, True], ids=["explicit", "fused"])
@many
@given(data=st.data())
def test_random_masks_give_no_nan(dtype, fused, data):
    """Whatever a mask hides, values and gradients are finite, and a row that sees nothing gives zeros."""
    q_len, k_len, d_k, d_v = (data.draw(st.integers(1, 7)) for _ in range(4))
    generator = torch.Generator().manual_seed(data.draw(seeds))
    size = data.draw(st.sampled_from((0.1, 1.0, 30.0)))
    query, key, value = (
        (torch.randn(2, 3, n, d, generator=generator) * size).to(dtype).requires_grad_()
        for n, d in ((q_len, d_k), (k_len, d_k), (k_len, d_v))
    )
    mask = torch.rand(2, 1, q_len, k_len, generator=generator) < data.draw(st.sampled_from((0.0, 0.2, 0.8)))
    if fused:
        output = fused_attention(query, key, value, mask)
    else:
        output, weights = tl.scaled_dot_product_attention(query, key, value, mask)
        sums = weights.sum(dim=-1, dtype=torch.float32)
        wanted = mask.any(dim=-1).float().expand_as(sums)
        torch.testing.assert_close(sums, wanted, rtol=0, atol=1e-6 if dtype == torch.float32 else 0.02)
    blind = ~mask.any(dim=-1).expand(2, 3, q_len)
    assert torch.equal(output[blind], torch.zeros_like(output[blind]))
    output.sum().backward()
    for tensor in (output, query.grad, key.grad, value.grad):
        assert tensor.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@paths
@few
@given(data=st.data())
def test_a_source_of_padding_alone_gives_no_nan(recorded, dtype, data):
    model, src = data.draw(models(dtype=dtype)), data.draw(sentences())
    src[data.draw(st.integers(0, len(src) - 1))] = 0
    tgt_in = data.draw(target_sentences())[:1].expand(len(src), -1)
    with tl.record_attention(model) if recorded else nullcontext():
        logits = model(src, tgt_in)
    logits.float().square().mean().backward()
    assert logits.dtype == dtype and logits.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def decoding_case(data, steps):
    src = data.draw(sentences())
    return with_frequent_eos(data.draw(models(scale=2.0)), src, steps), src


@few
@given(data=st.data())
def test_sentences_do_not_disturb_each_other(data):
    """A batch decodes as its sentences do one by one, with greedy choice and with a beam."""
    model, src = decoding_case(data, 9)
    greedy = tl.greedy_decode(model, src, max_new_tokens=9)
    ranked = tl.beam_hypotheses(model, src, beam_size=3, max_new_tokens=9)
    for i, row in enumerate(src):
        real = row[row != 0][None]
        alone = tl.greedy_decode(model, real, max_new_tokens=9)[0]
        assert torch.equal(greedy[i, : len(alone)], alone) and not greedy[i, len(alone) :].any()
        found = tl.beam_hypotheses(model, real, beam_size=3, max_new_tokens=9)[0]
        assert [h.ids for h in ranked[i]] == [h.ids for h in found]
