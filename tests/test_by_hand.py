"""The Transformer by hand: every backward by finite differences and beside autograd, every gradient of the whole."""

from __future__ import annotations

import doctest
import math
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import transformer_lib as tl
from factories import make_model, sources, targets
from transformer_lib import by_hand
from transformer_lib.by_hand import replacing
from transformer_lib.training import schedules

pytestmark = pytest.mark.fast

RNG = np.random.default_rng(0)
TIGHT = {"rtol": 0, "atol": 1e-10}
TOKENS, MEMORY, WIDTH, OUT = 5, 7, 30, 11  # d_model = 30 is even and divisible by 3 heads; the others are primes
SMALL = by_hand.Sizes(src_vocab_size=13, tgt_vocab_size=17, d_model=6, n_heads=3, n_layers=2, d_ff=7)


def draw(*shape):
    return RNG.normal(size=shape)


def slopes(function, arrays, g_y, step=1e-6):
    """Return the gradient of Σ g_y ⊙ function(*arrays) for each array, by central differences."""
    found = []
    for array in arrays:
        g = np.zeros_like(array)
        for index in np.ndindex(array.shape):
            middle, ends = array[index], []
            for sign in (1, -1):
                array[index] = middle + sign * step
                ends.append((function(*arrays) * g_y).sum())
            array[index] = middle
            g[index] = (ends[0] - ends[1]) / (2 * step)
        found.append(g)
    return found


def autograd(function, arrays, g_y):
    leaves = [torch.tensor(array, requires_grad=True) for array in arrays]
    return torch.autograd.grad(function(*leaves), leaves, torch.as_tensor(g_y))


