"""W26, gradient descent: its steps are those of autograd, and its map shows the loss where it is."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import transformer_lib as tl
from svg_parts import centre, parts, points
from transformer_lib.course.figures.widgets.descent_panel import (
    LIMITS,
    PRICES,
    SCORES,
    WANTED,
    _outlines,
    descend,
    draw_descent,
    loss_and_gradient,
    lowest,
)


def loss_by_torch(parameters):
    quotes = torch.softmax(parameters[0] * torch.tensor(SCORES), dim=-1) @ torch.tensor(PRICES) + parameters[1]
    return (quotes - torch.tensor(WANTED)).square().mean()


@pytest.mark.parametrize(("rate", "start"), [(0.05, (1.0, 0.0)), (0.2, (-1.0, 2.0)), (1.1, (3.0, -2.0))])
def test_each_step_is_that_of_autograd(rate, start):
    at = torch.tensor(start, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([at], lr=rate)
    path, losses = descend(rate, 8, *start)
    for place, expected in zip(path, losses, strict=True):
        np.testing.assert_allclose(at.detach(), place, rtol=1e-8)
        optimizer.zero_grad()
        loss = loss_by_torch(at)
        assert math.isclose(loss.item(), expected, rel_tol=1e-8)
        loss.backward()
        optimizer.step()


def test_the_lowest_place_is_lower_than_its_neighbours_and_flat():
    loss, gradient = loss_and_gradient(*lowest())
    assert np.abs(gradient).max() < 1e-9
    near = [loss_and_gradient(lowest()[0] + a, lowest()[1] + b)[0] for a in (-0.01, 0, 0.01) for b in (-0.01, 0, 0.01)]
    assert sorted(near)[0] == pytest.approx(loss, abs=1e-12) and sorted(near)[1] > loss + 1e-6


def test_the_loss_is_the_same_all_along_an_outline():
    for level, lines in _outlines().items():
        assert lines
        for c, b in np.concatenate(lines):
            assert loss_and_gradient(c, b)[0] == pytest.approx(level, rel=1e-9)


def test_the_path_stands_on_the_map_where_its_numbers_are():
    body = draw_descent(0.05, 20, 1.0, 0.0).body
    frame = next(part for part in parts(body, "rect") if part.get("fill") == "none")
    (left, right), (low, high) = LIMITS
    width, height = float(frame.get("width")), float(frame.get("height"))
    walk = points(parts(body, "polyline")[0])
    expected = [
        (width * (c - left) / (right - left), height * (high - b) / (high - low)) for c, b in descend(0.05, 20, 1, 0)[0]
    ]
    np.testing.assert_allclose(walk, expected, atol=0.06)
    assert len(walk) == 21
    assert centre(parts(body, "circle")[0]) == walk[1]  # a dot for each step; the ring and the last dot come after


def test_too_large_a_rate_diverges_and_a_small_one_arrives():
    losses = {rate: descend(rate, 60, 1.0, 0.0)[1] for rate in (0.001, 0.05, 0.1, 1.1)}
    assert (np.diff(losses[0.05]) < 0).all() and losses[0.05][-1] < 1e-3
    assert losses[0.001][-1] > 0.5
    assert (np.diff(losses[0.1]) > 0).any() and losses[0.1][-1] < 1
    assert losses[1.1][-1] > 1e9


def test_what_it_says_follows_the_controls():
    panel = tl.widgets.gradient_descent()
    start, end = "from c 1.00, b 0.00, loss 1.27", "to c 0.54, b 0.75, loss 0.0427"
    assert panel.picture.says == f"learning rate 0.05, steps 20: {start} {end}"
    panel.set(rate=1.1, steps=60)
    assert panel.picture.says.endswith("loss 3.7 × 10⁹")
    assert panel.picture.table[-1][0] == 60
    panel.set(steps=0, sharpness=3.0)
    assert panel.picture.says.endswith("from c 3.00, b 0.00, loss 3.13 to c 3.00, b 0.00, loss 3.13")
