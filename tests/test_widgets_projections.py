"""W16, the projection stepper: its numbers are the library's, and each step shows what it has reached."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import transformer_lib as tl
from transformer_lib.course import progress
from transformer_lib.course.figures import widgets
from transformer_lib.course.figures.svg import projection
from transformer_lib.course.figures.widgets.projections_panel import STEPS, run_head, written

TOKENS = ["the", "cat", "saw", "the", "dog"]


def numbers(seed=0, *, n=5, d_model=7, d_k=3, d_v=2):
    draw = np.random.default_rng(seed)
    return [draw.standard_normal(shape) for shape in ((n, d_model), (d_model, d_k), (d_model, d_k), (d_model, d_v))]


def test_the_head_is_the_librarys():
    X, W_Q, W_K, W_V = (torch.from_numpy(part) for part in numbers())
    head = run_head(*numbers())
    output, weights = tl.scaled_dot_product_attention(X @ W_Q, X @ W_K, X @ W_V)
    for ours, theirs in ((head.output, output), (head.weights, weights), (head.key, X @ W_K)):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)


def test_large_scores_do_not_overflow():
    X, W_Q, W_K, W_V = numbers()
    assert np.isfinite(run_head(X, 1000 * W_Q, W_K, W_V).weights).all()


def test_each_step_says_its_numbers_and_shape():
    parts = numbers()
    head, panel = run_head(*parts), widgets.projection_stepper(*parts, TOKENS)
    panel.set(token="cat")
    expected = (parts[0][1], head.query[1], head.scores[1], head.weights[1], head.output[1])
    shapes = ("[d_model 7]", "[d_v 2]", "[k_len 5]", "[k_len 5]", "[d_v 2]")
    for step, (values, shape) in enumerate(zip(expected, shapes, strict=True), 1):
        picture = panel.set(step=step).picture
        assert written(values) in picture.says
        assert shape in picture.says
        assert f"step {step} of {len(STEPS)}" in picture.alt


def test_later_numbers_appear_only_when_their_step_is_reached():
    parts = numbers()
    head, panel = run_head(*parts), widgets.projection_stepper(*parts, TOKENS)
    dashed = [panel.set(step=step).picture.body.count("stroke-dasharray") for step in range(1, 6)]
    # q, k, v of the token and the table of keys and values; scores; weights; output
    assert [a - b for a, b in zip(dashed, dashed[1:], strict=False)] == [3 + 3 + 2 + 5 * (3 + 2), 5, 5, 2]
    assert dashed[-1] == 0
    weight = f">{head.weights[0].max():.2f}<"
    assert weight in panel.picture.body
    assert weight not in panel.set(step=3).picture.body


def test_repeated_tokens_can_be_told_apart():
    panel = widgets.projection_stepper(*numbers(), TOKENS)
    first = panel.picture.svg
    labels = [label for label, _ in panel.controls["token"].options]
    assert len(set(labels)) == 5
    assert panel.set(token=labels[3]).picture.svg != first


def test_the_largest_head_that_is_taken_fits_the_picture():
    panel = widgets.projection_stepper(*numbers(n=8, d_model=8, d_k=4, d_v=4), list("abcdefgh"))
    panel.set(step=5)
    assert panel.picture.height == projection.height(8)
    assert projection.columns(4)[2] + 4 * projection.CELL < panel.picture.width
    assert len(panel.picture.saved_html) < 50_000


def test_a_step_by_hand_is_remembered():
    panel = widgets.projection_stepper(*numbers(), TOKENS)
    panel.set(step=2)
    assert "W16" not in progress.state()["widget"]
    panel.controls["step"].value = 3
    assert "W16" in progress.state()["widget"]


def test_an_empty_cell_shows_no_number():
    assert "<text" not in projection.vector(np.array([0.5, -0.5]), 0, 0, False, 1.0)
    assert "−0.50" in projection.vector(np.array([0.5, -0.5]), 0, 0, True, 1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokens": ["a"]}, "tokens must have one entry per row of X, 5, got 1"),
        ({"W_V": np.ones((3, 2))}, "W_V must have d_model = 7 rows, got 3"),
        ({"W_K": np.ones((7, 2))}, r"W_K must have the shape of W_Q, \(7, 3\), got \(7, 2\)"),
        ({"W_V": np.ones((7, 5))}, "d_v must be between 1 and 4 to fit the picture, got 5"),
        ({"X": np.ones(7)}, r"X must be an array with 2 axes, got shape \(7,\)"),
    ],
)
def test_what_does_not_fit_is_named(change, message):
    given = dict(zip(("X", "W_Q", "W_K", "W_V"), numbers(), strict=True)) | {"tokens": TOKENS} | change
    with pytest.raises(ValueError, match=message):
        widgets.projection_stepper(**given)
