"""W33, gathering: the paths are repeated attention, and what the line says is true of the last round."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from transformer_lib.course.figures import widgets
from transformer_lib.course.figures.widgets.gathering_panel import LAST, paths


def tokens(n: int = 7, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, 2))


def test_each_round_is_attention_of_the_tokens_to_themselves():
    X = torch.from_numpy(tokens())
    steps = paths(X.numpy(), 5)
    assert steps.shape == (6, 7, 2)
    for before, after in zip(steps[:-1], steps[1:], strict=True):
        at = torch.from_numpy(before)
        np.testing.assert_allclose(after, torch.softmax(at @ at.T, dim=-1) @ at, rtol=0, atol=1e-12)


def test_short_tokens_become_one_and_long_ones_do_not():
    panel = widgets.gathering(0.5 * tokens(), rounds=LAST)
    assert "1 different token, the furthest two 0.00 apart" in panel.picture.says
    assert "1 different token," not in panel.set(length=4.0).picture.says


def test_the_table_has_every_round_and_the_largest_distance():
    X = tokens(3)
    table = widgets.gathering(X, rounds=2).picture.table
    widest = max(np.linalg.norm(a - b) for a in X for b in X)
    assert table[1] == [0, 3, f"{widest:.2f}"] and [row[0] for row in table[1:]] == [0, 1, 2]


def test_nothing_has_moved_before_the_first_round():
    picture = widgets.gathering(tokens(5)).picture
    assert picture.says.startswith("after 0 rounds: 5 different tokens")
    with pytest.raises(ValueError, match="X must be 2 to 20 tokens"):
        widgets.gathering(tokens(1))
