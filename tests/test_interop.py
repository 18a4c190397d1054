from __future__ import annotations

import inspect
import re
import warnings

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


def test_masks_are_inverted():
    assert interop.invert_mask(torch.tensor([True, False])).tolist() == [False, True]
    with pytest.raises(TypeError, match="mask must be boolean, True = may attend, got dtype torch.float32"):
        interop.invert_mask(torch.zeros(2))


@pytest.mark.parametrize("module", [nn.Linear(3, 5), nn.GRU(3, 5)])
def test_other_modules_are_refused(module):
    wanted = "MultiheadAttention, TransformerEncoderLayer, TransformerDecoderLayer, Transformer"
    with pytest.raises(TypeError, match=f"module must be one of {wanted}, got {type(module).__name__}"):
        tl.interop.from_torch(module)


# Every option of PyTorch's constructors: what comes of one off its default, which may be a refusal by name.

THEIRS = {
    nn.MultiheadAttention: (30, 3),
    nn.TransformerEncoderLayer: (30, 3),
    nn.TransformerDecoderLayer: (30, 3),
    nn.Transformer: (),
}
OPTIONS = {
    "d_model": 42,
    "embed_dim": 42,
    "nhead": 5,
    "num_heads": 5,
    "num_encoder_layers": 3,
    "num_decoder_layers": 2,
    "dim_feedforward": 13,
    "dropout": 0.4,
    "activation": "gelu",
    "custom_encoder": nn.Identity(),
    "custom_decoder": nn.Identity(),
    "layer_norm_eps": 0.3,
    "batch_first": True,
    "norm_first": True,
    "bias": False,
    "add_bias_kv": True,
    "add_zero_attn": True,
    "kdim": 7,
    "vdim": 7,
    "device": "cpu",
    "dtype": torch.float64,
}
SAID = {"add_bias_kv": "bias_k", "kdim": "qkv_same_embed_dim", "vdim": "qkv_same_embed_dim"}
SAID |= {"custom_encoder": "encoder", "custom_decoder": "decoder"}  # where it is
EACH = [(kind, option) for kind in THEIRS for option in inspect.signature(kind).parameters]


def theirs_of(kind, **options):
    """In evaluation mode, which PyTorch's dropout needs to be compared."""
    sizes = dict(zip(inspect.signature(kind).parameters, THEIRS[kind], strict=False))
    if kind is nn.Transformer:
        sizes = {"d_model": 30, "nhead": 3, "num_encoder_layers": 2, "num_decoder_layers": 1}
    if kind is not nn.MultiheadAttention:
        sizes["dim_feedforward"] = 17
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "enable_nested_tensor is True")
        return randomise(kind(**sizes | options)).eval()


def called(module, like, *, batch_first):
    """What a module returns for one query, or for a source and a target, [batch, length, d_model]."""
    width, dtype = next(like.parameters()).shape[-1], next(like.parameters()).dtype
    inputs = [draw(length, width, dtype, seed).detach() for seed, length in enumerate((SRC_LEN, TGT_LEN))]
    inputs = inputs if batch_first else [x.transpose(0, 1) for x in inputs]
    if isinstance(like, nn.MultiheadAttention):
        inputs = [inputs[1], inputs[0], inputs[0]]
    output = module(*inputs[: 1 if isinstance(like, nn.TransformerEncoderLayer) else None])
    output = output[0] if isinstance(output, tuple) else output
    return output if batch_first else output.transpose(0, 1)


@torch.no_grad()
@pytest.mark.parametrize(("kind", "option"), EACH)
def test_every_option_of_theirs_is_used_or_refused(kind, option):
    assert option in OPTIONS, f"give {option} a value off its default in OPTIONS"
    value = OPTIONS[option]
    assert value != inspect.signature(kind).parameters[option].default
    theirs = theirs_of(kind, **{option: value})
    try:
        ours = tl.interop.from_torch(theirs)
    except ValueError as refusal:
        assert re.search(rf"\b{SAID.get(option, option)}\b", str(refusal))
        return
    wanted = called(theirs, theirs, batch_first=option == "batch_first")
    torch.testing.assert_close(called(ours, theirs, batch_first=True), wanted, rtol=0, atol=1e-5)


# What is set on PyTorch's parts afterwards.


class Twice(nn.TransformerEncoderLayer):
    def forward(self, *arguments, **options):
        return 2 * super().forward(*arguments, **options)


class Fed(nn.TransformerEncoderLayer):
    def _ff_block(self, x):
        return 2 * super()._ff_block(x)


class Doubled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


def with_part(name, part):
    def change(module):
        owner, _, last = name.rpartition(".")
        setattr(module.get_submodule(owner), last, part)
        return module

    return change