def assert_backward(forward, backward, theirs, arrays):
    """Compare `backward` with finite differences of `forward`, and both with PyTorch's `theirs`."""
    y, saved = forward(*arrays)
    np.testing.assert_allclose(y, theirs(*map(torch.tensor, arrays)), **TIGHT)
    g_y = draw(*y.shape)
    found = backward(g_y, saved)
    found = found if isinstance(found, tuple) else (found,)
    for ours, expected, slope in zip(
        found,
        autograd(theirs, arrays, g_y),
        slopes(lambda *changed: forward(*changed)[0], arrays, g_y),
        strict=True,
    ):
        np.testing.assert_allclose(ours, expected, **TIGHT)
        np.testing.assert_allclose(ours, slope, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("leading", [(), (2,), (2, 3)])
def test_linear(leading):
    arrays = [draw(*leading, 5), draw(7, 5), draw(7)]
    assert_backward(by_hand.linear, by_hand.linear_backward, F.linear, arrays)


def test_linear_without_bias():
    x, weight, g_y = draw(2, 3, 5), draw(7, 5), draw(2, 3, 7)
    y, saved = by_hand.linear(x, weight)
    g_x, g_weight, g_bias = by_hand.linear_backward(g_y, saved)
    assert g_bias is None
    for ours, expected in zip((g_x, g_weight), autograd(F.linear, (x, weight), g_y), strict=True):
        np.testing.assert_allclose(ours, expected, **TIGHT)


def test_relu():
    assert_backward(by_hand.relu, by_hand.relu_backward, F.relu, [draw(2, 3, 5)])


def test_relu_at_zero_has_gradient_zero_as_in_pytorch():
    _, saved = by_hand.relu(np.zeros(3))
    assert not by_hand.relu_backward(np.ones(3), saved).any()


def test_softmax():
    assert_backward(by_hand.softmax, by_hand.softmax_backward, partial(torch.softmax, dim=-1), [3 * draw(2, 3, 5)])


@pytest.mark.parametrize("masked", [False, True])
def test_attention(masked):
    mask = RNG.random((2, 1, 5, 7)) > 0.4
    mask[..., 0] = True
    mask = mask if masked else None
    arrays = [draw(2, 3, 5, 2), draw(2, 3, 7, 2), draw(2, 3, 7, 11)]
    theirs = partial(F.scaled_dot_product_attention, attn_mask=None if mask is None else torch.tensor(mask))
    assert_backward(partial(by_hand.attention, mask=mask), by_hand.attention_backward, theirs, arrays)


def test_a_query_that_sees_nothing_has_gradient_zero():
    mask = np.ones((5, 7), dtype=bool)
    mask[2] = False
    _, saved = by_hand.attention(draw(5, 3), draw(7, 3), draw(7, 2), mask)
    g_query, *others = by_hand.attention_backward(draw(5, 2), saved)
    assert not g_query[2].any() and g_query[[0, 1, 3, 4]].all()
    assert all(np.isfinite(g).all() for g in others)


def test_layer_norm():
    arrays = [2 * draw(2, 3, 5) + 1, draw(5), draw(5)]
    forward = partial(by_hand.layer_norm, eps=0.1)
    assert_backward(forward, by_hand.layer_norm_backward, lambda x, w, b: F.layer_norm(x, (5,), w, b, 0.1), arrays)


def test_embedding_with_words_that_occur_twice():
    ids = np.array([[3, 5, 3], [3, 0, 7]])
    positions = tl.sinusoidal_encoding(3, 6).double()

    def theirs(table):
        return F.embedding(torch.tensor(ids), table) * math.sqrt(6) + positions

    table = draw(11, 6)
    y, saved = by_hand.embed(ids, table)
    np.testing.assert_allclose(y, theirs(torch.tensor(table)), rtol=0, atol=1e-6)  # tl's table is in single precision
    g_y = draw(2, 3, 6)
    ours = by_hand.embed_backward(g_y, saved)
    np.testing.assert_allclose(ours, autograd(theirs, [table], g_y)[0], **TIGHT)
    np.testing.assert_allclose(ours, slopes(lambda t: by_hand.embed(ids, t)[0], [table], g_y)[0], rtol=1e-6, atol=1e-7)
    assert not ours[[1, 2, 4]].any()


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
def test_cross_entropy(smoothing):
    logits, labels = 3 * draw(3, 5, 7), RNG.integers(0, 6, size=(3, 5))
    labels[0, 3:] = 6
    loss, saved = by_hand.cross_entropy(logits, labels, pad_id=6, label_smoothing=smoothing)
    assert loss == pytest.approx(tl.numpy_reference.label_smoothed_loss(logits, labels, 6, smoothing), abs=1e-12)

    def ours(logits):
        return np.array(by_hand.cross_entropy(logits, labels, pad_id=6, label_smoothing=smoothing)[0])

    def theirs(logits):
        return tl.translation_loss(logits, torch.tensor(labels), pad_id=6, label_smoothing=smoothing)

    g_logits = by_hand.cross_entropy_backward(saved)
    np.testing.assert_allclose(g_logits, autograd(theirs, [logits], 1.0)[0], **TIGHT)
    np.testing.assert_allclose(g_logits, slopes(ours, [logits], 1.0)[0], rtol=1e-6, atol=1e-7)
    assert not g_logits[0, 3:].any()


def test_cross_entropy_of_a_probability_that_rounds_to_zero():
    loss, saved = by_hand.cross_entropy(np.array([[[0.0, 1000.0]]]), np.array([[0]]), pad_id=9)
    assert loss == 1000 and by_hand.cross_entropy_backward(saved).tolist() == [[[-1.0, 1.0]]]


def test_labels_of_padding_alone_are_refused():
    with pytest.raises(ValueError, match="labels must have a real one, got only pad_id 0"):
        by_hand.cross_entropy(draw(1, 2, 3), np.zeros((1, 2), dtype=int), pad_id=0)


def arrays_of(module, name):
    """Return the parameters of a PyTorch module as arrays, each name with `name` before it."""
    return {f"{name}.{key}": tensor.detach().numpy().copy() for key, tensor in module.state_dict().items()}


def assert_module_backward(module, name, run, run_backward, inputs, theirs):
    """Compare a block with PyTorch's, values and the gradients of inputs and parameters, and these with slopes."""
    parameters, gradients = arrays_of(module, name), {}
    y, saved = run(*inputs, parameters)
    leaves = [torch.tensor(x, requires_grad=True) for x in inputs]
    wanted = theirs(*leaves)
    np.testing.assert_allclose(y, wanted.detach(), **TIGHT)
    g_y = draw(*y.shape)
    g_inputs = run_backward(g_y, saved, gradients)
    wanted.backward(torch.tensor(g_y))
    for ours, leaf in zip(g_inputs if isinstance(g_inputs, tuple) else (g_inputs,), leaves, strict=True):
        np.testing.assert_allclose(ours, leaf.grad, **TIGHT)
    expected = {f"{name}.{key}": parameter.grad for key, parameter in module.named_parameters()}
    assert gradients.keys() == expected.keys() == parameters.keys()
    for key, g in gradients.items():
        np.testing.assert_allclose(g, expected[key], err_msg=key, **TIGHT)
    directions = {key: draw(*array.shape) for key, array in parameters.items()}
    ends = [
        (run(*inputs, {key: array + step * directions[key] for key, array in parameters.items()})[0] * g_y).sum()
        for step in (1e-6, -1e-6)
    ]
    along = sum((gradients[key] * directions[key]).sum() for key in gradients)
    assert along == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6, abs=1e-6)


