from __future__ import annotations

import pytest
import torch
from torch import nn

import transformer_lib as tl
from factories import randomise

pytestmark = pytest.mark.fast

BATCH, SRC_LEN, TGT_LEN, D_MODEL, N_HEADS, D_FF = 5, 7, 11, 30, 3, 17


def draw(length=TGT_LEN, seed=0):
    return torch.randn(BATCH, length, D_MODEL, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def draw_memory():
    return draw(SRC_LEN, seed=1)


def memory_mask():
    lengths = torch.tensor([7, 6, 5, 3, 1])
    return (torch.arange(SRC_LEN) < lengths[:, None])[:, None, None]


def make(build, *args, **options):
    torch.manual_seed(0)
    return randomise(build(*args, **options)).double().eval()


def make_layer(**options):
    return make(tl.DecoderLayer, D_MODEL, N_HEADS, D_FF, **options)


def test_the_options_reach_the_parts():
    layer = tl.DecoderLayer(
        D_MODEL,
        N_HEADS,
        D_FF,
        dropout=0.3,
        norm_first=True,
        attention_bias=True,
        bias=False,
        activation="gelu",
        position="rotary",
    )
    assert layer.self_attention.w_o.bias is not None and layer.cross_attention.w_o.bias is not None
    assert layer.feed_forward.activation == "gelu" and layer.feed_forward.contract.bias is None
    assert isinstance(layer.self_attention.position, tl.RotaryPosition) and layer.cross_attention.position is None
    for part in ("self_attention", "cross_attention", "feed_forward"):
        residual = getattr(layer, f"{part}_residual")
        assert residual.dropout.p == 0.3 and residual.norm_first and residual.norm.bias is None


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_stack_is_its_layers_one_after_another(norm_first):
    decoder = make(tl.Decoder, 3, D_MODEL, N_HEADS, D_FF, norm_first=norm_first)
    memory, causal = draw_memory(), tl.causal_mask(TGT_LEN)
    wanted = draw()
    for layer in decoder.layers:
        wanted = layer(wanted, memory, causal, memory_mask())
    torch.testing.assert_close(decoder(draw(), memory, causal, memory_mask()), decoder.norm(wanted))
    assert isinstance(decoder.norm, tl.LayerNorm if norm_first else nn.Identity)


@pytest.mark.parametrize(
    ("norm_first", "final_norm", "kind"), [(False, True, tl.LayerNorm), (True, False, nn.Identity)]
)
def test_the_final_norm_can_be_chosen(norm_first, final_norm, kind):
    decoder = tl.Decoder(1, D_MODEL, N_HEADS, D_FF, norm_first=norm_first, final_norm=final_norm)
    assert isinstance(decoder.norm, kind)


def test_bad_input_is_refused():
    layer, x, memory = make_layer(), draw(), draw_memory()
    with pytest.raises(ValueError, match="x must have 3 axes, got 2"):
        layer(x[0], memory)
    with pytest.raises(ValueError, match="memory must end in d_model = 30 features, got 29"):
        layer(x, memory[..., 1:])
    with pytest.raises(ValueError, match="memory must have x's batch size 5, got 4"):
        layer(x, memory[1:])
    with pytest.raises(ValueError, match="memory must not be empty"):
        layer(x, memory[:, :0])
    with pytest.raises(TypeError, match="mask must be boolean"):
        layer(x, memory, torch.zeros(TGT_LEN, TGT_LEN))
    with pytest.raises(ValueError, match="n_layers must be at least 1, got 0"):
        tl.Decoder(0, D_MODEL, N_HEADS, D_FF)