def hooked(module):
    module.linear2.register_forward_hook(lambda *_: None)
    return module


def with_method(module):
    module._ff_block = lambda x: x
    return module


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda _: Twice(30, 3, 17), "it is a Twice"),
        (lambda _: Fed(30, 3, 17), "it is a Fed"),
        (with_part("linear1", Doubled(30, 17)), "linear1 is a Doubled"),
        (with_part("norm1", nn.RMSNorm(30)), "norm1 is a RMSNorm"),
        (
            with_part("norm2", nn.LayerNorm(30, elementwise_affine=False)),
            "elementwise_affine = True, but norm2 has False",
        ),
        (with_part("self_attn.out_proj", nn.Identity()), "self_attn.out_proj is a Identity"),
        (with_part("activation", nn.functional.silu), "module must have the activation relu or gelu"),
        (hooked, "module must have no hooks, but linear2 has one"),
        (with_method, "it is a TransformerEncoderLayer"),
    ],
)
def test_a_part_that_is_not_pytorchs_own_is_refused(change, reason):
    with pytest.raises(ValueError, match=reason):
        tl.interop.from_torch(change(nn.TransformerEncoderLayer(30, 3, 17)))


def test_a_layer_of_another_kind_in_the_middle_is_refused():
    theirs = build_transformer(SIZES[0])
    theirs.decoder.layers[1] = nn.Identity()
    with pytest.raises(ValueError, match="PyTorch's own parts, but decoder.layers.1 is a Identity"):
        tl.interop.from_torch(theirs)


@pytest.mark.parametrize(
    "activation", [nn.ReLU(), nn.GELU(), nn.GELU(approximate="tanh"), nn.functional.gelu, nn.functional.relu]
)
def test_activations_that_are_modules(activation):
    theirs = randomise(nn.TransformerEncoderLayer(30, 3, 17, activation=activation, batch_first=True), 3.0).eval()
    x = draw(SRC_LEN, 30, torch.float32)
    torch.testing.assert_close(tl.interop.from_torch(theirs)(x), theirs(x), rtol=0, atol=1e-5)


def test_each_part_s_own_epsilon_and_rate_come_along():
    theirs = randomise(nn.TransformerDecoderLayer(30, 3, 17, batch_first=True)).eval()
    theirs.norm2.eps, theirs.norm3.eps = 0.3, 0.03
    theirs.dropout1.p, theirs.dropout2.p, theirs.dropout3.p = 0.2, 0.3, 0.4
    theirs.self_attn.dropout, theirs.multihead_attn.dropout = 0.5, 0.6
    ours = tl.interop.from_torch(theirs)
    residuals = (ours.self_attention_residual, ours.cross_attention_residual, ours.feed_forward_residual)
    assert [residual.dropout.p for residual in residuals] == [0.2, 0.3, 0.4]
    assert [residual.norm.eps for residual in residuals] == [1e-5, 0.3, 0.03]
    assert (ours.self_attention.dropout, ours.cross_attention.dropout) == (0.5, 0.6)
    x, memory = draw(TGT_LEN, 30, torch.float32), draw(SRC_LEN, 30, torch.float32, 1)
    torch.testing.assert_close(ours(x, memory), theirs(x, memory), rtol=0, atol=1e-5)


def test_what_is_frozen_stays_frozen():
    theirs = nn.TransformerEncoderLayer(30, 3, 17)
    for parameter in (theirs.self_attn.in_proj_weight, theirs.linear1.bias, theirs.norm2.weight):
        parameter.requires_grad_(False)
    frozen = {name for name, p in tl.interop.from_torch(theirs).named_parameters() if not p.requires_grad}
    projections = {f"self_attention.{name}.weight" for name in ("w_q", "w_k", "w_v")}
    assert frozen == projections | {"feed_forward.expand.bias", "feed_forward_residual.norm.weight"}


def test_weights_that_are_computed_from_others_are_taken_as_they_are():
    theirs = nn.TransformerEncoderLayer(30, 3, 17, batch_first=True).eval()
    nn.utils.parametrizations.weight_norm(theirs.linear1)
    theirs.linear1.parametrizations.weight.original0.data *= 3
    x = draw(SRC_LEN, 30, torch.float32)
    torch.testing.assert_close(tl.interop.from_torch(theirs)(x), theirs(x), rtol=0, atol=1e-5)


