"""What five texts claim of heads, layers, encoder, decoder, output head, training and writing, and no lesson shows.

Each test settles rows of docs/register.json: it asserts the row, or what is right in its place.
"""

from __future__ import annotations

import math

import pytest
import torch

import transformer_lib as tl
from settling import settles
from transformer_lib.course.lab import depth

pytestmark = pytest.mark.fast


def parameters(module):
    return sum(each.numel() for each in module.parameters())


def small_model():
    """Return an untrained model with 12 words, a source and a prefix; no two axes are equally long."""
    torch.manual_seed(12)
    sizes = {"d_model": 24, "n_heads": 3, "n_layers": 2, "d_ff": 96, "dropout": 0.0}
    model = tl.Transformer(tl.TransformerConfig(src_vocab_size=12, tgt_vocab_size=12, **sizes))
    return model, torch.randint(4, 12, (2, 4)), torch.randint(4, 12, (2, 5))


@settles("C235", "C238", "C239", "C240", "C242", "C254", "C266")
def test_widths_of_heads_and_what_w_o_does():
    """With d_k = d_model / heads all four are square; W_O adds the heads up, and each may write to every feature."""
    for n_heads, width in ((1, 512), (8, 64), (8, 512)):
        layer = tl.MultiHeadAttention(512, n_heads, d_k=width, d_v=width)
        assert parameters(layer) == 4 * 512 * n_heads * width
    base = tl.MultiHeadAttention(512, 8)
    assert base.d_k == base.d_v == 512 // 8 and base.w_q.weight.shape == base.w_k.weight.shape == (512, 512)
    assert base.w_v.weight.shape == base.w_o.weight.shape == (512, 512)  # square: it shrinks nothing

    torch.manual_seed(0)
    found, square = torch.randn(3, 5, 4).double(), torch.randn(12, 12).double()  # 3 heads of width 4, 5 tokens
    joined = found.transpose(0, 1).flatten(1)
    for w_o, features in ((torch.eye(12).double(), 4), (square, 12)):
        added = found @ w_o.unflatten(0, (3, 4))  # what each head adds, [3, 5, 12]
        torch.testing.assert_close(joined @ w_o, added.sum(dim=0))
        assert added.abs().amax(dim=1).gt(1e-12).sum(dim=1).tolist() == 3 * [features]


@settles("C241", "C255", "C261", "C262")
def test_a_batch_is_computed_sentence_by_sentence():
    """One head of width d needs W_O to bring the width back; queries may come from another sequence."""
    torch.manual_seed(0)
    single, x = tl.MultiHeadAttention(11, 1, d_k=7, d_v=7), torch.randn(2, 5, 11)
    assert x[0].shape == (5, 11) and single.w_o.weight.T.shape == (7, 11) and single(x, x, x).shape == x.shape
    layer = tl.MultiHeadAttention(12, 3).double()
    x, other = torch.randn(2, 5, 12).double(), torch.randn(2, 7, 12).double()
    alone = torch.cat([layer(one, one, one) for one in x.split(1)])
    torch.testing.assert_close(layer(x, x, x), alone)
    assert layer(x, other, other).shape == x.shape


@settles("C291", "C293")
def test_what_the_list_of_parts_leaves_out():
    """With one table the linear layer is the embedding; with three tables 37,888,000 parameters are missing."""
    sizes = {"src_vocab_size": 37_000, "tgt_vocab_size": 37_000}
    with torch.device("meta"):  # shapes without numbers
        base, untied = (tl.Transformer(tl.TransformerConfig(**sizes, tie_embeddings=tie)) for tie in (True, False))
    stacks = parameters(base.encoder) + parameters(base.decoder)
    assert len(base.encoder.layers) == len(base.decoder.layers) == 6
    assert parameters(base) - stacks == 37_000 * 512  # the linear layer, which is also the table
    assert parameters(untied) - parameters(base) == 2 * 37_000 * 512 == 37_888_000  # what the list leaves out


