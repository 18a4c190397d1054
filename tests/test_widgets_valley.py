"""W35, the narrow valley: its walks are those of PyTorch's optimisers, and the panel says where they end."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from svg_parts import parts, points
from transformer_lib.course.figures.plotting import plot_valley
from transformer_lib.course.figures.widgets import valley as panel_of
from transformer_lib.course.lab import valley

MAKERS = {
    "SGD": lambda at: torch.optim.SGD([at], lr=0.03),
    "momentum": lambda at: torch.optim.SGD([at], lr=0.03, momentum=0.7),
    "Adam": lambda at: torch.optim.Adam([at], lr=0.03, betas=(0.7, valley.BETA_2), eps=valley.EPS),
}


@pytest.mark.parametrize("name", valley.OPTIMIZERS)
def test_a_walk_is_pytorchs(name):
    at = torch.tensor(valley.START, dtype=torch.float64, requires_grad=True)
    optimizer, expected = MAKERS[name](at), [at.tolist()]
    for _ in range(11):
        optimizer.zero_grad()
        valley.loss(at).backward()
        optimizer.step()
        expected.append(at.tolist())
    np.testing.assert_allclose(valley.walk(name, 0.03, 11, 0.7), expected, rtol=1e-9, atol=1e-12)


def test_another_optimizer_is_refused():
    with pytest.raises(ValueError, match="optimizer must be one of 'SGD', 'momentum', 'Adam', got 'AdamW'"):
        valley.walk("AdamW", 0.1, 3)


def test_noise_is_the_same_for_the_same_seed_and_keeps_a_walk_from_resting():
    first, again, other = (valley.walk("SGD", 0.03, 90, noise=4.0, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    noisy, calm = (valley.walk("SGD", 0.03, 300, noise=noise)[200:] for noise in (4.0, 0.0))
    assert valley.loss(noisy).mean() > 100 * valley.loss(calm).mean()


def test_a_falling_rate_ends_lower_than_any_constant_one():
    falling = [1 - step / 200 for step in range(200)]
    assert valley.after(falling) < 0.6 * min(valley.after([share / 20] * 200) for share in range(1, 21))


def test_the_panel_draws_the_walk_and_says_where_it_ends():
    panel = panel_of(steps=7)
    path = valley.walk("SGD", 0.03, 7)
    assert len(points(parts(panel.picture.body, "polyline")[0])) == len(path)
    assert panel.picture.says.startswith("SGD, rate 0.03, 7 steps: from x −4.00, y 1.00, loss 33.00 to x −3.23")
    panel.set(optimizer="Adam", noise=True)
    assert "Adam, rate 0.03, memory 0.9, 7 steps, noise" in panel.picture.says
    panel.set(optimizer="momentum", rate=1.0, steps=90)  # it explodes, and is drawn all the same
    assert "nan" not in panel.picture.svg


def test_a_valley_is_drawn_with_a_panel_for_each_path():
    paths = {name: valley.walk(name, 0.03, 5) for name in ("SGD", "Adam")}
    axes = plot_valley(paths, valley.loss, limits=((-4.6, 2.6), (-1.3, 1.3)))
    assert [ax.get_title() for ax in axes] == ["SGD", "Adam"]
    np.testing.assert_allclose(axes[1].lines[0].get_xydata(), paths["Adam"])
    for bad, message in (({}, "at least one"), ({"a": np.zeros((3, 5))}, "shape")):
        with pytest.raises(ValueError, match=message):
            plot_valley(bad, valley.loss, limits=((-1, 1), (-1, 1)))
