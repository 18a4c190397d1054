"""The tape of notebook 18: operations and the whole Transformer beside autograd, and the order of by_hand's calls."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from transformer_lib import by_hand
from transformer_lib.course.lab import beside_torch, gradient_slips, tape, written_out
from transformer_lib.course.lab.tape import Node

pytestmark = pytest.mark.fast

SIZES = by_hand.Sizes(src_vocab_size=13, tgt_vocab_size=17, d_model=6, n_heads=3, n_layers=2, d_ff=7)
SRC = np.array([[5, 9, 3, 12, 7], [8, 6, 11, 0, 0]])
TGT = np.array([[1, 4, 7, 16, 3, 9, 2], [1, 11, 6, 2, 0, 0, 0]])
MASK = np.array([[True, False, True]])

OPERATIONS = {
    "add": (lambda a, b: a + b, (5, 3), (3,)),
    "subtract": (lambda a, b: a - b, (5, 1), (7,)),
    "multiply": (lambda a, b: a * b, (), (2, 3)),
    "divide": (lambda a, b: a / b, (5, 3), (5, 1)),
    "numbers": (lambda a, b: a * 3 + b / 7 - 2, (5,), (5,)),
    "matrices": (lambda a, b: a @ b, (5, 3), (3, 7)),
    "stacks of matrices": (lambda a, b: a @ b, (2, 1, 5, 3), (7, 3, 11)),
    "relu": (lambda a, b: a.relu() + b.relu(), (5,), (3, 1)),
    "exp, log, sqrt": (lambda a, b: a.exp() + (b * b + 1.0).log() + (a * a + 1.0).sqrt(), (5,), (5,)),
    "reshape": (lambda a, b: a.reshape(5, 3) @ b, (3, 5), (3, 2)),
    "swapped axes": (lambda a, b: a.swapaxes(0, 1) * b, (3, 5), (5, 3)),
    "picked rows": (lambda a, b: a[np.array([[2, 0, 2]])] * b, (3, 5), (5,)),
}


def draw(*shapes, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape) for shape in shapes]


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_is_that_of_autograd(name):
    operation, *shapes = OPERATIONS[name]
    arrays = draw(*shapes)
    weigh = draw(operation(*map(Node, arrays)).value.shape, seed=1)[0]
    found = tape.gradients(lambda *nodes: (operation(*nodes) * weigh).sum(), arrays)
    theirs = tape.by_autograd(lambda *tensors: (operation(*tensors) * torch.tensor(weigh)).sum(), arrays)
    for ours, right, array in zip(found, theirs, arrays, strict=True):
        assert ours.shape == right.shape == array.shape
        np.testing.assert_allclose(ours, right, rtol=1e-12, atol=1e-14)


def test_sums_and_means_keep_an_axis_of_length_1_and_hidden_entries_get_no_gradient():
    (array,) = draw((2, 3))
    assert Node(array).sum(1).value.shape == (2, 1) and Node(array).sum().value.shape == ()
    np.testing.assert_allclose(Node(array).mean(-1).value, array.mean(-1, keepdims=True))
    assert np.isneginf(Node(array).hide(MASK).value[:, 1]).all()
    [found] = tape.gradients(lambda a: (tape.softmax(a.hide(MASK)) * np.array([3.0, 5.0, 7.0])).sum(), [array])
    assert not found[:, 1].any() and found[:, 0].all()


def test_an_array_beside_a_node_is_a_node_and_single_precision_stays():
    node = np.ones(3, dtype=np.float32) * Node(np.ones(3, dtype=np.float32))
    assert isinstance(node, Node) and node.value.dtype == np.float32
    assert (node * 0.5 + 1).value.dtype == np.float32 and Node([1, 2]).value.dtype == np.float64


def test_the_walk_begins_at_a_number():
    with pytest.raises(ValueError, match=r"last must have no axes, got shape \[3\]"):
        tape.walk_back(Node(np.ones(3)))


def test_each_node_comes_after_its_parents_and_once():
    a = Node(1.0)
    x = a * a
    last = x + x * a
    order = tape.in_order(last)
    assert len(order) == len(set(order)) == 4 and order[0] is a and order[-1] is last


@pytest.mark.parametrize("seed", range(20))
def test_random_functions_have_the_gradients_of_autograd(seed):
    f, arrays = tape.random_function(seed), tape.random_arrays(seed)
    assert [array.shape for array in arrays] == [(3, 5), (5,), (3, 1)]
    for ours, right in zip(tape.gradients(f, arrays), tape.by_autograd(f, arrays), strict=True):
        np.testing.assert_allclose(ours, right, rtol=1e-12, atol=1e-12 * (1 + np.abs(right).max()))


def test_layer_norm_and_softmax_are_those_of_by_hand():
    x, gain, bias = draw((2, 5, 7), (7,), (7,))
    np.testing.assert_allclose(
        tape.layer_norm(Node(x), Node(gain), Node(bias)).value, by_hand.layer_norm(x, gain, bias)[0], atol=1e-14
    )
    np.testing.assert_allclose(tape.softmax(Node(x)).value, by_hand.softmax(x)[0], atol=1e-15)


@pytest.mark.parametrize("tied", [False, True])
def test_the_transformer_on_the_tape_is_that_of_by_hand(tied):
    vocabulary = {"src_vocab_size": 17} if tied else {}
    sizes = by_hand.Sizes(**{**SIZES.__dict__, **vocabulary, "tie_embeddings": tied})
    parameters = by_hand.new_parameters(sizes)
    loss, wanted = by_hand.loss_and_gradients(parameters, sizes, SRC, TGT, label_smoothing=0.1)
    ours, found = tape.loss_and_gradients(tape.gradients, parameters, sizes, SRC, TGT, label_smoothing=0.1)
    assert ours == pytest.approx(loss, abs=1e-13) and found.keys() == wanted.keys()
    for name, g in wanted.items():
        np.testing.assert_allclose(found[name], g, rtol=0, atol=1e-14)


def test_training_on_the_tape_is_that_of_by_hand():
    results = []
    for train in (by_hand.train, lambda *args: tape.train(tape.gradients, *args)):
        parameters = by_hand.new_parameters(SIZES)
        losses = train(parameters, SIZES, [(SRC, TGT)] * 3, lambda step: 0.01)
        results.append((losses, parameters))
    np.testing.assert_allclose(*(losses for losses, _ in results), atol=1e-12)
    for name, array in results[0][1].items():
        np.testing.assert_allclose(results[1][1][name], array, rtol=0, atol=1e-9)


def test_autograd_finds_for_the_twin_what_the_tape_does():
    model, parameters = beside_torch.twins()
    src, tgt = gradient_slips.letters(3, np.random.default_rng(0))
    theirs = beside_torch.gradients(model, src, tgt)
    _, found = tape.loss_and_gradients(tape.gradients, parameters, gradient_slips.SIZES, src, tgt)
    assert theirs.keys() == found.keys()
    for name, g in theirs.items():
        np.testing.assert_allclose(found[name], g, rtol=0, atol=1e-14)


def test_the_clock_counts_the_tape_too():
    found = beside_torch.clock(gradient_slips.SIZES, list(gradient_slips.batches(2, seed=0)), tape.gradients)
    assert list(found) == ["by hand", "PyTorch", "the tape"] and all(0 < seconds < 10 for seconds in found.values())


def test_by_hand_goes_back_in_an_order_in_which_nothing_has_to_wait():
    calls = written_out.calls(by_hand.new_parameters(SIZES), SIZES, SRC, TGT)
    assert len(calls) == 56 and sorted(call.back for call in calls) == list(range(1, 57))
    assert (calls[0].part, calls[0].back, calls[-1].part, calls[-1].back) == ("embed", 56, "cross_entropy", 1)
    for call in calls:  # within a layer and between layers; queries, keys and values do not wait for one another
        later = [other for other in calls if other.forward > call.forward + 2]
        assert all(other.back < call.back for other in later)
    points = written_out.points(calls)
    assert list(points) == ["reversed", "out of line: w_q, w_v"]
    assert [len(numbers) for numbers, _ in points.values()] == [44, 12]


def test_the_scene_as_lists_is_the_scene():
    arrays, loss, found_with = gradient_slips.as_lists(size=3)
    parameters, src, tgt = gradient_slips.scene(0)
    wanted, right = by_hand.loss_and_gradients(parameters, gradient_slips.SIZES, src[:3], tgt[:3])
    assert loss(arrays) == pytest.approx(wanted, abs=1e-14) and len(arrays) == len(right) == 63
    for found, name in zip(found_with("none"), parameters, strict=True):
        np.testing.assert_array_equal(found, right[name])
    slipped = zip(found_with("ReLU lets everything through"), found_with("none"), strict=True)
    assert sum(not np.allclose(*pair) for pair in slipped) > 50


def test_the_shares_are_those_of_the_stored_runs():
    assert list(gradient_slips.shares("right"))[:2] == ["no slip", "1 embedding: one of several places"]
    assert all(len(runs) == 3 for runs in gradient_slips.shares("right later").values())