# Of transformers: vocabulary, positions, layers, d_model, heads, d_ff. Primes, but for d_model = heads × a prime.
PEERS = [(53, 17, 2, 33, 3, 71), (97, 23, 3, 35, 5, 67), (31, 13, 1, 55, 11, 89)]
peers = pytest.mark.parametrize("size", PEERS, ids=str)
HEADS, BERT_HEADS = {"n_head": 3}, {"num_attention_heads": 3}  # of the first of them
PEER_ATOL = {torch.float32: 1e-5, torch.float64: 1e-12}


def drawn_anew(model, dtype):
    """Every parameter drawn anew: as they are made, gains of 1, biases of 0 and small matrices hide what is wrong."""
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        centre = 1.0 if parameter.dim() == 1 else 0.0
        parameter.data = centre + 0.3 * torch.randn(parameter.shape, generator=generator)
    return model.to(dtype).eval()


def gpt2(size, dtype, **options):
    transformers = pytest.importorskip("transformers")
    v, n, layers, d_model, heads, d_ff = size
    kinds = {"n_positions": n, "n_embd": d_model, "n_layer": layers, "n_head": heads, "n_inner": d_ff}
    config = transformers.GPT2Config(vocab_size=v, bos_token_id=0, eos_token_id=0, **kinds, **options)
    return drawn_anew(transformers.GPT2LMHeadModel(config), dtype)


def bert(size, dtype, **options):
    transformers = pytest.importorskip("transformers")
    v, n, layers, d_model, heads, d_ff = size
    kinds = {"max_position_embeddings": n, "num_hidden_layers": layers, "num_attention_heads": heads}
    config = transformers.BertConfig(vocab_size=v, hidden_size=d_model, intermediate_size=d_ff, **kinds, **options)
    return drawn_anew(transformers.BertForMaskedLM(config), dtype)


def peer_ids(size):
    ids = torch.randint(1, size[0], (BATCH, size[1]), generator=torch.Generator().manual_seed(1))
    return ids.masked_fill(torch.arange(size[1]) >= size[1] - 2 * torch.arange(BATCH)[:, None], 0)


@torch.no_grad()
@peers
@dtypes
def test_gpt2(size, dtype):
    theirs, ids = gpt2(size, dtype), peer_ids(size)
    ours = interop.load_gpt2(theirs.state_dict(), theirs.config)
    wanted = theirs(ids).logits
    assert wanted.std() > 0.5 and ours(ids).dtype == dtype
    torch.testing.assert_close(ours(ids), wanted, rtol=0, atol=PEER_ATOL[dtype])
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in theirs.parameters())


@torch.no_grad()
@peers
@dtypes
def test_bert(size, dtype):
    theirs, ids = bert(size, dtype), peer_ids(size)
    ours, real = interop.load_bert(theirs.state_dict(), theirs.config), ids != 0
    segments = (torch.arange(size[1]) > size[1] // 3).long().expand_as(ids)
    wanted = theirs(ids, attention_mask=real.long(), token_type_ids=segments).logits
    assert wanted.std() > 0.5
    got = ours(ids, tl.padding_mask(ids, 0), segments)
    torch.testing.assert_close(got[real], wanted[real], rtol=0, atol=PEER_ATOL[dtype])
    everything = theirs(ids).logits  # no padding, one segment
    torch.testing.assert_close(ours(ids), everything, rtol=0, atol=PEER_ATOL[dtype])
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in theirs.parameters())


def without_head(state, prefix):
    return {name.removeprefix(prefix): weight for name, weight in state.items() if name.startswith(prefix)}


def test_names_as_other_files_have_them():
    size = PEERS[0]
    state = gpt2(size, torch.float32).state_dict()
    bare = without_head(state, "transformer.") | {"h.0.attn.bias": torch.ones(1, 1, 17, 17)}  # of old files: the mask
    ids = peer_ids(size)
    assert torch.equal(interop.load_gpt2(bare, HEADS)(ids), interop.load_gpt2(state, HEADS)(ids))
    state = bert(size, torch.float32).state_dict()
    more = {"bert.pooler.dense.weight": torch.ones(33, 33), "bert.pooler.dense.bias": torch.ones(33)}
    more |= {"cls.seq_relationship.weight": torch.ones(2, 33), "cls.seq_relationship.bias": torch.ones(2)}
    assert torch.equal(interop.load_bert(state | more, BERT_HEADS)(ids), interop.load_bert(state, BERT_HEADS)(ids))


