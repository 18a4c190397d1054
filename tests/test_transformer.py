from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import transformer_lib as tl
from factories import BATCH, POSITIONS, SIZES, SRC_LEN, TGT_LEN, make_config, make_model, sources, targets
from transformer_lib import numpy_reference as ref
from transformer_lib.model.base import WithoutMemory

pytestmark = pytest.mark.fast


def weights_of(linear):
    return linear.weight.detach().numpy().T


def numpy_norm(norm, x):
    return ref.layer_norm(x, norm.weight.detach().numpy(), norm.bias.detach().numpy()) if hasattr(norm, "eps") else x


def numpy_attention(layer, x, memory, mask):
    matrices = [weights_of(linear) for linear in (layer.w_q, layer.w_k, layer.w_v, layer.w_o)]
    return ref.multi_head_attention(x, memory, memory, *matrices, layer.n_heads, mask)


def numpy_feed_forward(layer, x):
    first, second = layer.expand, layer.contract
    return ref.feed_forward(
        x, weights_of(first), first.bias.detach().numpy(), weights_of(second), second.bias.detach().numpy()
    )


def numpy_stack(stack, x, mask, memory=None, memory_mask=None):
    """Return the encoder (without memory) or the decoder (with it), layer by layer, sub-layer by sub-layer."""
    for layer in stack.layers:
        own = layer.self_attention_residual if memory is None else layer.self_attention_residual
        parts = [(own, lambda y, layer=layer: numpy_attention(layer.self_attention, y, y, mask))]
        if memory is not None:
            cross = lambda y, layer=layer: numpy_attention(layer.cross_attention, y, memory, memory_mask)  # noqa: E731
            parts.append((layer.cross_attention_residual, cross))
        parts.append((layer.feed_forward_residual, lambda y, layer=layer: numpy_feed_forward(layer.feed_forward, y)))
        for residual, f in parts:
            x = x + f(numpy_norm(residual.norm, x)) if residual.norm_first else numpy_norm(residual.norm, x + f(x))
    return numpy_norm(stack.norm, x)


def numpy_transformer(model, src, tgt_in):
    """Return the whole model in NumPy, with nothing of the library but the weights and `numpy_reference`."""
    src, tgt_in = src.numpy(), tgt_in.numpy()
    seen = (src != 0)[:, None, None, :]
    causal = np.tril(np.ones((tgt_in.shape[1],) * 2, dtype=bool)) & (tgt_in != 0)[:, None, None, :]

    def embed(embedding, ids):
        table = embedding.weight.detach().numpy()
        d_model = table.shape[1]
        return table[ids] * math.sqrt(d_model) + ref.sinusoidal_encoding(ids.shape[1], d_model)

    memory = numpy_stack(model.encoder, embed(model.src_embedding, src), seen)
    x = numpy_stack(model.decoder, embed(model.tgt_embedding, tgt_in), causal, memory, seen)
    return x @ weights_of(model.output_head)


@pytest.mark.parametrize("norm_first", [False, True])
def test_the_whole_model_equals_a_numpy_transformer(norm_first):
    model = make_model(dtype=torch.float64, norm_first=norm_first)
    src, tgt_in = sources(), targets(padded=True)
    logits = model(src, tgt_in)
    assert logits.shape == (BATCH, TGT_LEN, SIZES["tgt_vocab_size"])
    np.testing.assert_allclose(logits.detach().numpy(), numpy_transformer(model, src, tgt_in), rtol=0, atol=1e-10)


@pytest.mark.parametrize("position", POSITIONS)
def test_every_kind_of_position_trains_every_parameter(position):
    model = make_model(position=position, norm_first=True)
    memory = model.encode(sources())
    assert memory.shape == (BATCH, SRC_LEN, SIZES["d_model"])
    logits = model(sources(), targets())
    torch.testing.assert_close(model.decode(targets(), memory, sources()), logits)
    logits.square().mean().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().max() > 0, name


def test_parameter_counts_of_the_base_model():
    with WithoutMemory():
        model = tl.Transformer(tl.TransformerConfig(src_vocab_size=37_000, tgt_vocab_size=37_000, tie_embeddings=True))
    stacks = sum(p.numel() for stack in (model.encoder, model.decoder) for p in stack.parameters())
    assert stacks == 44_101_632
    assert sum(p.numel() for p in model.parameters()) == 63_045_632
    assert all(p.is_meta for p in model.parameters() if p.dim() == 2) and not model.position.table.is_meta


def test_what_is_made_without_memory_draws_no_numbers():
    before = torch.get_rng_state()
    with WithoutMemory():
        tl.Transformer(make_config(position="learned"))
    assert torch.equal(torch.get_rng_state(), before)


def test_tied_embeddings_are_one_tensor():
    model = make_model(tgt_vocab_size=SIZES["src_vocab_size"], tie_embeddings=True)
    assert model.src_embedding.weight is model.tgt_embedding.weight is model.output_head.weight
    untied = make_model(tgt_vocab_size=SIZES["src_vocab_size"])
    table = SIZES["src_vocab_size"] * SIZES["d_model"]
    assert tl.baselines.count_parameters(untied) - tl.baselines.count_parameters(model) == 2 * table


