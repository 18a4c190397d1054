"""W17, one token's length: its weights are the softmax of dot products or cosines."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from transformer_lib.course.figures import widgets

TOKENS = ["the", "cat", "saw", "the", "dog"]


def vectors(seed=0, n=5, d=7):
    return np.random.default_rng(seed).standard_normal((n, d))


def test_weights_are_attention_of_the_tokens_to_themselves():
    X = torch.from_numpy(vectors())
    expected = torch.softmax(X @ X.T, dim=-1)
    np.testing.assert_allclose(widgets.similarity_weights(X), expected, rtol=0, atol=1e-12)


def test_cosines_do_not_see_lengths():
    X = vectors()
    longer = X * np.array([[1.0], [3.0], [0.5], [7.0], [1.0]])
    grids = [widgets.similarity_weights(data, "cosine") for data in (X, longer)]
    np.testing.assert_allclose(*grids, rtol=0, atol=1e-12)
    assert not np.allclose(widgets.similarity_weights(X), widgets.similarity_weights(longer))


def test_a_zero_vector_has_cosine_zero_with_all():
    X = vectors()
    X[2] = 0
    np.testing.assert_allclose(widgets.similarity_weights(X, "cosine")[2], 1 / 5, rtol=0, atol=1e-12)


def test_large_scores_do_not_overflow():
    assert np.isfinite(widgets.similarity_weights(1000 * vectors())).all()


def test_the_line_says_how_much_the_token_is_read():
    X, panel = vectors(), widgets.token_length(vectors(), TOKENS)
    scaled = X.copy()
    scaled[1] *= 2.5
    weights = widgets.similarity_weights(scaled)
    picture = panel.set(token="cat", length=2.5).picture
    others = weights[[0, 2, 3, 4], 1].mean()
    assert f"cat × 2.5, dot product: the others give it {others:.2f} on average" in picture.says
    assert f"gives itself {weights[1, 1]:.2f}" in picture.says


@pytest.mark.parametrize(("scores", "different"), [("cosine", 1), ("dot product", 3)])
def test_only_dot_products_change_with_the_length(scores, different):
    panel = widgets.token_length(vectors(), TOKENS).set(scores=scores)
    said = [panel.set(length=length).picture.says.partition(": ")[2] for length in (0.5, 1.0, 5.0)]
    assert len(set(said)) == different


def test_a_repeated_token_can_be_chosen():
    assert "the₂ ×" in widgets.token_length(vectors(), TOKENS).set(token="the₂").picture.says


def test_an_unknown_score_is_refused():
    with pytest.raises(ValueError, match="scores must be one of 'dot product', 'cosine', got 'cos'"):
        widgets.similarity_weights(vectors(), "cos")
