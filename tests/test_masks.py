from __future__ import annotations

import pytest
import torch

import transformer_lib as tl

pytestmark = pytest.mark.fast


def test_padding_mask_marks_the_real_keys():
    ids = torch.tensor([[5, 7, 0], [3, 0, 0]])
    mask = tl.padding_mask(ids, 0)
    assert mask.shape == (2, 1, 1, 3) and mask.dtype == torch.bool
    assert mask[:, 0, 0].tolist() == [[True, True, False], [True, False, False]]


def test_padding_mask_follows_the_pad_id():
    assert tl.padding_mask(torch.tensor([[5, 7, 0]]), 5).flatten().tolist() == [False, True, True]


@pytest.mark.parametrize(("q_len", "k_len"), [(1, 1), (5, 5), (3, 7), (1, 11)])
def test_causal_mask_against_a_loop(q_len, k_len):
    mask = tl.causal_mask(q_len, k_len)
    assert mask.shape == (1, 1, q_len, k_len) and mask.dtype == torch.bool
    for i in range(q_len):
        for j in range(k_len):
            # The queries are the last q_len of k_len positions: query i stands at position k_len - q_len + i.
            assert bool(mask[0, 0, i, j]) == (j <= k_len - q_len + i)


def test_causal_mask_is_square_by_default():
    assert torch.equal(tl.causal_mask(5), tl.causal_mask(5, 5))


def test_masks_combine():
    ids = torch.tensor([[5, 7, 3, 0], [5, 0, 0, 0]])
    both = tl.causal_mask(4) & tl.padding_mask(ids, 0)
    assert both.shape == (2, 1, 4, 4)
    assert both[0, 0].int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 0]]
    assert both[1, 0].int().tolist() == [[1, 0, 0, 0]] * 4


@pytest.mark.parametrize(
    ("lengths", "error", "message"),
    [
        ((7, 5), ValueError, "q_len must not exceed k_len, got q_len=7, k_len=5"),
        ((0,), ValueError, "q_len must be at least 1, got 0"),
        ((3, -1), ValueError, "k_len must be at least 1, got -1"),
        ((3.0,), TypeError, "q_len must be an int, got 3.0"),
    ],
)
def test_bad_lengths_are_refused(lengths, error, message):
    with pytest.raises(error, match=message):
        tl.causal_mask(*lengths)


def test_bad_ids_are_refused():
    with pytest.raises(ValueError, match=r"ids must have 2 axes, got 1: shape \(3,\)"):
        tl.padding_mask(torch.tensor([1, 2, 3]), 0)
    with pytest.raises(TypeError, match="ids must be a torch.Tensor, got list"):
        tl.padding_mask([[1, 2]], 0)


def test_prefix_mask_against_a_loop():
    lengths = torch.tensor([0, 2, 5, 7])
    mask = tl.prefix_mask(lengths, 7)
    assert mask.shape == (4, 1, 7, 7) and mask.dtype == torch.bool
    for row, length in enumerate(lengths.tolist()):
        for i in range(7):
            assert mask[row, 0, i].tolist() == [j < length or j <= i for j in range(7)]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.uint16, torch.uint64])
def test_prefix_lengths_of_any_integer_type(dtype):
    lengths = torch.tensor([0, 2, 7])
    assert torch.equal(tl.prefix_mask(lengths.to(dtype), 7), tl.prefix_mask(lengths, 7))


def test_prefix_mask_lies_between_causal_and_full():
    none, whole = tl.prefix_mask(torch.tensor([0, 5]), 5)
    assert torch.equal(none[None], tl.causal_mask(5)) and whole.all()
    assert torch.equal(tl.prefix_mask(torch.tensor([1]), 5), tl.causal_mask(5))  # the first token is seen by all anyway


@pytest.mark.parametrize(
    ("lengths", "seq_len", "error", "message"),
    [
        ([3, 1], 5, TypeError, "lengths must be a torch.Tensor, got list"),
        (torch.tensor(3), 5, ValueError, "lengths must have 1 axes, got 0"),
        (torch.tensor([3.0]), 5, TypeError, "lengths must be whole numbers, got torch.float32"),
        (torch.tensor([True]), 5, TypeError, "lengths must be whole numbers, got torch.bool"),
        (torch.tensor([3, 6]), 5, ValueError, r"lengths must be from 0 to seq_len = 5, got \[3, 6\]"),
        (torch.tensor([-1]), 5, ValueError, r"lengths must be from 0 to seq_len = 5, got \[-1\]"),
        (torch.tensor([3]), 0, ValueError, "seq_len must be at least 1, got 0"),
    ],
)
def test_prefix_mask_names_what_is_wrong(lengths, seq_len, error, message):
    with pytest.raises(error, match=message):
        tl.prefix_mask(lengths, seq_len)
