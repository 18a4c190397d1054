from __future__ import annotations

import pytest
import torch
from torch import nn

import transformer_lib as tl
from factories import randomise
from transformer_lib.model import interop

pytestmark = pytest.mark.fast

BATCH, SRC_LEN, TGT_LEN = 5, 7, 11
SIZES = [(30, 3, 17), (14, 1, 5), (22, 11, 37)]  # d_model, n_heads, d_ff
ATOL = {torch.float32: 1e-5, torch.float64: 1e-10}

dtypes = pytest.mark.parametrize("dtype", ATOL, ids=["float32", "float64"])
sizes = pytest.mark.parametrize("size", SIZES, ids=str)
biases = pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
norms = pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])


def draw(length, d_model, dtype, seed=0):
    x = torch.randn(BATCH, length, d_model, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return x.to(dtype).requires_grad_()


def seen(length):
    """Real tokens, our convention: sentence i is i words shorter than the first."""
    return torch.arange(length) < length - torch.arange(BATCH)[:, None]


def randomised(module, dtype):
    torch.manual_seed(0)
    return randomise(module).to(dtype)


def attention_parameters(ours, theirs):
    """[(our parameters, the one of PyTorch's that they are slices of)]"""
    projections = (ours.w_q, ours.w_k, ours.w_v)
    pairs = [([p.weight for p in projections], theirs.in_proj_weight), ([ours.w_o.weight], theirs.out_proj.weight)]
    if theirs.in_proj_bias is not None:
        pairs += [([p.bias for p in projections], theirs.in_proj_bias), ([ours.w_o.bias], theirs.out_proj.bias)]
    return pairs


def layer_parameters(ours, theirs):
    pairs = attention_parameters(ours.self_attention, theirs.self_attn)
    modules = [(ours.feed_forward.expand, theirs.linear1), (ours.feed_forward.contract, theirs.linear2)]
    if isinstance(ours, tl.DecoderLayer):
        pairs += attention_parameters(ours.cross_attention, theirs.multihead_attn)
        residuals = (ours.self_attention_residual, ours.cross_attention_residual, ours.feed_forward_residual)
        modules += zip((r.norm for r in residuals), (theirs.norm1, theirs.norm2, theirs.norm3), strict=True)
    else:
        modules += [(ours.self_attention_residual.norm, theirs.norm1), (ours.feed_forward_residual.norm, theirs.norm2)]
    return pairs + [pair for modules in modules for pair in same_parameters(*modules)]


def same_parameters(ours, theirs):
    return [([own], dict(theirs.named_parameters())[name]) for name, own in ours.named_parameters()]


def transformer_parameters(ours, theirs):
    pairs = []
    for own, other in ((ours.encoder, theirs.encoder), (ours.decoder, theirs.decoder)):
        for own_layer, other_layer in zip(own.layers, other.layers, strict=True):
            pairs += layer_parameters(own_layer, other_layer)
        pairs += same_parameters(own.norm, other.norm)
    return pairs


def check_parity(outputs, inputs, pairs, modules, atol):
    """Outputs, gradients of inputs, and gradients of every parameter, ours and PyTorch's."""
    ours, theirs = outputs
    torch.testing.assert_close(ours, theirs, rtol=0, atol=atol)
    upstream = torch.randn(ours.shape, generator=torch.Generator().manual_seed(7), dtype=torch.float64).to(ours.dtype)
    for output in outputs:
        ((output * upstream).sum() / output.numel() ** 0.5).backward()  # gradients of size one
    for own, other in zip(*inputs, strict=True):
        torch.testing.assert_close(own.grad, other.grad, rtol=0, atol=atol)
    for own, other in pairs:
        torch.testing.assert_close(torch.cat([p.grad for p in own]), other.grad, rtol=0, atol=atol)
    # No parameter was left out of the comparison.
    assert {id(p) for own, _ in pairs for p in own} == {id(p) for p in modules[0].parameters()}
    assert {id(other) for _, other in pairs} == {id(p) for p in modules[1].parameters()}


@dtypes
@sizes
@biases
@pytest.mark.parametrize("masked", [False, True], ids=["no mask", "masked"])
def test_multihead_attention(dtype, size, bias, masked):
    d_model, n_heads, _ = size
    theirs = randomised(nn.MultiheadAttention(d_model, n_heads, bias=bias, batch_first=True), dtype)
    ours = tl.interop.from_torch(theirs)
    inputs = [[draw(n, d_model, dtype, i) for i, n in enumerate((TGT_LEN, SRC_LEN, SRC_LEN))] for _ in range(2)]
    mask = seen(SRC_LEN)[:, None, None] & (torch.rand(BATCH, n_heads, TGT_LEN, SRC_LEN) > 0.3) if masked else None
    if masked:
        mask[..., 0] = True
    blocked = interop.invert_mask(mask).expand(BATCH, n_heads, TGT_LEN, SRC_LEN).flatten(0, 1) if masked else None
    output, weights = ours(*inputs[0], mask, return_weights=True)
    wanted, wanted_weights = theirs(*inputs[1], attn_mask=blocked, average_attn_weights=False)
    torch.testing.assert_close(weights, wanted_weights, rtol=0, atol=ATOL[dtype])
    torch.testing.assert_close(ours(*inputs[0], mask), wanted, rtol=0, atol=ATOL[dtype])
    check_parity((output, wanted), inputs, attention_parameters(ours, theirs), (ours, theirs), ATOL[dtype])


@dtypes
@sizes
@biases
@norms
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_encoder_layer(dtype, size, bias, norm_first, activation):
    d_model, n_heads, d_ff = size
    theirs = nn.TransformerEncoderLayer(
        d_model,
        n_heads,
        d_ff,
        dropout=0.0,
        activation=activation,
        layer_norm_eps=1e-3,
        batch_first=True,
        norm_first=norm_first,
        bias=bias,
    )
    theirs = randomised(theirs, dtype)
    ours = tl.interop.from_torch(theirs)
    inputs = [[draw(SRC_LEN, d_model, dtype)] for _ in range(2)]
    mask = seen(SRC_LEN)
    output = ours(*inputs[0], mask[:, None, None])
    wanted = theirs(*inputs[1], src_key_padding_mask=interop.invert_mask(mask))
    check_parity((output, wanted), inputs, layer_parameters(ours, theirs), (ours, theirs), ATOL[dtype])


@dtypes
@sizes
@biases
@norms
def test_decoder_layer(dtype, size, bias, norm_first):
    d_model, n_heads, d_ff = size
    theirs = nn.TransformerDecoderLayer(
        d_model, n_heads, d_ff, dropout=0.0, batch_first=True, norm_first=norm_first, bias=bias
    )
    theirs = randomised(theirs, dtype)
    ours = tl.interop.from_torch(theirs)
    inputs = [[draw(n, d_model, dtype, i) for i, n in enumerate((TGT_LEN, SRC_LEN))] for _ in range(2)]
    real, causal, in_memory = seen(TGT_LEN), tl.causal_mask(TGT_LEN), seen(SRC_LEN)
    output = ours(*inputs[0], causal & real[:, None, None], in_memory[:, None, None])
    wanted = theirs(*inputs[1], tgt_mask=~causal[0, 0], tgt_key_padding_mask=~real, memory_key_padding_mask=~in_memory)
    check_parity((output, wanted), inputs, layer_parameters(ours, theirs), (ours, theirs), ATOL[dtype])


def build_transformer(size, *, norm_first=False, bias=True, dropout=0.0):
    """Return an nn.Transformer with 2 + 3 layers; its encoder is built separately, since nested tensors would warn."""
    d_model, n_heads, d_ff = size
    options = {"dropout": dropout, "batch_first": True, "norm_first": norm_first, "bias": bias}
    layer = nn.TransformerEncoderLayer(d_model, n_heads, d_ff, **options)
    encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(d_model, bias=bias), enable_nested_tensor=False)
    return nn.Transformer(
        d_model, n_heads, num_decoder_layers=3, dim_feedforward=d_ff, custom_encoder=encoder, **options
    )