@settles("C303")
def test_decoder_layers_are_equal_in_structure_alone():
    """Text 5 calls them identical; each has its own weights."""
    first, second = tl.Decoder(2, 8, 2, 32).layers
    pairs = list(zip(first.parameters(), second.parameters(), strict=True))
    assert all(a.shape == b.shape for a, b in pairs)
    assert not torch.equal(first.cross_attention.w_q.weight, second.cross_attention.w_q.weight)


@settles("C311")
def test_cross_attention_needs_the_padding_mask():
    """It needs none that hides the future; without one for padding the output changes."""
    changes = {"without a mask": [], "with the padding mask": []}
    for seed in range(3):
        torch.manual_seed(seed)
        layer = tl.DecoderLayer(8, 2, 32).double()
        x, memory = torch.randn(2, 5, 8).double(), torch.randn(2, 7, 8).double()
        longer = torch.cat([memory, torch.randn(2, 3, 8).double()], dim=1)
        seen = (torch.arange(10) < 7)[None, None, None]
        short = layer(x, memory, tl.causal_mask(5))
        for name, mask in zip(changes, (None, seen), strict=True):
            changes[name].append((layer(x, longer, tl.causal_mask(5), mask) - short).abs().max().item())
    assert min(changes["without a mask"]) > 0.18 and max(changes["with the padding mask"]) < 1e-12


@settles("C277", "C285", "C286")
def test_layer_norm_has_a_gain_and_the_feed_forward_layer_a_relu():
    """Without the ReLU its two maps are one; each token passes alone, and each layer has its own weights."""
    rng = torch.Generator().manual_seed(9)
    in_use = {name: tuple(parameter.shape) for name, parameter in torch.nn.LayerNorm(8).named_parameters()}
    assert in_use == {"weight": (8,), "bias": (8,)}
    x = torch.randn(2, 5, 8, generator=rng, dtype=torch.float64)
    core = (x - x.mean(dim=-1, keepdim=True)) / (x.var(dim=-1, keepdim=True, correction=0) + 1e-5).sqrt()
    gain, bias = torch.randn(2, 8, generator=rng, dtype=torch.float64)
    full = torch.nn.functional.layer_norm(x, (8,), gain, bias)
    torch.testing.assert_close(full, gain * core + bias)
    assert (full - core).abs().max() > 1

    W_1, b_1, W_2, b_2 = (torch.randn(s, generator=rng, dtype=torch.float64) for s in ((8, 32), (32,), (32, 8), (8,)))
    one_map = x @ (W_1 @ W_2) + (b_1 @ W_2 + b_2)
    torch.testing.assert_close((x @ W_1 + b_1) @ W_2 + b_2, one_map)
    assert ((x @ W_1 + b_1).relu() @ W_2 + b_2 - one_map).abs().max() > 1
    layer = tl.FeedForward(8, 32).double()
    torch.testing.assert_close(layer(x)[1, 3], layer(x[1, 3]))  # a token alone gives what it gives among others
    first, second = (stacked.feed_forward.expand.weight for stacked in tl.Encoder(2, 8, 2, 32).layers)
    assert not torch.equal(first, second)


@settles("C287", "C288", "C289")
def test_the_feed_forward_layer_is_wide_and_squeezes_nothing():
    """F = 4, not 4 D; a layer four times as wide hands over each token exactly, one a quarter as wide cannot."""
    D = 512
    layer = tl.FeedForward(D, 4 * D)
    at_its_word = 2 * D * (4 * D * D) + 4 * D * D + D  # F = 4D, so F · D hidden units
    assert layer.expand(torch.zeros(D)).shape == (4 * D,) and layer(torch.zeros(D)).shape == (D,)
    assert parameters(layer) == 2_099_712 and at_its_word == 1_074_790_912

    rng = torch.Generator().manual_seed(9)
    eye, x = torch.eye(8), torch.randn(1000, 8, generator=rng)
    W_1, W_2 = torch.cat([eye, -eye, 0 * eye, 0 * eye], dim=1), torch.cat([eye, -eye, 0 * eye, 0 * eye])
    assert torch.equal((x @ W_1).relu() @ W_2, x)
    narrow = tl.FeedForward(8, 2)
    outputs = narrow(x).detach()
    assert torch.linalg.matrix_rank(outputs - outputs[0], atol=1e-4) <= 2
    lost = torch.linalg.eigvalsh(eye)[:6].sum() / 8  # white noise: the least that 2 directions must lose, per feature
    assert lost == 0.75