SRC_MASK = RNG.random((2, 1, 1, MEMORY)) > 0.3
SRC_MASK[..., 0] = True
CAUSAL = by_hand.causal_mask(TOKENS)


def test_heads_are_split_as_the_library_does_and_merged_again():
    x = draw(2, 5, 21)
    heads = by_hand.split_heads(x, 3)
    assert heads.shape == (2, 3, 5, 7) and (heads[:, 1] == x[..., 7:14]).all()
    assert (by_hand.merge_heads(heads) == x).all()


def test_encoder_layer():
    module, mask = make_model(dtype=torch.float64).encoder.layers[0], torch.tensor(SRC_MASK)
    run = partial(by_hand.encoder_layer, name="e", n_heads=3, mask=SRC_MASK)
    back = partial(by_hand.encoder_layer_backward, name="e")
    assert_module_backward(module, "e", run, back, [draw(2, MEMORY, WIDTH)], lambda x: module(x, mask))


def test_decoder_layer():
    module, masks = make_model(dtype=torch.float64).decoder.layers[0], (CAUSAL, SRC_MASK)
    run = partial(by_hand.decoder_layer, name="d", n_heads=3, tgt_mask=CAUSAL, memory_mask=SRC_MASK)
    back = partial(by_hand.decoder_layer_backward, name="d")
    inputs = [draw(2, TOKENS, WIDTH), draw(2, MEMORY, WIDTH)]
    tensors = [torch.tensor(mask) for mask in masks]
    assert_module_backward(module, "d", run, back, inputs, lambda x, memory: module(x, memory, *tensors))


def from_torch(model):
    """Return a model's sizes and its parameters as arrays, tied ones once."""
    fields = by_hand.Sizes.__dataclass_fields__
    sizes = by_hand.Sizes(**{key: value for key, value in model.config.to_dict().items() if key in fields})
    return sizes, {name: parameter.detach().numpy().copy() for name, parameter in model.named_parameters()}


def whole(tied, dtype=torch.float64):
    """Return a model in double precision, its positions too, and a padded batch for it."""
    model = make_model(dtype=dtype, tie_embeddings=tied, **({"tgt_vocab_size": 23} if tied else {}))
    tgt = targets(padded=True)
    return model, sources(), tgt % 23 if tied else tgt


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_every_gradient_of_the_whole_model_equals_autograd(tied, smoothing):
    model, src, tgt = whole(tied)
    sizes, parameters = from_torch(model)
    assert (src == 0).any() and (tgt == 0).any()
    logits, _ = by_hand.forward(parameters, sizes, src.numpy(), tgt[:, :-1].numpy())
    theirs = model(src, tgt[:, :-1])
    np.testing.assert_allclose(logits, theirs.detach(), **TIGHT)
    wanted = tl.translation_loss(theirs, tgt[:, 1:], pad_id=0, label_smoothing=smoothing)
    wanted.backward()
    loss, gradients = by_hand.loss_and_gradients(parameters, sizes, src.numpy(), tgt.numpy(), smoothing)
    assert loss == pytest.approx(wanted.item(), abs=1e-10)
    expected = {name: parameter.grad for name, parameter in model.named_parameters()}
    assert gradients.keys() == expected.keys()
    for name, g in gradients.items():
        assert np.abs(g).max() > 1e-6, name
        np.testing.assert_allclose(g, expected[name], err_msg=name, **TIGHT)


