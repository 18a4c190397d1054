"""A right answer passes in whatever style it is written: each exercise is solved here in another one."""

from __future__ import annotations

import importlib
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from transformer_lib.course import exercises


def scaled_scores(query, key):
    return torch.matmul(query / math.sqrt(query.size(-1)), key.transpose(-1, -2))


def stable_softmax(scores):
    scores = scores - scores.amax(dim=-1, keepdim=True)
    exponentials = scores.exp()
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


def stable_softmax_in_numpy(scores):
    x = scores.numpy()
    x = np.exp(x - x.max(axis=-1, keepdims=True))
    return torch.from_numpy(x / x.sum(axis=-1, keepdims=True))


def masked_attention(query, key, value, mask):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    visible = scores.detach().masked_fill(~mask, torch.finfo(scores.dtype).min)
    exponentials = torch.exp((scores - visible.amax(-1, keepdim=True)).clamp(max=0)) * mask
    total = exponentials.sum(-1, keepdim=True)
    weights = exponentials / torch.where(total == 0, torch.ones_like(total), total)
    return weights @ value, weights


def masked_attention_filled(query, key, value, mask):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    weights = torch.softmax(scores.masked_fill(~mask, float("-inf")), -1).nan_to_num(0.0)
    return [weights @ value, weights]


def dot_product_deviation(d_k, mean_q, var_q, mean_k, var_k):
    of_one_term = var_q * var_k + var_q * mean_k**2 + var_k * mean_q**2
    return math.sqrt(d_k) * math.sqrt(of_one_term)


def dot_product_deviation_as_a_tensor(d_k, mean_q, var_q, mean_k, var_k):
    second_moments = torch.tensor([var_q + mean_q**2, var_k + mean_k**2], dtype=torch.float64).prod()
    return (d_k * (second_moments - (mean_q * mean_k) ** 2)).sqrt()


def softmax_backward(weights, grad_weights):
    dot = torch.einsum("...k,...k->...", weights, grad_weights)
    return weights * grad_weights - weights * dot.unsqueeze(-1)


def attention_backward(query, key, value, grad_output):
    root = math.sqrt(query.shape[-1])
    weights = F.softmax(query @ key.mT / root, dim=-1)
    grad_weights = torch.einsum("...iv,...jv->...ij", grad_output, value)
    grad_scores = weights * (grad_weights - (weights * grad_weights).sum(-1, keepdim=True)) / root
    return (
        torch.einsum("...ij,...jd->...id", grad_scores, key),
        torch.einsum("...ij,...id->...jd", grad_scores, query),
        torch.einsum("...ij,...iv->...jv", weights, grad_output),
    )


STYLES = [
    ("04.1", scaled_scores),
    ("04.3", stable_softmax),
    ("04.3", stable_softmax_in_numpy),
    ("04.4", masked_attention),
    ("04.4", masked_attention_filled),
    ("04.2", dot_product_deviation),
    ("04.2", dot_product_deviation_as_a_tensor),
    ("04.5", softmax_backward),
    ("04.6", attention_backward),
]


# Each notebook has a file of its own: exercise_styles_NN, with test_ in front if it holds further tests.
FILES = sorted(Path(__file__).parent.glob("*exercise_styles_*.py"))
BY_FILE = {file.stem: importlib.import_module(file.stem).STYLES for file in FILES}
ALL = [*STYLES, *(style for styles in BY_FILE.values() for style in styles)]


@pytest.mark.parametrize(("exercise_id", "function"), ALL)
def test_a_right_answer_in_another_style_passes(exercise_id, function):
    verdict = exercises.examine(exercises.get(exercise_id), function, time_limit=60.0)  # the machine may be busy
    assert verdict.status == "passed", verdict.text


@pytest.mark.parametrize("stem", sorted(BY_FILE.keys()))
def test_a_notebooks_file_solves_each_of_its_exercises_and_no_other(stem):
    here = {exercise.id for exercise in exercises.all_exercises() if exercise.notebook == stem.split("_")[-1]}
    assert here == {exercise_id for exercise_id, _ in BY_FILE[stem]}


def test_every_exercise_is_solved_in_another_style():
    assert {name for name, _ in ALL} == {exercise.id for exercise in exercises.all_exercises()}