def test_initial_values():
    torch.manual_seed(0)
    model = tl.Transformer(make_config(src_vocab_size=997, tgt_vocab_size=997, d_ff=211, tie_embeddings=True))
    assert 0.97 < model.src_embedding.weight.detach().std() * math.sqrt(SIZES["d_model"]) < 1.03
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any(), name
    weight = model.encoder.layers[0].feed_forward.expand.weight.detach()
    bound = math.sqrt(6 / (30 + 211))  # Xavier's
    assert weight.abs().max() <= bound and weight.std() == pytest.approx(bound / math.sqrt(3), rel=0.05)


def test_embeddings_enter_at_the_scale_of_the_positions():
    torch.manual_seed(0)
    model, seen = make_model(dropout=0.0), []
    model.encoder.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    model.encode(sources())
    wanted = model.src_embedding(sources()) * math.sqrt(30) + tl.sinusoidal_encoding(SRC_LEN, 30)
    torch.testing.assert_close(seen[0], wanted)


def test_dropout_acts_on_the_summed_embeddings():
    model, seen = make_model(dropout=0.5), []
    model.encoder.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    model.decoder.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    model(sources(), targets())
    torch.manual_seed(0)
    model.train()(sources(), targets())
    for still, dropped in (seen[0::2], seen[1::2]):
        kept = dropped != 0
        torch.testing.assert_close(dropped[kept], 2 * still[kept])
        assert 0.4 < kept.float().mean() < 0.6


def test_masks_of_the_model():
    model, src, tgt = make_model(pad_id=3, bos_id=1), torch.tensor([[5, 7, 3]]), torch.tensor([[1, 4, 3, 5]])
    assert model.src_mask(src).int().tolist() == [[[[1, 1, 0]]]]
    assert model.memory_mask(src, tgt, 4).int().tolist() == [[[[1, 1, 0]]]]
    rows = [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 0, 1]]
    assert model.tgt_mask(tgt, 4).int().tolist() == [[rows]]
    assert model.tgt_mask(tgt, 2).int().tolist() == [[rows[2:]]]


@pytest.mark.parametrize(
    ("src", "tgt_in", "error", "message"),
    [
        (torch.ones(7, dtype=torch.long), None, ValueError, "src must have 2 axes, got 1"),
        (None, torch.ones(5, 11, 2, dtype=torch.long), ValueError, "tgt_in must have 2 axes, got 3"),
        (torch.full((5, 7), 23), None, ValueError, r"src must hold ids in \[0, 23\), got values from 23 to 23"),
        (None, torch.full((5, 11), 29), ValueError, r"tgt_in must hold ids in \[0, 29\), got values from 29"),
        (torch.full((5, 7), -1), None, ValueError, r"src must hold ids in \[0, 23\), got values from -1"),
        (torch.ones(5, 38, dtype=torch.long), None, ValueError, "src has 38 tokens, more than max_len = 37"),
        (None, torch.ones(5, 38, dtype=torch.long), ValueError, "tgt_in has 38 tokens, more than max_len = 37"),
        (torch.ones(0, 7, dtype=torch.long), None, ValueError, r"src must not be empty, got shape \(0, 7\)"),
        (None, torch.ones(5, 0, dtype=torch.long), ValueError, r"tgt_in must not be empty, got shape \(5, 0\)"),
        (torch.ones(5, 7), None, TypeError, "src must hold integer token ids, got dtype torch.float32"),
        (None, [[1, 2]], TypeError, "tgt_in must be a torch.Tensor, got list"),
        (None, torch.ones(4, 11, dtype=torch.long), ValueError, "memory must have tgt_in's batch size 4, got 5"),
    ],
)
@pytest.mark.parametrize("position", ["sinusoidal", "rotary"])
def test_bad_ids_are_refused(position, src, tgt_in, error, message):
    model = make_model(position=position)
    with pytest.raises(error, match=message):
        model(sources() if src is None else src, targets() if tgt_in is None else tgt_in)


def test_a_memory_of_another_source_is_refused():
    model = make_model()
    memory = model.encode(sources())
    with pytest.raises(ValueError, match=r"memory must be the encoding of src \(5, 6\), got shape \(5, 7, 30\)"):
        model.decode(targets(), memory, sources()[:, 1:])
    with pytest.raises(ValueError, match="memory must end in d_model = 30 features, got 29"):
        model.decode(targets(), memory[..., 1:], sources())


def test_a_cache_does_not_reach_past_max_len():
    model = make_model(position="rotary")
    memory, cache = model.encode(sources()), model.new_cache()
    model.decode(targets(length=36), memory, sources(), cache=cache)
    with pytest.raises(ValueError, match="tgt_in has 2 tokens after 36 in the cache, more than max_len = 37"):
        model.decode(targets(length=2), memory, sources(), cache=cache)
    assert cache.length == 36


def test_only_a_config_makes_a_model():
    with pytest.raises(TypeError, match="config must be a TransformerConfig, got dict"):
        tl.Transformer(SIZES)


def test_other_special_ids():
    one, other = make_model(dtype=torch.float64), make_model(dtype=torch.float64)
    other.config = replace(other.config, pad_id=22)  # now 22 is padding, and 0 is a word like any other
    src, tgt_in = sources(padded=False).clamp(max=21), targets().clamp(max=21)
    torch.testing.assert_close(other(src, tgt_in), one(src, tgt_in))
    padded = torch.nn.functional.pad(src, (0, 3), value=22)
    torch.testing.assert_close(other(padded, tgt_in), one(src, tgt_in), rtol=0, atol=1e-10)
    src[:, 2] = 0
    assert (other(src, tgt_in) - one(src, tgt_in)).abs().max() > 0.01
