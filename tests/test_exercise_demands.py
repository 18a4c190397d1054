"""What is demanded of an answer beside its values: 16.4 must not hold all scores, in whatever pieces."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from transformer_lib.course import exercises
from transformer_lib.course.exercises import Case, examine
from transformer_lib.course.exercises.model import Demand

PATIENT = 60.0
BLOCKS = exercises.get("16.4")


def scores_of(query, keys):
    return query @ keys.T / math.sqrt(query.shape[1])


def grid(query, key_blocks, value_blocks):
    return scores_of(query, torch.cat(key_blocks)).softmax(dim=-1) @ torch.cat(value_blocks)


def fused(query, key_blocks, value_blocks):
    return torch.nn.functional.scaled_dot_product_attention(query, torch.cat(key_blocks), torch.cat(value_blocks))


def kept(query, key_blocks, value_blocks):
    scores = [scores_of(query, keys) for keys in key_blocks]
    largest = torch.stack([block.amax(dim=-1) for block in scores]).amax(dim=0)[:, None]
    grown = [(block - largest).exp() for block in scores]
    blends = sum(block @ values for block, values in zip(grown, value_blocks, strict=True))
    return blends / sum(block.sum(dim=-1, keepdim=True) for block in grown)


def in_two_passes(query, key_blocks, value_blocks):
    largest = torch.stack([scores_of(query, keys).amax(dim=-1) for keys in key_blocks]).amax(dim=0)[:, None]
    total = blend = 0.0
    for keys, values in zip(key_blocks, value_blocks, strict=True):
        grown = (scores_of(query, keys) - largest).exp()
        total, blend = total + grown.sum(dim=-1, keepdim=True), blend + grown @ values
    return blend / total


def in_other_blocks(query, key_blocks, value_blocks):
    keys, values = torch.cat(key_blocks).split(4), torch.cat(value_blocks).split(4)
    return torch.cat([in_two_passes(row, keys, values) for row in query.split(3)])


@pytest.mark.parametrize("function", [grid, fused])
def test_the_whole_grid_is_named_with_its_size(function):
    verdict = examine(BLOCKS, function, time_limit=PATIENT)
    assert not verdict and "you built the whole grid: a tensor of 1,547 numbers" in verdict.diagnosis
    assert "one block has 91 scores" in verdict.text


def test_blocks_that_are_all_kept_are_the_grid_in_pieces():
    verdict = examine(BLOCKS, kept, time_limit=PATIENT)
    assert not verdict and "you kept the scores of all blocks" in verdict.diagnosis


@pytest.mark.parametrize("function", [in_two_passes, in_other_blocks])
def test_smaller_blocks_and_two_passes_are_right(function):
    verdict = examine(BLOCKS, function, time_limit=PATIENT)
    assert verdict and "and no grid was built" in verdict.text


def test_a_wrong_answer_is_told_what_is_wrong_with_its_values_first():
    verdict = examine(BLOCKS, lambda query, keys, values: 2 * grid(query, keys, values), time_limit=PATIENT)
    assert not verdict and "grid" not in verdict.diagnosis


def test_what_cannot_be_measured_is_let_pass():
    def broken(function, *args):
        raise RuntimeError("no measure")

    demand = Demand(lambda: Case("any", (1, 2)), broken, lambda measured: "never asked", "and measured")
    assert examine(replace(BLOCKS, demands=(demand,)), in_two_passes, time_limit=PATIENT)
