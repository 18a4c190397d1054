"""The links of the chain from a soft lookup to PyTorch's module: equal layers are equal, others are not."""

from __future__ import annotations

import pytest
import torch

import transformer_lib as tl
from transformer_lib.course.lab import links

MASK = tl.causal_mask(7)[0, 0]


attend = links.attend(MASK)


def every_link():
    return {
        "one by one": links.one_by_one(lambda *qkv: tl.scaled_dot_product_attention(*qkv, MASK)[0]),
        "at once": links.at_once(attend),
        "F": links.torch_function(MASK),
        "library": links.library(MASK),
        "torch": links.pytorch(~MASK),
    }


def test_all_links_compute_the_same_forward_and_backward():
    given = links.inputs(7)
    assert [tuple(tensor.shape) for tensor in given] == [(2, 7, 12), *[(12, 12)] * 4]
    far = links.differences(every_link(), given)
    assert list(far) == ["at once", "F", "library", "torch"] and max(far.values()) < 1e-12


def test_another_mask_or_another_root_is_noticed():
    given = links.inputs(7, seed=3)
    for other in (links.pytorch(MASK), links.at_once(lambda q, k, v: attend(2 * q, k, v))):
        assert links.differences({"right": links.library(MASK), "other": other}, given)["other"] > 1e-3


def test_a_gradient_that_differs_is_noticed():
    given = links.inputs(7)

    def detached(query, key, value):
        return attend((query + query.detach()) / 2, key, value)

    far = links.differences({"right": links.at_once(attend), "other": links.at_once(detached)}, given)
    assert far["other"] > 1e-4


def test_the_heads_are_blocks_of_columns():
    x, *matrices = links.inputs(5)
    seen = []
    links.one_by_one(lambda q, k, v: seen.append(q) or v)(x, *matrices)
    assert len(seen) == 2 * links.HEADS
    torch.testing.assert_close(seen[1], x[0] @ matrices[0][:, 4:8])


def test_one_layer_alone_cannot_be_compared():
    with pytest.raises(ValueError, match="at least two, got 1"):
        links.differences({"alone": links.library(MASK)}, links.inputs(7))
