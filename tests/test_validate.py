from __future__ import annotations

import pytest
import torch

from transformer_lib import _validate as check

pytestmark = pytest.mark.fast


def test_an_int_in_range_is_returned():
    assert check.check_int("n", 1) == 1
    assert check.check_int("n", 0, minimum=0) == 0


@pytest.mark.parametrize("value", [1.0, "3", True, None])
def test_what_is_no_int_is_refused(value):
    with pytest.raises(TypeError, match=f"n must be an int, got {value!r} of type {type(value).__name__}"):
        check.check_int("n", value)


@pytest.mark.parametrize(("value", "minimum"), [(0, 1), (-7, 1), (-1, 0), (1, 2)])
def test_an_int_below_the_minimum_is_refused(value, minimum):
    with pytest.raises(ValueError, match=f"n must be at least {minimum}, got {value}"):
        check.check_int("n", value, minimum=minimum)


def test_a_fraction_is_returned_as_a_float():
    assert check.check_fraction("p", 0) == 0.0 and isinstance(check.check_fraction("p", 0), float)
    assert check.check_fraction("p", 0.75) == 0.75
    assert check.check_fraction("p", 1, below_one=False) == 1.0


@pytest.mark.parametrize("value", [-0.1, 1, 1.5, float("nan"), float("inf")])
def test_a_fraction_out_of_range_is_refused(value):
    with pytest.raises(ValueError, match=rf"p must lie in \[0, 1\), got {value}"):
        check.check_fraction("p", value)


def test_one_is_the_end_of_a_closed_range():
    with pytest.raises(ValueError, match=r"p must lie in \[0, 1\], got 1.01"):
        check.check_fraction("p", 1.01, below_one=False)


@pytest.mark.parametrize("value", ["0.5", None, False])
def test_what_is_no_fraction_is_refused(value):
    with pytest.raises(TypeError, match=f"p must be a number, got {value!r}"):
        check.check_fraction("p", value)


def test_a_choice():
    assert check.check_choice("kind", "a", ("a", "b")) == "a"
    with pytest.raises(ValueError, match="kind must be one of 'a', 'b', got 'c'"):
        check.check_choice("kind", "c", ("a", "b"))


def test_a_tensor_of_the_right_rank_is_returned():
    x = torch.zeros(2, 3)
    assert check.check_tensor("x", x, rank=2) is x
    assert check.check_tensor("x", x, min_rank=1) is x


def test_what_is_no_tensor_is_refused():
    with pytest.raises(TypeError, match=r"x must be a torch.Tensor, got list"):
        check.check_tensor("x", [[1.0]])


def test_a_tensor_of_the_wrong_rank_is_refused():
    with pytest.raises(ValueError, match=r"x must have 3 axes, got 2: shape \(2, 3\)"):
        check.check_tensor("x", torch.zeros(2, 3), rank=3)
    with pytest.raises(ValueError, match=r"x must have at least 3 axes, got 2: shape \(2, 3\)"):
        check.check_tensor("x", torch.zeros(2, 3), min_rank=3)


def test_a_width():
    x = torch.zeros(2, 3)
    assert check.check_width("x", x, 3, "d_model") is x
    with pytest.raises(ValueError, match=r"x must end in d_model = 5 features, got 3: shape \(2, 3\)"):
        check.check_width("x", x, 5, "d_model")


def test_a_sequence():
    x = torch.zeros(2, 3, 5)
    assert check.check_sequence("x", x, 5) is x
    with pytest.raises(ValueError, match="x must have 3 axes"):
        check.check_sequence("x", x[0], 5)
    with pytest.raises(ValueError, match="x must end in d_model = 7 features"):
        check.check_sequence("x", x, 7)


@pytest.mark.parametrize("shape", [(0, 3, 5), (2, 0, 5)])
def test_an_empty_sequence_is_refused(shape):
    with pytest.raises(ValueError, match="x must not be empty, got shape"):
        check.check_sequence("x", torch.zeros(shape), 5)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
def test_ids_of_any_integer_type(dtype):
    ids = torch.tensor([[0, 6, 3]], dtype=dtype)
    assert check.check_ids("ids", ids, 7, max_len=3) is ids


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.complex64])
def test_ids_that_are_no_integers_are_refused(dtype):
    with pytest.raises(TypeError, match=f"ids must hold integer token ids, got dtype {dtype}"):
        check.check_ids("ids", torch.zeros(2, 3, dtype=dtype), 7)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (torch.tensor([1, 2]), "ids must have 2 axes, got 1"),
        (torch.zeros(0, 3, dtype=torch.long), r"ids must not be empty, got shape \(0, 3\)"),
        (torch.zeros(3, 0, dtype=torch.long), r"ids must not be empty, got shape \(3, 0\)"),
        (torch.zeros(2, 6, dtype=torch.long), "ids has 6 tokens, more than max_len = 5"),
        (torch.tensor([[3, 7]]), r"ids must hold ids in \[0, 7\), got values from 3 to 7"),
        (torch.tensor([[-1, 3]]), r"ids must hold ids in \[0, 7\), got values from -1 to 3"),
    ],
)
def test_bad_ids_are_refused(ids, message):
    with pytest.raises(ValueError, match=message):
        check.check_ids("ids", ids, 7, max_len=5)


def test_ids_that_are_no_tensor_are_refused():
    with pytest.raises(TypeError, match="ids must be a torch.Tensor, got list"):
        check.check_ids("ids", [[1, 2]], 7)


@pytest.mark.parametrize("shape", [(2, 3, 5, 7), (1, 1, 5, 7), (5, 7), (7,), (2, 1, 1, 7)])
def test_a_mask_that_broadcasts(shape):
    mask = torch.ones(shape, dtype=torch.bool)
    assert check.check_mask("mask", mask, (2, 3, 5, 7)) is mask


@pytest.mark.parametrize("shape", [(5,), (5, 5), (2, 5, 7), (1, 2, 3, 5, 7)])
def test_a_mask_that_does_not_broadcast_is_refused(shape):
    with pytest.raises(ValueError, match=r"mask must broadcast to the scores' shape \(2, 3, 5, 7\), got "):
        check.check_mask("mask", torch.ones(shape, dtype=torch.bool), (2, 3, 5, 7))


def test_a_mask_must_not_enlarge_the_scores():
    with pytest.raises(ValueError, match=r"mask must broadcast to the scores' shape \(1, 5, 7\), got \(2, 5, 7\)"):
        check.check_mask("mask", torch.ones(2, 5, 7, dtype=torch.bool), (1, 5, 7))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8])
def test_a_mask_that_is_not_boolean_is_refused(dtype):
    with pytest.raises(TypeError, match=f"mask must be boolean, True = may attend, got dtype {dtype}"):
        check.check_mask("mask", torch.ones(5, 7, dtype=dtype))
