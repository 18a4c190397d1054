"""The fast training pass gives the readable one's numbers, and takes only the models it computes rightly."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import transformer_lib as tl
from factories import BATCH, POSITIONS, make_model, random_ids
from transformer_lib.baselines import GRUTranslator, SelfOnlyTransformer
from transformer_lib.fast import forward as fast
from transformer_lib.fast.head_loss import head_loss
from transformer_lib.model import multihead

pytestmark = pytest.mark.fast

EXACT = {"rtol": 0, "atol": 1e-11}


def batch(gaps=False):
    """Source and target ids with padding behind, and with `gaps` also inside; targets begin with bos."""
    src, tgt = random_ids(23, BATCH, 7, padded=True), random_ids(29, BATCH, 12, seed=1, padded=True)
    tgt[:, 0] = 1
    if gaps:
        src[0, 2] = tgt[0, 4] = tgt[2, 5] = 0
    return src, tgt


def both_ways(model, src, tgt, smoothing=0.1):
    """(loss, gradients) of the fast pass and of the readable one."""
    tgt_in, tgt_out = tl.shift_right(tgt)
    counted = tgt_out != 0
    states = fast.decoder_states(model, src, tgt_in, counted)
    quick = head_loss(states, model.output_head.weight, tgt_out[counted], label_smoothing=smoothing) / counted.sum()
    plain = tl.translation_loss(model(src, tgt_in), tgt_out, pad_id=0, label_smoothing=smoothing)
    weights = list(model.parameters())
    return [(loss.detach(), torch.autograd.grad(loss, weights, allow_unused=True)) for loss in (quick, plain)]


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("position", POSITIONS)
def test_loss_and_gradients_equal_the_readable_ones(position, norm_first, gaps):
    model = make_model(position=position, norm_first=norm_first, dtype=torch.float64)
    quick, plain = both_ways(model, *batch(gaps))
    torch.testing.assert_close(quick, plain, **EXACT)
    assert all(gradient.abs().max() > 1e-6 for gradient in plain[1])


def test_so_they_do_with_gelu():
    model = make_model(dtype=torch.float64)
    for layer in (*model.encoder.layers, *model.decoder.layers):
        layer.feed_forward.activation = "gelu"
    assert fast.applies_to(model)
    quick, plain = both_ways(model, *batch())
    torch.testing.assert_close(quick, plain, **EXACT)


def test_every_weight_gets_a_gradient_where_all_sources_are_empty():
    """In a group of processes the others wait for it."""
    model, (src, tgt) = make_model(), batch()
    tl.TrainingLoss(model)(torch.zeros_like(src), tgt).backward()
    assert all(weight.grad is not None for weight in model.parameters())


@pytest.mark.parametrize("position", ["sinusoidal", "rotary", "relative"])
def test_so_they_do_where_keys_are_many_for_narrow_heads(position, attended):
    """With d_k = 2, 7 × 7 weights are fewer than the entries of q, k, v and output; 11 × 11 and 11 × 7 are more."""
    model = make_model(n_heads=15, position=position, dtype=torch.float64)
    quick, plain = both_ways(model, *batch())
    torch.testing.assert_close(quick, plain, **EXACT)
    assert attended[:6] == ["short"] * 2 + ["fused"] * 4  # encoder, decoder


@pytest.fixture
def attended(monkeypatch):
    """Which way each attention of the fast pass went."""
    ways = []
    for module, name, way in ((fast, "short_attention", "short"), (multihead, "fused_attention", "fused")):
        monkeypatch.setattr(module, name, noting(ways, way, getattr(module, name)))
    return ways


def noting(ways, way, function):
    def noted(*args, **options):
        ways.append(way)
        return function(*args, **options)

    return noted


def ways_of(model, src, tgt, attended):
    attended.clear()
    fast.decoder_states(model, src, tgt[:, :-1], tgt[:, 1:] != 0)
    return list(attended)


def test_who_takes_short_attention(attended):
    model, (src, tgt) = make_model(), batch()
    assert ways_of(model, src, tgt, attended) == ["short"] * 6
    with torch.autocast("cpu", torch.bfloat16):  # it would round the scores
        assert ways_of(model, src, tgt, attended) == ["fused"] * 6
    assert ways_of(make_model(dtype=torch.bfloat16), src, tgt, attended) == ["fused"] * 6
    model.decoder.layers[0].self_attention.dropout = 0.1
    assert ways_of(model, src, tgt, attended) == ["short"] * 2 + ["fused"] + ["short"] * 3
    src[1] = 0  # its queries see nothing
    assert ways_of(make_model(), src, tgt, attended) == ["fused"] * 2 + ["short", "fused"] * 2


def test_tied_embeddings_get_the_gradients_of_all_three_uses():
    model = make_model(tie_embeddings=True, tgt_vocab_size=23, dtype=torch.float64)
    src, tgt = batch()
    quick, plain = both_ways(model, src, tgt.clamp(max=22))
    torch.testing.assert_close(quick, plain, **EXACT)


def test_a_source_of_padding_alone_makes_no_nan():
    model = make_model(dtype=torch.float64)
    src, tgt = batch()
    src[1] = 0
    quick, plain = both_ways(model, src, tgt)
    torch.testing.assert_close(quick, plain, **EXACT)
    assert all(gradient.isfinite().all() for gradient in quick[1])


def test_only_the_counted_positions_come_back():
    model, (src, tgt) = make_model(dtype=torch.float64), batch()
    tgt_in = tgt[:, :-1]
    counted = torch.zeros(tgt_in.shape, dtype=torch.bool)
    counted[1, 3] = counted[3, 0] = counted[3, 6] = True
    states = []
    hook = model.output_head.register_forward_pre_hook(lambda module, args: states.append(args[0]))
    model(src, tgt_in)
    hook.remove()
    torch.testing.assert_close(fast.decoder_states(model, src, tgt_in, counted), states[0][counted], **EXACT)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_drops_that_share_and_scales_the_rest(p):
    torch.manual_seed(0)
    x = torch.ones(211, 977, requires_grad=True)
    y = fast._drop(nn.Dropout(p), x)
    assert (y == 0).double().mean().item() == pytest.approx(p, abs=0.005)
    torch.testing.assert_close(y[y != 0], torch.full_like(y[y != 0], 1 / (1 - p)), rtol=1e-4, atol=0)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_nothing_or_everything_is_dropped(p):
    x = torch.ones(3, 5)
    assert torch.equal(fast._drop(nn.Dropout(p), x), (1 - p) * x)


def test_dropout_acts_in_training_only():
    model, (src, tgt) = make_model(dropout=0.2), batch()
    counted = tgt[:, 1:] != 0
    still = fast.decoder_states(model, src, tgt[:, :-1], counted)
    model.train()
    first, second = (fast.decoder_states(model, src, tgt[:, :-1], counted) for _ in range(2))
    assert not torch.equal(first, second) and not torch.equal(first, still)


def test_it_applies_to_a_plain_transformer_only():
    model = make_model()
    assert fast.applies_to(model) and fast.applies_to(copy.deepcopy(model))
    assert fast.applies_to(make_model(position="rotary")) and fast.applies_to(make_model(norm_first=True))
    assert not fast.applies_to(SelfOnlyTransformer(model.config))
    assert not fast.applies_to(GRUTranslator(model.config, 8))


class Doubled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


def replaced_part(model):
    model.decoder.layers[1].feed_forward.expand = Doubled(30, 17)


def replaced_method(model):
    model.encoder.layers[0].self_attention.w_v.forward = lambda x: x


def replaced_mask(model):
    model.tgt_mask = lambda tgt_so_far, q_len: None


def hooked(model):
    model.decoder.layers[0].cross_attention.w_o.register_forward_hook(lambda *_: None)


def hooked_before(model):
    model.encoder.register_forward_pre_hook(lambda *_: None)


def biased(model):
    model.encoder.layers[0].self_attention = tl.MultiHeadAttention(30, 3, bias=True)


def biased_head(model):
    model.output_head = nn.Linear(30, 29)


def biased_values(model):
    model.decoder.layers[1].self_attention.w_v = nn.Linear(30, 30)


def no_norm(model):
    model.encoder.layers[0].feed_forward_residual.norm = nn.Identity()


def no_dropout(model):
    model.dropout = nn.Identity()


def other_heads(model):
    model.decoder.layers[0].self_attention = tl.MultiHeadAttention(30, 5)


def watched_backward(model):
    model.decoder.layers[0].self_attention.register_full_backward_hook(lambda *_: None)


def watched_before_backward(model):
    model.decoder.layers[0].self_attention.register_full_backward_pre_hook(lambda *_: None)


def compiled(model):
    model.compile()


CHANGES = [
    replaced_part,
    replaced_method,
    replaced_mask,
    hooked,
    hooked_before,
    biased,
    biased_head,
    biased_values,
    no_norm,
    no_dropout,
    other_heads,
    watched_backward,
    watched_before_backward,
    pytest.param(compiled, marks=pytest.mark.filterwarnings("ignore::DeprecationWarning")),  # within torch
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_model_takes_the_readable_path(change):
    model = make_model()
    change(model)
    assert not fast.applies_to(model)


def test_a_recorded_model_takes_the_readable_path():
    model = make_model()
    with tl.record_attention(model):
        assert not fast.applies_to(model)
    assert fast.applies_to(model)


def test_bad_ids_are_named():
    model, (src, tgt) = make_model(), batch()
    counted = tgt != 0
    with pytest.raises(ValueError, match=r"src must hold ids in \[0, 23\)"):
        fast.decoder_states(model, src + 23, tgt, counted)
    with pytest.raises(ValueError, match=r"tgt_in must hold ids in \[0, 29\)"):
        fast.decoder_states(model, src, tgt + 29, counted)