def test_states_of_gpt2_that_do_not_fit():
    state = gpt2(PEERS[0], torch.float32).state_dict()
    lacking = {name: weight for name, weight in state.items() if name != "transformer.h.1.ln_2.bias"}
    turned = state | {"transformer.h.0.mlp.c_fc.weight": state["transformer.h.0.mlp.c_fc.weight"].T}
    for wrong, message in (
        ({}, "state_dict must have 'wte.weight', got without it nothing"),
        (lacking, r"state_dict must have 'h.1.ln_2.bias'"),
        (turned, r"state_dict\['h.0.mlp.c_fc.weight'\] must give a weight of shape \(71, 33\), got \(33, 71\)"),
        (state | {"lm_head.weight": torch.zeros(53, 33)}, r"state_dict\['lm_head.weight'\] must be the same as what"),
        (
            state | {"transformer.h.1.x": torch.zeros(1)},
            "state_dict must have what the model has, got besides h.1",
        ),
        (bert(PEERS[0], torch.float32).state_dict(), "state_dict must have 'wte.weight'"),
    ):
        with pytest.raises(ValueError, match=message):
            interop.load_gpt2(wrong, HEADS)
    with pytest.raises(ValueError, match="d_model must be divisible by n_heads"):
        interop.load_gpt2(state, {"n_head": 2})


def test_states_of_bert_that_do_not_fit():
    state = bert(PEERS[0], torch.float32).state_dict()
    lacking = {name: weight for name, weight in state.items() if name != "cls.predictions.bias"}
    for wrong, message in (
        (lacking, "state_dict must have 'cls.predictions.bias'"),
        (state | {"cls.predictions.decoder.bias": torch.zeros(53)}, "decoder.bias'. must be the same as what it is"),
        (state | {"bert.encoder.layer.0.new": torch.zeros(1)}, "got besides encoder.layer.0.new"),
    ):
        with pytest.raises(ValueError, match=message):
            interop.load_bert(wrong, BERT_HEADS)


@torch.no_grad()
@peers
@pytest.mark.parametrize(
    "options",
    [
        {"activation_function": "gelu"},
        {"activation_function": "relu"},
        {"activation_function": "gelu_pytorch_tanh"},
        {"layer_norm_epsilon": 1e-3},
        {"activation_function": "gelu", "layer_norm_epsilon": 0.1},
        {"reorder_and_upcast_attn": True},
    ],
    ids=str,
)
def test_gpt2_as_its_configuration_says(size, options, tmp_path):
    theirs, ids = gpt2(size, torch.float32, **options), peer_ids(size)
    wanted = theirs(ids).logits
    ours = interop.load_gpt2(theirs.state_dict(), theirs.config)
    torch.testing.assert_close(ours(ids), wanted, rtol=0, atol=1e-5)
    assert torch.equal(interop.load_gpt2(theirs.state_dict(), theirs.config.to_dict())(ids), ours(ids))
    theirs.save_pretrained(tmp_path)
    for place in (tmp_path, str(tmp_path), next(tmp_path.glob("*.safetensors"))):
        assert torch.equal(interop.load_gpt2(place)(ids), ours(ids))


@torch.no_grad()
@peers
@pytest.mark.parametrize(
    "options",
    [{"hidden_act": "relu"}, {"hidden_act": "gelu_new"}, {"layer_norm_eps": 1e-3}, {"hidden_act": "gelu"}],
    ids=str,
)
def test_bert_as_its_configuration_says(size, options, tmp_path):
    theirs, ids = bert(size, torch.float32, **options), peer_ids(size)
    wanted = theirs(ids).logits
    ours = interop.load_bert(theirs.state_dict(), theirs.config)
    torch.testing.assert_close(ours(ids), wanted, rtol=0, atol=1e-5)
    theirs.save_pretrained(tmp_path)
    assert torch.equal(interop.load_bert(tmp_path)(ids), ours(ids))
    assert torch.equal(interop.load_bert(tmp_path, theirs.config.to_dict())(ids), ours(ids))


@torch.no_grad()
def test_what_is_refused_would_have_been_wrong():
    """Each refused field is one that `transformers` computes otherwise with the same weights."""
    size, plain = PEERS[0], {"n_head": 3}
    ids = peer_ids(size)
    for options in ({"scale_attn_by_inverse_layer_idx": True}, {"scale_attn_weights": False}):
        theirs = gpt2(size, torch.float32, **options)
        assert (interop.load_gpt2(theirs.state_dict(), plain)(ids) - theirs(ids).logits).abs().max() > 0.01
        (name,) = options
        with pytest.raises(ValueError, match=f"config must have {name} = "):
            interop.load_gpt2(theirs.state_dict(), theirs.config)
    theirs = bert(size, torch.float32, is_decoder=True)
    ours = interop.load_bert(theirs.state_dict(), BERT_HEADS)
    assert (ours(ids) - theirs(ids).logits).abs().max() > 0.01
    with pytest.raises(ValueError, match="config must have is_decoder = False, got True"):
        interop.load_bert(theirs.state_dict(), theirs.config)