@dtypes
@sizes
@biases
@norms
def test_transformer(dtype, size, bias, norm_first):
    d_model = size[0]
    theirs = randomised(build_transformer(size, norm_first=norm_first, bias=bias), dtype)
    ours = tl.interop.from_torch(theirs)
    inputs = [[draw(n, d_model, dtype, i) for i, n in enumerate((SRC_LEN, TGT_LEN))] for _ in range(2)]
    in_src, in_tgt, causal = seen(SRC_LEN), seen(TGT_LEN), tl.causal_mask(TGT_LEN)
    output = ours(*inputs[0], in_src[:, None, None], causal & in_tgt[:, None, None], in_src[:, None, None])
    wanted = theirs(
        *inputs[1],
        tgt_mask=~causal[0, 0],
        src_key_padding_mask=~in_src,
        tgt_key_padding_mask=~in_tgt,
        memory_key_padding_mask=~in_src,
    )
    check_parity((output, wanted), inputs, transformer_parameters(ours, theirs), (ours, theirs), ATOL[dtype])


def test_without_masks_and_without_gradients():
    theirs = randomised(build_transformer(SIZES[0]), torch.float64).eval()
    ours = tl.interop.from_torch(theirs)
    src, tgt = draw(SRC_LEN, 30, torch.float64), draw(TGT_LEN, 30, torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(ours(src, tgt), theirs(src, tgt), rtol=0, atol=1e-10)


def test_stacks_without_a_final_norm():
    theirs = randomised(build_transformer(SIZES[0]), torch.float64)
    theirs.encoder.norm = theirs.decoder.norm = None
    ours = tl.interop.from_torch(theirs)
    src, tgt = draw(SRC_LEN, 30, torch.float64), draw(TGT_LEN, 30, torch.float64)
    torch.testing.assert_close(ours(src, tgt), theirs(src, tgt), rtol=0, atol=1e-10)


def test_weights_are_copies():
    theirs = nn.MultiheadAttention(30, 3)
    ours = tl.interop.from_torch(theirs)
    before = theirs.in_proj_weight.detach().clone()
    nn.init.zeros_(ours.w_q.weight)
    assert torch.equal(theirs.in_proj_weight, before)


@pytest.mark.parametrize("training", [False, True])
def test_mode_and_dropout_come_along(training):
    theirs = build_transformer(SIZES[0], dropout=0.3).train(training)
    ours = tl.interop.from_torch(theirs)
    assert all(module.training is training for module in ours.modules())
    rates = {module.p for module in ours.modules() if isinstance(module, nn.Dropout)}
    rates |= {module.dropout for module in ours.modules() if isinstance(module, tl.MultiHeadAttention)}
    assert rates == {0.3}


def test_sequence_first_weights_are_the_same():
    theirs = randomised(nn.TransformerEncoderLayer(30, 3, 17, dropout=0.0), torch.float64)
    x = draw(SRC_LEN, 30, torch.float64)
    wanted = theirs(x.transpose(0, 1)).transpose(0, 1)
    torch.testing.assert_close(tl.interop.from_torch(theirs)(x), wanted, rtol=0, atol=1e-10)


def test_masks_are_inverted():
    assert interop.invert_mask(torch.tensor([True, False])).tolist() == [False, True]
    with pytest.raises(TypeError, match="mask must be boolean, True = may attend, got dtype torch.float32"):
        interop.invert_mask(torch.zeros(2))


@pytest.mark.parametrize("module", [nn.Linear(3, 5), nn.GRU(3, 5)])
def test_other_modules_are_refused(module):
    wanted = "MultiheadAttention, TransformerEncoderLayer, TransformerDecoderLayer, Transformer"
    with pytest.raises(TypeError, match=f"module must be one of {wanted}, got {type(module).__name__}"):
        tl.interop.from_torch(module)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"add_bias_kv": True}, "module must have bias_k = None"),
        ({"add_zero_attn": True}, "module must have add_zero_attn = False, got True"),
        ({"kdim": 7}, "module must have qkv_same_embed_dim = True, got False"),
    ],
)
def test_options_that_ours_lack_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        tl.interop.from_torch(nn.MultiheadAttention(30, 3, **options))


def test_another_activation_is_refused():
    layer = nn.TransformerEncoderLayer(30, 3, 17, activation=torch.tanh)
    with pytest.raises(ValueError, match="module must have the activation relu or gelu, got "):
        tl.interop.from_torch(layer)