@settles("C274")
def test_without_residual_connections_w_q_gets_no_gradient():
    """In the sixth of twelve blocks with norms."""
    for residual in (True, False):
        torch.manual_seed(0)
        blocks = [depth.Block(residual, "post").double() for _ in range(12)]
        x, last = torch.randn(2, 8, 12, depth.WIDTH, dtype=torch.float64)
        torch.nn.Sequential(*blocks)(x).backward(last)
        of_q, of_v = (w.weight.grad.square().mean().sqrt() for w in (blocks[5].attention.w_q, blocks[5].attention.w_v))
        assert of_v > 0.1 and ((of_q > 1e-3) if residual else (of_q < 1e-8))


@settles("C334", "C338", "C339")
def test_every_pair_has_a_score_and_every_length_will_do():
    """36 scores for six tokens, 21 under a causal mask; one encoder reads 3 and 50 tokens; padding needs a mask."""
    used = tl.causal_mask(6)[0, 0]
    assert (used.numel(), int(used.sum())) == (6**2, 6 * 7 // 2)
    torch.manual_seed(0)
    encoder = tl.Encoder(2, 16, 4, 32).double()
    for n in (3, 50):
        assert encoder(torch.randn(1, n, 16).double()).shape == (1, n, 16)  # the same weights
    x, padding = torch.randn(3, 5, 16).double(), torch.randn(3, 4, 16).double()
    longer, real = torch.cat([x, padding], dim=1), (torch.arange(9) < 5)[None, None, None]
    moved = [(encoder(longer, mask)[:, :5] - encoder(x)).abs().max() for mask in (None, real)]
    assert moved[0] > 0.1 and moved[1] < 1e-12


@settles("C340", "C341", "C342", "C343")
def test_as_many_rows_leave_the_decoder_as_enter():
    """In writing, "one in, one out" holds with a cache; every sub-layer keeps the number of rows."""
    config = tl.TransformerConfig(src_vocab_size=13, tgt_vocab_size=17, d_model=16, n_heads=2, n_layers=2, d_ff=32)
    model, rows = tl.Transformer(config).eval(), []
    src, tgt_in = torch.randint(3, 13, (1, 7)), torch.randint(3, 17, (1, 5))
    model.decoder.register_forward_hook(lambda _, inputs, out: rows.append((inputs[0].shape[1], out.shape[1])))
    assert model(src, tgt_in).shape == (1, 5, 17)  # only the output head changes the width
    for use_cache in (False, True):
        tl.greedy_decode(model, src, max_new_tokens=4, stop_at_eos=False, use_cache=use_cache)
    assert rows == [(5, 5), (1, 1), (2, 2), (3, 3), (4, 4), (1, 1), (1, 1), (1, 1), (1, 1)]
    layer, y, memory = tl.DecoderLayer(16, 2, 32), torch.randn(1, 5, 16), torch.randn(1, 7, 16)
    for part in (layer.feed_forward(y), layer.self_attention(y, y, y), layer.cross_attention(y, memory, memory)):
        assert part.shape == y.shape  # a row for each query, each with the width of a token


@settles("C313", "C316", "C317")
def test_only_the_output_head_has_the_length_of_the_vocabulary():
    """The shapes from tokens to probabilities."""
    (small, source, prefix), shapes = small_model(), {}
    for name, module in small.named_modules():
        module.register_forward_hook(lambda _, given, result, name=name: shapes.update({name: tuple(result.shape)}))
    with tl.record_attention(small) as seen:
        probabilities = small(source, prefix).softmax(dim=-1)
    assert {shape for name, shape in shapes.items() if name.endswith("attention")} == {(2, 4, 24), (2, 5, 24)}
    assert shapes["decoder"] == (2, 5, 24) and shapes["output_head"] == probabilities.shape == (2, 5, 12)
    assert [name for name, shape in shapes.items() if name and shape[-1] == 12] == ["output_head"]
    assert seen["decoder.layers.1.cross_attention"].shape == (2, 3, 5, 4)  # over tokens, not over words


@settles("C314", "C315", "C318", "C319", "C320")
def test_the_output_head_scores_each_position_by_itself():
    """A matrix, stored transposed; the softmax changes neither the order of the words nor the best one."""
    small, source, prefix = small_model()
    probabilities = small(source, prefix).softmax(dim=-1)
    head, rows = small.output_head, small.decode(prefix, small.encode(source), source)
    states = torch.randn(2, 5, 24)
    torch.testing.assert_close(head(states), states @ head.weight.T)
    torch.testing.assert_close(head(states)[1, 3], head(states[1, 3]))
    assert head.weight.shape == (12, 24) and head.bias is None
    torch.testing.assert_close(probabilities.sum(dim=-1), torch.ones(2, 5))
    assert torch.equal(probabilities.argsort(dim=-1, stable=True), rows.argsort(dim=-1, stable=True))


@settles("C321")
def test_the_loss_compares_distributions():
    """A small step downhill changes the loss and not the predicted tokens, which have no slope to follow."""
    generator = torch.Generator().manual_seed(13)
    logits = torch.randn(1, 200, 11, generator=generator, dtype=torch.float64, requires_grad=True)
    tgt_out = torch.randint(1, 11, (1, 200), generator=generator)
    tl.translation_loss(logits, tgt_out, pad_id=0).backward()
    nudged = (logits - 0.01 * logits.grad / logits.grad.abs().max()).detach()  # a step downhill
    before, after = (tl.translation_loss(z, tgt_out, pad_id=0).item() for z in (logits, nudged))
    changed = (nudged.argmax(dim=-1) != logits.argmax(dim=-1)).sum().item()
    assert before > after and changed <= 2 and logits.grad.ne(0).all()


@settles("C324")
def test_the_encoder_runs_once_in_a_training_pass():
    """All cross-attentions read its memory."""
    sizes = {"d_model": 8, "n_heads": 2, "n_layers": 3, "d_ff": 16, "dropout": 0.0}
    config = tl.TransformerConfig(src_vocab_size=11, tgt_vocab_size=13, **sizes)
    model, passes, memories = tl.Transformer(config), [], []
    model.encoder.register_forward_hook(lambda module, inputs, memory: passes.append(memory))
    for layer in model.decoder.layers:
        layer.cross_attention.register_forward_pre_hook(lambda module, inputs: memories.append(inputs[1]))
    src, tgt = torch.tensor([[4, 5, 6], [7, 8, 0]]), torch.tensor([[1, 4, 5, 2], [1, 6, 2, 0]])
    tgt_in, tgt_out = tl.shift_right(tgt)
    tl.translation_loss(model(src, tgt_in), tgt_out, pad_id=0).backward()
    assert len(passes) == 1 and len(memories) == 3 and all(memory is passes[0] for memory in memories)


@settles("C326", "C327")
def test_writing_begins_with_one_token():
    """The encoder runs first and once; the first input is the embedding of <bos>, scaled, plus that of position 0."""
    model = tl.load_trained("context").model
    ran, first = [], []
    parts = {name: getattr(model, name) for name in ("encoder", "decoder")}
    hooks = [part.register_forward_hook(lambda *_, name=name: ran.append(name)) for name, part in parts.items()]
    hooks.append(model.decoder.register_forward_pre_hook(lambda module, inputs: first.append(inputs[0][0])))
    tl.greedy_decode(model, torch.tensor([[7, 8, 9]]), max_new_tokens=4, stop_at_eos=False)
    for hook in hooks:
        hook.remove()
    d_model = model.config.d_model
    start = math.sqrt(d_model) * model.tgt_embedding.weight[model.config.bos_id] + tl.sinusoidal_encoding(1, d_model)[0]
    assert ran == ["encoder"] + 4 * ["decoder"]
    torch.testing.assert_close(first[0], start[None])
