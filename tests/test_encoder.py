from __future__ import annotations

import pytest
import torch
from torch import nn

import transformer_lib as tl
from factories import randomise

pytestmark = pytest.mark.fast

BATCH, SEQ_LEN, D_MODEL, N_HEADS, D_FF = 5, 7, 30, 3, 17


def draw(seed=0):
    return torch.randn(BATCH, SEQ_LEN, D_MODEL, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def draw_mask():
    lengths = torch.tensor([7, 6, 5, 3, 1])
    return (torch.arange(SEQ_LEN) < lengths[:, None])[:, None, None]


def make(build, *args, **options):
    torch.manual_seed(0)
    return randomise(build(*args, **options)).double().eval()


def test_the_options_reach_the_parts():
    layer = tl.EncoderLayer(
        D_MODEL,
        N_HEADS,
        D_FF,
        dropout=0.3,
        norm_first=True,
        attention_bias=True,
        bias=False,
        activation="gelu",
        position="relative",
    )
    assert layer.self_attention.w_q.bias is not None and layer.feed_forward.expand.bias is None
    assert layer.feed_forward.activation == "gelu" and layer.self_attention.dropout == 0.0
    assert isinstance(layer.self_attention.position, tl.RelativeBias)
    for residual in (layer.self_attention_residual, layer.feed_forward_residual):
        assert residual.dropout.p == 0.3 and residual.norm_first and residual.norm.bias is None


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_stack_is_its_layers_one_after_another(norm_first):
    encoder = make(tl.Encoder, 3, D_MODEL, N_HEADS, D_FF, norm_first=norm_first)
    x, mask = draw(), draw_mask()
    wanted = x
    for layer in encoder.layers:
        wanted = layer(wanted, mask)
    wanted = encoder.norm(wanted)
    torch.testing.assert_close(encoder(x, mask), wanted)
    assert len(encoder.layers) == 3
    assert isinstance(encoder.norm, tl.LayerNorm if norm_first else nn.Identity)


@pytest.mark.parametrize(
    ("norm_first", "final_norm", "kind"),
    [(False, True, tl.LayerNorm), (True, False, nn.Identity), (True, True, tl.LayerNorm)],
)
def test_the_final_norm_can_be_chosen(norm_first, final_norm, kind):
    encoder = tl.Encoder(1, D_MODEL, N_HEADS, D_FF, norm_first=norm_first, final_norm=final_norm)
    assert isinstance(encoder.norm, kind)


def test_the_final_norm_follows_the_bias_option():
    encoder = tl.Encoder(1, D_MODEL, N_HEADS, D_FF, norm_first=True, bias=False)
    assert encoder.norm.bias is None


def test_layers_share_no_weights():
    encoder = tl.Encoder(2, D_MODEL, N_HEADS, D_FF)
    one, two = (layer.state_dict() for layer in encoder.layers)
    assert not torch.equal(one["feed_forward.expand.weight"], two["feed_forward.expand.weight"])
    assert len({p.data_ptr() for p in encoder.parameters()}) == 2 * len(one)


def test_masked_tokens_do_not_matter_to_the_others():
    encoder, x, mask = make(tl.Encoder, 2, D_MODEL, N_HEADS, D_FF), draw(), draw_mask()
    real = mask[:, 0, 0]
    changed = torch.where(real[..., None], x, x + 9.0)
    torch.testing.assert_close(encoder(changed, mask)[real], encoder(x, mask)[real], rtol=0, atol=0)
    assert (encoder(changed)[real] - encoder(x)[real]).abs().max() > 0.01


def test_bad_input_is_refused():
    layer = make(tl.EncoderLayer, D_MODEL, N_HEADS, D_FF)
    with pytest.raises(ValueError, match=r"x must have 3 axes, got 2: shape \(7, 30\)"):
        layer(draw()[0])
    with pytest.raises(ValueError, match="x must end in d_model = 30 features, got 29"):
        layer(draw()[..., 1:])
    with pytest.raises(ValueError, match="x must not be empty"):
        layer(draw()[:0])
    with pytest.raises(TypeError, match="mask must be boolean"):
        layer(draw(), draw_mask().double())
    with pytest.raises(ValueError, match="n_layers must be at least 1, got 0"):
        tl.Encoder(0, D_MODEL, N_HEADS, D_FF)
    with pytest.raises(ValueError, match="d_model must be divisible by n_heads"):
        tl.EncoderLayer(31, N_HEADS, D_FF)


def test_an_unknown_position_is_refused():
    with pytest.raises(ValueError, match="position must be one of 'rotary', 'relative', 'none', got 'rotray'"):
        tl.EncoderLayer(30, 3, 17, position="rotray")


def test_flags_are_flags():
    with pytest.raises(TypeError, match="norm_first must be True or False, got 'no'"):
        tl.EncoderLayer(30, 3, 17, norm_first="no")
    with pytest.raises(TypeError, match="position must be a RotaryPosition or a RelativeBias, got 'rotary'"):
        tl.MultiHeadAttention(30, 3, position="rotary")
