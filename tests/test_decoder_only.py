"""Translation without an encoder: what may and may not change what it says, and that the library takes it."""

from __future__ import annotations

import pytest
import torch

import transformer_lib as tl
from factories import SRC_LEN, TGT_LEN, make_config, randomise
from transformer_lib.model.decoder_only import padding_first

pytestmark = pytest.mark.fast

masks = pytest.mark.parametrize("mask", ["prefix", "causal"])


def make(mask="prefix", seed=0, **changes):
    torch.manual_seed(seed)
    model = tl.DecoderOnlyTranslator(make_config(**{"position": "rotary", "norm_first": True, **changes}), mask=mask)
    return randomise(model, 2.0).double().eval()


def ids(length, batch=5, *, seed=0):
    """Ids of a batch in which each row is a word shorter than the one before."""
    found = torch.randint(3, 23, (batch, length), generator=torch.Generator().manual_seed(seed))
    return found.masked_fill(torch.arange(length) >= length - torch.arange(batch)[:, None], 0)


def pair():
    tgt = ids(TGT_LEN, seed=1)
    tgt[:, 0] = 1
    return ids(SRC_LEN), tgt


def test_padding_goes_to_the_front_and_words_keep_their_order():
    rows = torch.tensor([[5, 7, 3, 0, 0], [4, 0, 6, 0, 8], [1, 2, 3, 4, 5], [0, 0, 0, 0, 0]])
    moved = padding_first(rows, 0)
    assert moved.tolist() == [[0, 0, 5, 7, 3], [0, 0, 4, 6, 8], [1, 2, 3, 4, 5], [0, 0, 0, 0, 0]]


@masks
@pytest.mark.parametrize("position", ["rotary", "relative", "none"])
@pytest.mark.parametrize("norm_first", [True, False])
def test_padding_does_not_matter(mask, position, norm_first):
    model, (src, tgt) = make(mask, position=position, norm_first=norm_first), pair()
    logits = model(src, tgt)
    assert logits.shape == (5, TGT_LEN, 29) and logits.isfinite().all()
    wider = torch.cat([src, src.new_zeros(5, 6)], dim=1)
    torch.testing.assert_close(model(wider, tgt), logits, rtol=0, atol=1e-10)
    last = src[4:, : SRC_LEN - 4]  # the shortest, alone and without padding
    torch.testing.assert_close(model(last, tgt[4:]), logits[4:], rtol=0, atol=1e-10)


@masks
def test_the_future_does_not_matter_and_the_past_does(mask):
    model, (src, tgt) = make(mask), pair()
    logits, other = model(src, tgt), tgt.clone()
    other[:, 5] = 4 + (tgt[:, 5] == 4).long()
    changed = model(src, other)
    assert torch.equal(changed[:, :5], logits[:, :5])
    assert ((changed[:, 5:] - logits[:, 5:]).abs().amax(dim=(1, 2)) > 1e-3).all()


@pytest.mark.parametrize(("mask", "seen"), [("prefix", True), ("causal", False)])
def test_a_prefix_sees_all_of_the_source_and_a_causal_stack_what_came_before(mask, seen):
    model, src = make(mask), torch.tensor([[5, 7, 3, 9]])
    tgt, other = torch.tensor([[1, 6]]), torch.tensor([[5, 7, 3, 4]])
    states, changed = (model.states(tgt, model.encode(source), source) for source in (src, other))
    moved = (states - changed).abs().amax(dim=-1)[0] > 1e-6
    assert moved.tolist() == [seen] * 3 + [True] * 3
    assert model.attention_mask(src, tgt)[0, 0, 0].tolist() == [True] + [seen] * 3 + [False] * 2


@masks
def test_every_parameter_gets_a_gradient_that_autograd_can_check(mask):
    model, (src, tgt) = make(mask), pair()
    loss = tl.TrainingLoss(model)
    loss(src, tgt).backward()
    assert all(parameter.grad is not None and parameter.grad.abs().max() > 0 for parameter in model.parameters())
    weight = model.stack.layers[0].self_attention.w_k.weight
    step = torch.zeros_like(weight)
    step[2, 3] = 1e-5
    with torch.no_grad():
        ends = []
        for sign in (1, -1):
            weight += sign * step
            ends.append(loss(src, tgt).item())
            weight -= sign * step
    assert (ends[0] - ends[1]) / 2e-5 == pytest.approx(weight.grad[2, 3].item(), rel=1e-6)


@masks
@pytest.mark.parametrize("beam_size", [1, 3])
def test_decoding_with_a_cache_says_what_decoding_without_one_says(mask, beam_size):
    model, src = make(mask), ids(SRC_LEN)
    outcomes = []
    for use_cache in (True, False):
        options = {"max_new_tokens": 9, "use_cache": use_cache}
        if beam_size == 1:
            outcomes.append(tl.greedy_decode(model, src, **options).tolist())
        else:
            outcomes.append(tl.beam_search(model, src, beam_size=beam_size, **options).tolist())
    assert outcomes[0] == outcomes[1]


def test_a_cache_may_be_filled_in_pieces():
    model, (src, tgt) = make(), pair()
    cache, memory = model.new_cache(), model.encode(src)
    pieces = [model.decode(part, memory, src, cache=cache) for part in tgt.split([3, 1, 7], dim=1)]
    torch.testing.assert_close(torch.cat(pieces, dim=1), model(src, tgt), rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (({},), TypeError, "config must be a TransformerConfig, got dict"),
        ((make_config(position="sinusoidal"),), ValueError, "config.position must be one of 'rotary', 'relative', 'no"),
    ],
)
def test_what_it_cannot_be_made_of(arguments, error, message):
    with pytest.raises(error, match=message):
        tl.DecoderOnlyTranslator(*arguments)
    with pytest.raises(ValueError, match="mask must be one of 'prefix', 'causal', got 'full'"):
        tl.DecoderOnlyTranslator(make_config(position="none"), mask="full")


def test_what_it_cannot_read():
    model, (src, tgt) = make(), pair()
    memory = model.encode(src)
    with pytest.raises(ValueError, match=r"src must"):
        model.encode(src + 23)
    with pytest.raises(ValueError, match=r"tgt_in must"):
        model.decode(tgt + 29, memory, src)
    with pytest.raises(ValueError, match=r"memory and tgt_in must be of src \(5, 7\)"):
        model.decode(tgt, memory[:, 1:], src)
    with pytest.raises(ValueError, match=r"memory and tgt_in must be of src \(5, 7\)"):
        model.decode(tgt[1:], memory, src)
    with pytest.raises(ValueError, match="memory must"):
        model.decode(tgt, memory[..., 1:], src)
    with pytest.raises(ValueError, match='path="readable"'):
        tl.TrainingLoss(model, path="fast")