@pytest.mark.parametrize("tied", [False, True])
def test_new_parameters_have_the_names_shapes_and_sizes_of_the_library(tied):
    model = tl.Transformer(whole(tied)[0].config)
    sizes, theirs = from_torch(model)
    ours = by_hand.new_parameters(sizes, seed=1, dtype=np.float32)
    assert {name: array.shape for name, array in ours.items()} == {name: a.shape for name, a in theirs.items()}
    for name, array in ours.items():
        assert array.dtype == np.float32
        assert array.std() == pytest.approx(theirs[name].std(), rel=0.2, abs=1e-6), name
    assert all((ours[name] == other).all() for name, other in by_hand.new_parameters(sizes, 1, np.float32).items())


@pytest.mark.parametrize("tied", [False, True])
def test_the_first_twenty_steps_of_adam_coincide_with_pytorchs(tied):
    model, src, tgt = whole(tied)
    sizes, parameters = from_torch(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9)
    rate = schedules.make_schedule("cosine", total_steps=20, learning_rate=0.01, warmup_steps=5, d_model=30)
    wanted = []
    for step in range(1, 21):
        optimizer.param_groups[0]["lr"] = rate(step)
        optimizer.zero_grad()
        loss = tl.translation_loss(model(src, tgt[:, :-1]), tgt[:, 1:], pad_id=0, label_smoothing=0.1)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        wanted.append(loss.item())
    losses = by_hand.train(
        parameters,
        sizes,
        [(src.numpy(), tgt.numpy())] * 20,
        partial(by_hand.cosine_rate, total_steps=20, peak=0.01, warmup_steps=5),
        label_smoothing=0.1,
    )
    np.testing.assert_allclose(losses, wanted, rtol=0, atol=1e-8)
    assert losses[-1] < losses[0] - 0.5
    for name, parameter in model.named_parameters():
        np.testing.assert_allclose(parameters[name], parameter.detach(), rtol=0, atol=1e-7, err_msg=name)


def test_adam_takes_a_first_step_of_the_rate_whatever_the_gradient():
    parameters = {"a": np.zeros(3)}
    by_hand.Adam(parameters).step({"a": np.array([0.1, -1e-4, 7.0])}, rate=0.01)
    np.testing.assert_allclose(parameters["a"], [-0.01, 0.01, -0.01], rtol=1e-4)


def test_clipping_leaves_small_gradients_and_shortens_large_ones():
    small, large = {"a": np.array([0.3]), "b": np.array([[0.4]])}, {"a": np.array([3.0]), "b": np.array([[4.0]])}
    assert by_hand.clip(small) == small
    clipped = by_hand.clip(large, 2.0)
    assert clipped["a"][0] == pytest.approx(1.2, rel=1e-5) and clipped["b"][0, 0] == pytest.approx(1.6, rel=1e-5)


def test_the_schedule_is_the_library_s():
    for step in (1, 2, 5, 6, 17, 30, 31):
        arguments = (step, 31, 0.003, 5)
        assert by_hand.cosine_rate(*arguments) == pytest.approx(schedules.cosine_rate(*arguments), rel=1e-12)


@pytest.mark.parametrize("tied", [False, True])
def test_greedy_decoding_is_the_library_s(tied):
    model, src, _ = whole(tied)
    sizes, parameters = from_torch(model)
    for max_new_tokens in (1, 6):
        ours = by_hand.greedy(parameters, sizes, src.numpy(), max_new_tokens)
        assert ours.tolist() == tl.greedy_decode(model, src, max_new_tokens=max_new_tokens).tolist()


def test_greedy_decoding_ends_rows_at_eos():
    """A model that learned sentences of two lengths says each up to its eos, then padding, and stops."""
    parameters = by_hand.new_parameters(SMALL, seed=0)
    src, tgt = np.array([[3, 4], [5, 6]]), np.array([[1, 7, 2, 0, 0], [1, 8, 9, 10, 2]])
    by_hand.train(parameters, SMALL, [(src, tgt)] * 150, lambda step: 0.01)
    assert by_hand.greedy(parameters, SMALL, src, 9).tolist() == tgt.tolist()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_greedy_decoding_refuses_parameters_that_are_not_finite(value):
    parameters = by_hand.new_parameters(SMALL, seed=0)
    parameters["decoder.layers.0.feed_forward.expand.bias"][3] = value
    with pytest.raises(ValueError, match=rf"parameters must be finite, got {value} in decoder\.layers\.0\.feed"):
        by_hand.greedy(parameters, SMALL, np.array([[3, 4]]), 5)


