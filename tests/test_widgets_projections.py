"""W16, the projection stepper: its numbers are the library's, and each step shows what it has reached."""

from __future__ import annotations

import numpy as np
import torch

import transformer_lib as tl
from small_panels import TOKENS, matrices, panel
from svg_parts import assert_inside
from transformer_lib.course.figures.svg import projection
from transformer_lib.course.figures.widgets.projections_panel import STEPS, run_head, written


def test_the_head_is_the_librarys():
    given = matrices(d_model=7)
    X, W_Q, W_K, W_V = map(torch.from_numpy, given.values())
    head = run_head(**given)
    output, weights = tl.scaled_dot_product_attention(X @ W_Q, X @ W_K, X @ W_V)
    for ours, theirs in ((head.output, output), (head.weights, weights), (head.key, X @ W_K)):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)


def test_large_scores_do_not_overflow():
    given = matrices()
    assert np.isfinite(run_head(**given | {"W_Q": 1000 * given["W_Q"]}).weights).all()


def test_each_step_says_its_numbers_and_shape():
    given = matrices(d_model=7)
    head, stepper = run_head(**given), panel("projection_stepper").set(token="cat")
    expected = (given["X"][1], head.query[1], head.scores[1], head.weights[1], head.output[1])
    shapes = ("[d_model 7]", "[d_v 2]", "[k_len 5]", "[k_len 5]", "[d_v 2]")
    for step, (values, shape) in enumerate(zip(expected, shapes, strict=True), 1):
        picture = stepper.set(step=step).picture
        assert written(values) in picture.says and shape in picture.says
        assert f"step {step} of {len(STEPS)}" in picture.alt


def test_later_numbers_appear_only_when_their_step_is_reached():
    head, stepper = run_head(**matrices(d_model=7)), panel("projection_stepper")
    dashed = [stepper.set(step=step).picture.body.count("stroke-dasharray") for step in range(1, 6)]
    # q, k, v of the token and the table of keys and values; scores; weights; output
    assert [a - b for a, b in zip(dashed, dashed[1:], strict=False)] == [3 + 3 + 2 + 5 * (3 + 2), 5, 5, 2]
    assert dashed[-1] == 0
    weight = f">{head.weights[0].max():.2f}<"
    assert weight in stepper.picture.body and weight not in stepper.set(step=3).picture.body


def test_repeated_tokens_can_be_told_apart():
    stepper = panel("projection_stepper")
    labels = [label for label, _ in stepper.controls["token"].options]
    assert len({stepper.set(token=label).picture.svg for label in labels}) == len(TOKENS)


def test_the_largest_head_that_is_taken_fits_the_picture():
    largest = panel("projection_stepper", **matrices(n=8, d_model=8, d_k=4, d_v=4), tokens="abcdefgh").set(step=5)
    assert_inside(largest.picture)
    assert projection.columns(4)[2] + 4 * projection.CELL < largest.picture.width
    assert len(largest.picture.saved_html) < 50_000


def test_an_empty_cell_shows_no_number():
    assert "<text" not in projection.vector(np.array([0.5, -0.5]), 0, 0, False, 1.0)
    assert "−0.50" in projection.vector(np.array([0.5, -0.5]), 0, 0, True, 1.0)
