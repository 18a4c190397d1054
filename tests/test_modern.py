"""The block of today: each part against its definition, position by position, and one change at a time."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

import transformer_lib as tl
from transformer_lib.model.modern import (
    Block,
    Config,
    GroupedQueryAttention,
    LanguageModel,
    MixtureOfExperts,
    RMSNorm,
    SwiGLU,
    window_mask,
)

pytestmark = pytest.mark.fast
SIZES = {"vocab_size": 23, "d_model": 13, "n_heads": 6, "n_layers": 2, "d_ff": 17, "n_kv_heads": 3, "d_head": 10}
CHANGES = [
    {},
    {"norm": "layer"},
    {"feed_forward": "relu"},
    {"feed_forward": "gelu"},
    {"feed_forward": "experts", "n_experts": 5, "experts_per_token": 3},
    {"n_kv_heads": 1},
    {"n_kv_heads": None},
    {"pairs": "neighbours"},
    {"rope_base": 100.0},
    {"rope_scaling": tl.RotaryScaling(factor=5.0, original_length=7, low=0.5, high=2.0)},
    {"rotary_layers": (False, True)},
    {"qkv_bias": True},
    {"qk_norm": True},
    {"window": 3},
    {"window": 1},
    {"tied": False},
    {"embedding_scale": 3.0},
]


def new(**changes):
    torch.manual_seed(0)
    model = LanguageModel(Config(**SIZES | changes)).double().eval()
    for name, parameter in model.named_parameters():
        centre = float(parameter.dim() == 1 and name.endswith("weight"))
        parameter.data = centre + 0.4 * torch.randn(parameter.shape, dtype=torch.float64)
    return model


def ids_of(batch=3, length=11):
    return torch.randint(23, (batch, length), generator=torch.Generator().manual_seed(1))


def rms(x, weight, eps=1e-6):
    return torch.stack([row / math.sqrt(sum(v * v for v in row.tolist()) / len(row) + eps) * weight for row in x])


def rotated(vector, position, config):
    """The vector of one head, turned pair by pair as complex numbers."""
    width, found = len(vector), vector.clone()
    for j in range(width // 2):
        a, b = (j, j + width // 2) if config.pairs == "halves" else (2 * j, 2 * j + 1)
        rate = config.rope_base ** (-2 * j / width)
        if config.rope_scaling is not None:
            turns = config.rope_scaling.original_length * rate / (2 * math.pi)
            kept = min(max((turns - config.rope_scaling.low) / 1.5, 0), 1)
            rate = rate * (kept + (1 - kept) / config.rope_scaling.factor)
        angle = position * (rate if config.rotary_layers is None else 0)
        turned = complex(vector[a], vector[b]) * complex(math.cos(angle), math.sin(angle))
        found[a], found[b] = turned.real, turned.imag
    return found


def projected(linear, rows, vector):
    product = linear.weight[rows] @ vector
    return product if linear.bias is None else product + linear.bias[rows]


def attention_by_hand(attention, x, config):
    """Position by position and head by head for x [seq_len, d_model]."""
    width, group = config.head_width, config.n_heads // config.kv_heads
    rows = []
    for at in range(len(x)):
        heads = []
        for head in range(config.n_heads):
            own, other = (slice(one * width, (one + 1) * width) for one in (head, head // group))
            q = projected(attention.w_q, own, x[at])
            first = 0 if config.window is None else max(0, at - config.window + 1)
            scores, values = [], []
            for key_at in range(first, at + 1):
                k = projected(attention.w_k, other, x[key_at])
                if config.qk_norm:
                    k = rms(k[None], attention.k_norm.weight)[0]
                seen = rms(q[None], attention.q_norm.weight)[0] if config.qk_norm else q
                scores.append(rotated(seen, at, config) @ rotated(k, key_at, config) / math.sqrt(width))
                values.append(projected(attention.w_v, other, x[key_at]))
            heads.append(torch.stack(scores).softmax(0) @ torch.stack(values))
        rows.append(attention.w_o.weight @ torch.cat(heads))
    return torch.stack(rows)


@pytest.mark.parametrize(
    "changes",
    [
        *({}, {"n_kv_heads": 1}, {"n_kv_heads": 6}, {"qk_norm": True}, {"window": 3}, {"pairs": "neighbours"}),
        *({"qkv_bias": True}, {"rotary_layers": (False, True)}),
        {"rope_scaling": tl.RotaryScaling(factor=5.0, original_length=7, low=0.5, high=2.0)},
    ],
)
@torch.no_grad()
def test_attention_is_its_definition(changes):
    model = new(**changes)
    x = torch.randn(2, 7, 13, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    attention = model.layers[0].attention
    for sentence, found in zip(x, attention(x), strict=True):
        torch.testing.assert_close(found, attention_by_hand(attention, sentence, model.config))


@torch.no_grad()
def test_rms_norm_is_its_definition_and_keeps_no_mean_at_zero():
    norm = RMSNorm(13, eps=1e-3).double()
    norm.weight.copy_(torch.linspace(-1, 2, 13))
    x = 3 + torch.randn(5, 13, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(norm(x), rms(x, norm.weight, eps=1e-3))
    plain = RMSNorm(13).double()
    torch.testing.assert_close(plain(x).square().mean(-1), torch.ones(5, dtype=torch.float64), atol=1e-5, rtol=0)
    torch.testing.assert_close(plain(7 * x), plain(x), atol=1e-5, rtol=0)
    assert plain(x).mean() > 0.5
    centred = x - x.mean(-1, keepdim=True)
    torch.testing.assert_close(plain(centred), tl.LayerNorm(13, eps=1e-6).double()(x))


@torch.no_grad()
def test_swiglu_is_its_definition():
    part = SwiGLU(5, 7).double()
    x = torch.randn(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    gate = x @ part.gate.weight.T
    wanted = (gate / (1 + torch.exp(-gate)) * (x @ part.up.weight.T)) @ part.down.weight.T
    torch.testing.assert_close(part(x), wanted)
    assert [name for name, _ in part.named_parameters()] == ["gate.weight", "up.weight", "down.weight"]


@torch.no_grad()
def test_experts_are_a_weighted_sum_of_the_chosen_ones():
    torch.manual_seed(0)
    part = MixtureOfExperts(5, 7, 4, 2).double()
    assert part.loads is None
    x = torch.randn(3, 11, 5, dtype=torch.float64)
    found, counts = part(x), [0] * 4
    for token, output in zip(x.flatten(0, 1), found.flatten(0, 1), strict=True):
        scores = (part.router.weight @ token).tolist()
        best = sorted(range(4), key=lambda one: -scores[one])[:2]
        total = sum(math.exp(scores[one]) for one in best)
        wanted = sum(math.exp(scores[one]) / total * part.experts[one](token) for one in best)
        torch.testing.assert_close(output, wanted)
        for one in best:
            counts[one] += 1
    torch.testing.assert_close(part.loads, torch.tensor(counts) / 66)
    assert part.loads.sum().item() == pytest.approx(1) and len(set(counts)) > 1


@pytest.mark.parametrize(("q_len", "k_len", "window"), [(7, 7, 3), (7, 7, 1), (2, 5, 3), (3, 11, None), (5, 5, 99)])
def test_a_window_is_the_position_itself_and_those_right_before_it(q_len, k_len, window):
    mask = window_mask(q_len, k_len, window)
    assert mask.shape == (1, 1, q_len, k_len)
    for i in range(q_len):
        at = i + k_len - q_len
        seen = range(0 if window is None else max(0, at - window + 1), at + 1)
        assert mask[0, 0, i].nonzero().flatten().tolist() == list(seen)


@pytest.mark.parametrize("changes", CHANGES, ids=str)
@torch.no_grad()
def test_chunks_with_a_cache_give_the_logits_of_the_whole(changes):
    model, ids = new(**changes), ids_of()
    whole, cache = model(ids), model.new_cache()
    chunks = ids.split([1, 4, 1, 3, 2], dim=1)
    parts = [model(chunk, cache) for chunk in chunks]
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, rtol=0, atol=1e-11)
    assert cache.length == 11
    assert cache.bytes == 3 * model.config.cache_bytes(11, bytes_each=8)


def test_the_cache_of_a_model_with_other_layers_is_refused():
    with pytest.raises(ValueError, match="cache must have 2 layers, as this model, got 3"):
        new()(ids_of(), LanguageModel(Config(**{**SIZES, "n_layers": 3})).new_cache())


@torch.no_grad()
def test_a_layer_whose_window_was_changed_keeps_what_it_sees():
    model, ids = new(window=3), ids_of()
    model.layers[0].attention.window, model.layers[1].attention.window = None, 5
    cache = model.new_cache()
    parts = [model(chunk, cache) for chunk in ids.split(1, dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), model(ids), rtol=0, atol=1e-11)
    assert [layer.kept[0].shape[2] for layer in cache.layers] == [11, 5]


def test_bytes_of_a_cache_by_count():
    config = Config(**SIZES)
    assert config.cache_bytes(11) == 2 * 2 * 3 * 10 * 11 * 4
    assert replace(config, n_kv_heads=1).cache_bytes(11) * 3 == config.cache_bytes(11)
    windowed = replace(config, window=5)
    assert windowed.cache_bytes(3) == config.cache_bytes(3)
    assert windowed.cache_bytes(999) == config.cache_bytes(5)
    assert LanguageModel(config).new_cache().bytes == 0


def test_what_a_window_drops_is_not_held_on_to():
    model, cache = new(window=3), None
    cache = model.new_cache()
    model(ids_of(), cache)
    for tensor in cache.layers[0].kept:
        assert tensor.shape == (3, 3, 3, 10) and tensor.untyped_storage().nbytes() == tensor.numel() * 8


@pytest.mark.parametrize("window", [None, 2])
def test_nothing_after_a_position_and_nothing_before_its_windows_reaches_it(window):
    model, ids = new(window=window), ids_of(1, 7)
    x = model.embedding(ids).detach().requires_grad_()
    hidden = x
    for layer in model.layers:
        hidden = layer(hidden)
    hidden[0, 4].sum().backward()
    reached = [at for at in range(7) if x.grad[0, at].abs().sum() > 0]
    assert reached == ([0, 1, 2, 3, 4] if window is None else [2, 3, 4])  # two layers see 2 · (2 − 1) back


@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_every_parameter_learns(changes):
    model, ids = new(**changes), ids_of(5, 13)
    F.cross_entropy(model(ids[:, :-1]).mT, ids[:, 1:]).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


@torch.no_grad()
def test_the_base_is_the_model_of_2017_with_a_causal_mask():
    config = {"vocab_size": 23, "d_model": 20, "n_heads": 2, "n_layers": 2, "d_ff": 17, "norm": "layer", "eps": 1e-5}
    config |= {"feed_forward": "gelu", "pairs": "neighbours", "embedding_scale": math.sqrt(20)}
    torch.manual_seed(7)
    ours = LanguageModel(Config(**config))
    torch.manual_seed(7)
    theirs = tl.LanguageModel(23, 2, 20, 2, 17, norm_first=True, activation="gelu", position="rotary")
    torch.testing.assert_close(ours(ids_of()), theirs(ids_of()))


def test_tied_and_untied_heads():
    tied, untied = new(), new(tied=False)
    assert tied.head.weight is tied.embedding.weight
    extra = sum(p.numel() for p in untied.parameters()) - sum(p.numel() for p in tied.parameters())
    assert extra == 23 * 13


def test_two_thirds_of_the_width_give_swiglu_as_many_parameters():
    count = {
        kind: sum(
            p.numel() for p in Block(Config(**SIZES | {"feed_forward": kind, "d_ff": width})).feed_forward.parameters()
        )
        for kind, width in (("relu", 33), ("swiglu", 22))
    }
    assert count["relu"] - 33 - 13 == count["swiglu"]  # but for the biases of 2017


@pytest.mark.parametrize(
    ("changes", "error", "match"),
    [
        ({"d_head": None}, ValueError, "d_model must be divisible by n_heads unless d_head is given, got d_model=13"),
        ({"d_head": 5}, ValueError, "d_head must be even .* got 5"),
        ({"n_kv_heads": 4}, ValueError, "n_heads must be divisible by n_kv_heads, got n_heads=6, n_kv_heads=4"),
        ({"n_kv_heads": 0}, ValueError, "n_kv_heads must be at least 1"),
        ({"window": 0}, ValueError, "window must be at least 1"),
        ({"window": 2.0}, TypeError, "window must be an int"),
        ({"norm": "batch"}, ValueError, "norm must be one of 'rms', 'layer'"),
        ({"feed_forward": "glu"}, ValueError, "feed_forward must be one of"),
        ({"pairs": "thirds"}, ValueError, "pairs must be one of 'neighbours', 'halves'"),
        ({"rope_base": 0}, ValueError, "rope_base must be positive"),
        ({"qk_norm": 1}, TypeError, "qk_norm must be True or False"),
        ({"qkv_bias": 1}, TypeError, "qkv_bias must be True or False"),
        ({"rope_scaling": 8.0}, TypeError, "rope_scaling must be a RotaryScaling or None, got 8.0"),
        ({"rotary_layers": [True, False]}, TypeError, "rotary_layers must be a tuple of True and False or None"),
        ({"rotary_layers": (1, 0)}, TypeError, "rotary_layers must be a tuple of True and False or None"),
        ({"rotary_layers": (True,)}, ValueError, "rotary_layers must say it of n_layers = 2 layers, got 1"),
        ({"experts_per_token": 5}, ValueError, "experts_per_token must be at most n_experts = 4, got 5"),
    ],
)
def test_a_wrong_configuration_is_named(changes, error, match):
    with pytest.raises(error, match=match):
        Config(**SIZES | changes)


def test_wrong_arguments_are_named():
    model = new()
    with pytest.raises(TypeError, match=r"config must be a modern.Config, got dict"):
        LanguageModel(SIZES)
    with pytest.raises(ValueError, match=r"ids must hold ids in \[0, 23\), got values from 23 to 23"):
        model(torch.tensor([[23]]))
    with pytest.raises(ValueError, match="x must end in d_model = 13 features, got 5"):
        GroupedQueryAttention(model.config)(torch.zeros(1, 2, 5))
    for part in (RMSNorm(13), SwiGLU(13, 3), MixtureOfExperts(13, 3, 2, 1)):
        with pytest.raises(ValueError, match="x must end in d_model = 13 features, got 5"):
            part(torch.zeros(2, 5))
    with pytest.raises(ValueError, match="experts_per_token must be at most n_experts = 2, got 3"):
        MixtureOfExperts(13, 3, 2, 3)
    cache = model.new_cache()
    model(ids_of(2), cache)
    with pytest.raises(ValueError, match="ids must have the cache's batch size 2, got 3"):
        model(ids_of(3), cache)
    with pytest.raises(ValueError, match="pairs must be one of 'neighbours', 'halves', got 'quarters'"):
        tl.RotaryPosition(pairs="quarters")
    with pytest.raises(ValueError, match="base must be positive, got -1"):
        tl.RotaryPosition(base=-1)