@pytest.mark.parametrize("module", [by_hand, replacing])
def test_the_example_of_a_module(module):
    found = doctest.testmod(module)
    assert found.attempted and not found.failed


def test_single_precision_stays_single():
    parameters = by_hand.new_parameters(SMALL, dtype=np.float32)
    src, tgt = np.array([[3, 4, 0]]), np.array([[1, 5, 6, 2]])
    logits, _ = by_hand.forward(parameters, SMALL, src, tgt[:, :-1])
    _, gradients = by_hand.loss_and_gradients(parameters, SMALL, src, tgt, 0.1)
    by_hand.train(parameters, SMALL, [(src, tgt)] * 2, lambda step: 0.01)
    assert {array.dtype for array in (logits, *gradients.values(), *parameters.values())} == {np.dtype(np.float32)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"d_model": 9}, "d_model must be even and divisible by n_heads 3, got 9"),
        ({"d_model": 8}, "d_model must be even and divisible by n_heads 3, got 8"),
        ({"tie_embeddings": True}, "src_vocab_size and tgt_vocab_size must be equal for tie_embeddings, got 13 and 17"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(changes, message):
    fields = {name: getattr(SMALL, name) for name in by_hand.Sizes.__dataclass_fields__}
    with pytest.raises(ValueError, match=message):
        by_hand.Sizes(**{**fields, **changes})


WITHOUT_TORCH = """
import sys, types
sys.modules["torch"] = None  # as where it is not installed: an import raises
package = types.ModuleType("transformer_lib")  # whose own __init__ offers all of the library, PyTorch's models too
package.__path__ = [sys.argv[1]]
sys.modules["transformer_lib"] = package
import numpy as np
from transformer_lib import by_hand
from transformer_lib.by_hand import replacing
sizes = by_hand.Sizes(src_vocab_size=11, tgt_vocab_size=13, d_model=8, n_heads=2, n_layers=1, d_ff=16)
src, tgt = np.array([[5, 4, 3]]), np.array([[1, 3, 4, 5, 2]])
parameters = by_hand.new_parameters(sizes)
by_hand.train(parameters, sizes, [(src, tgt)] * 100, rate=lambda step: 0.01)
print(by_hand.greedy(parameters, sizes, src, 5), sorted(name for name in sys.modules if name.startswith("torch")))
"""


def test_it_trains_and_decodes_where_there_is_no_pytorch():
    command = [sys.executable, "-c", WITHOUT_TORCH, str(Path(tl.__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[[1 3 4 5 2]] ['torch']\n"  # the entry that forbids it


def test_other_functions_take_a_name_s_place_inside_the_block_alone():
    src, tgt = np.array([[3, 4, 5]]), np.array([[1, 5, 6, 2]])
    parameters = by_hand.new_parameters(SMALL)
    _, right = by_hand.loss_and_gradients(parameters, SMALL, src, tgt)
    with by_hand.replaced(relu_backward=lambda g_y, saved: 0 * g_y, layer_norm_backward=by_hand.layer_norm_backward):
        _, found = by_hand.loss_and_gradients(parameters, SMALL, src, tgt)
    name = "encoder.layers.0.feed_forward.expand.weight"
    assert not found[name].any() and right[name].any()
    with pytest.raises(KeyError), by_hand.replaced(relu_backward=lambda g_y, saved: g_y):
        raise KeyError
    _, again = by_hand.loss_and_gradients(parameters, SMALL, src, tgt)
    assert all((again[name] == g).all() for name, g in right.items())


@pytest.mark.parametrize("name", ["relu_backwards", "_rows", "SRC_TABLE"])
def test_a_name_that_is_no_function_of_the_package_is_refused(name):
    with (
        pytest.raises(ValueError, match=f"functions must be named like those of by_hand, got '{name}'"),
        by_hand.replaced(**{name: lambda *args: None}),
    ):
        pass