def test_configurations_that_do_not_fit():
    state = gpt2(PEERS[0], torch.float32).state_dict()
    for wrong, message in (
        ({"n_head": 3, "activation_function": "silu"}, "config must have activation_function one of 'gelu', .* 'silu'"),
        ({"n_head": 3, "n_layer": 3}, "config must have n_layer = 2, as the weights have, got 3"),
        ({"n_head": 3, "n_inner": 72}, "config must have n_inner = 71, as the weights have, got 72"),
        ({"n_head": 3, "n_positions": 18}, "config must have n_positions = 17"),
        ({"n_head": 3, "vocab_size": 54}, "config must have vocab_size = 53"),
        ({"n_head": 3, "n_embd": 34}, "config must have n_embd = 33"),
        ({"n_head": 3, "add_cross_attention": True}, "config must have add_cross_attention = False, got True"),
        ({"n_head": 3, "quantization_config": {"bits": 4}}, "config must have quantization_config = None"),
        ({"model_type": "gptj"}, "config must have a model_type of 'gpt2', got 'gptj'"),
        (None, "config must be given with a state dict"),
    ):
        with pytest.raises(ValueError, match=message):
            interop.load_gpt2(state, wrong)
    with pytest.raises(TypeError, match=r"config must be a configuration .* such as \{'n_head': 12\}, got 3"):
        interop.load_gpt2(state, 3)
    state = bert(PEERS[0], torch.float32).state_dict()
    for wrong, message in (
        ({"position_embedding_type": "relative_key"}, "config must have position_embedding_type = 'absolute'"),
        ({"type_vocab_size": 3}, "config must have type_vocab_size = 2, as the weights have, got 3"),
        ({"hidden_size": 30}, "config must have hidden_size = 33"),
        ({"hidden_act": "silu"}, "config must have hidden_act one of"),
    ):
        with pytest.raises(ValueError, match=message):
            interop.load_bert(state, BERT_HEADS | wrong)


@torch.no_grad()
@peers
@dtypes
@pytest.mark.parametrize("prefix", ["", "bert."])
def test_bert_without_a_head(size, dtype, prefix):
    """As sentence encoders come: with or without a pooler, which has no part in the hidden states."""
    theirs, ids = bert(size, dtype).bert, peer_ids(size)
    state, real = {prefix + name: weight for name, weight in theirs.state_dict().items()}, ids != 0
    pooler = {f"{prefix}pooler.dense.weight": torch.ones(7, 7), f"{prefix}pooler.dense.bias": torch.ones(7)}
    ours = interop.load_bert(state | pooler, theirs.config)
    assert type(ours) is tl.TextEncoder
    wanted = theirs(ids, attention_mask=real.long()).last_hidden_state
    assert wanted.std() > 0.5
    hidden = ours(ids, tl.padding_mask(ids, 0))
    torch.testing.assert_close(hidden[real], wanted[real], rtol=0, atol=PEER_ATOL[dtype])
    several = torch.stack([row[:count].mean(dim=0) for row, count in zip(wanted, real.sum(dim=1), strict=True)])
    torch.testing.assert_close(tl.mean_pool(hidden, real), several, rtol=0, atol=PEER_ATOL[dtype])
    with pytest.raises(ValueError, match="got besides classifier.weight"):  # a head of another kind
        interop.load_bert(state | {"classifier.weight": torch.ones(3, size[3])}, theirs.config)


def test_gradients_of_bert_without_a_head():
    theirs, ids = bert(PEERS[0], torch.float64).bert, peer_ids(PEERS[0]).clamp(min=1)  # theirs learns no padding
    ours = interop.load_bert(theirs.state_dict(), theirs.config)
    weights = torch.randn(BATCH, 17, 33, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    (ours(ids) * weights).sum().backward()
    (theirs(ids).last_hidden_state * weights).sum().backward()
    gradients = {name: parameter.grad for name, parameter in theirs.named_parameters()}
    wanted = dict(interop.load_bert(gradients, theirs.config).named_parameters())
    for name, parameter in ours.named_parameters():
        torch.testing.assert_close(parameter.grad, wanted[name], rtol=1e-9, atol=1e-9)


def test_norms_of_old_files_of_bert():
    state = bert(PEERS[0], torch.float32).state_dict()
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): weight
        for name, weight in state.items()
    }
    assert len([name for name in old if name.endswith("gamma")]) == 6
    ids = peer_ids(PEERS[0])
    assert torch.equal(interop.load_bert(old, BERT_HEADS)(ids), interop.load_bert(state, BERT_HEADS)(ids))
