"""Pictures of the plane: a fold is the units' own, a norm's circle is LayerNorm's, a stream's arrows add up."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
import torch.nn.functional as F

from transformer_lib.course.figures.plotting import descriptions, figure, plot_fold, plot_norm, plot_stream

pytestmark = pytest.mark.fast

POINTS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [2.0, 0.5]])


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def units(x):
    return np.maximum(0, np.stack([x.sum(-1), x.sum(-1) - 1], -1))


def marks(ax):
    drawn = [line for line in ax.lines if line.get_marker() not in ("None", "") and len(line.get_xydata())]
    return {tuple(line.get_xydata()[0].round(6)) for line in drawn}


def test_a_fold_puts_points_and_grid_where_the_units_put_them():
    before, after = plot_fold(units, POINTS, [0, 1, 1, 0, 0], readout=(1, -2))
    assert {tuple(point) for point in POINTS} <= marks(before)
    assert {tuple(point) for point in units(POINTS)} <= marks(after)
    grids = [[line for line in ax.lines if len(line.get_xydata()) == 65] for ax in (before, after)]
    assert len(grids[0]) == len(grids[1]) == 18
    for line, bent in zip(*grids, strict=True):
        np.testing.assert_allclose(bent.get_xydata(), units(line.get_xydata()), atol=1e-12)
    [dashed] = [line for line in after.lines if line.get_linestyle() == "--"]
    np.testing.assert_allclose(dashed.get_xydata() @ [1, -2], 0.5)
    assert "(0, 1) and (1, 0)" in [text.get_text() for text in after.texts]


def test_a_fold_takes_tensors_and_needs_no_readout():
    _, after = plot_fold(lambda x: torch.as_tensor(x).relu(), POINTS, [0, 1, 1, 0, 0])
    assert not [line for line in after.lines if line.get_linestyle() == "--"]


def test_a_norm_ends_where_layer_norm_ends():
    tokens = torch.tensor([[1.0, 2, 4], [4, 5, 7], [1.5, 3, 6], [4.5, 1, 2.5]])
    features, circle = plot_norm(tokens, list("abcd"))
    for line, token in zip(features.lines, tokens, strict=True):
        np.testing.assert_allclose(line.get_ydata(), token)
    ends = np.array([arrow.xy for arrow in circle.texts])
    np.testing.assert_allclose(np.linalg.norm(ends, axis=1), np.sqrt(3), rtol=1e-6)
    normed = F.layer_norm(tokens, (3,), eps=0).double().numpy()
    np.testing.assert_allclose(ends @ ends.T, normed @ normed.T, atol=1e-5)  # the plane keeps all angles
    starts = np.array([arrow.xyann for arrow in circle.texts])
    np.testing.assert_allclose(starts[0], starts[1], atol=1e-12)  # a shift is not seen along the diagonal


def test_the_arrows_of_a_stream_lead_from_state_to_state():
    states = np.random.default_rng(7).standard_normal((5, 11)).cumsum(0)
    [ax] = plot_stream({"one": states})
    arrows = [text for text in ax.texts if text.arrow_patch]
    assert len(arrows) == 4
    for arrow, following in zip(arrows, arrows[1:], strict=False):
        np.testing.assert_allclose(arrow.xy, following.xyann)
    _, _, directions = np.linalg.svd(states, full_matrices=False)
    seen = np.linalg.norm(states @ directions[:2].T, axis=1)
    np.testing.assert_allclose([np.linalg.norm(arrow.xy) for arrow in arrows], seen[1:])
    assert ax.get_title() == "one\nlength {:.0f} → {:.0f}".format(*np.linalg.norm(states[[0, -1]], axis=1))


def test_streams_are_drawn_at_one_scale():
    axes = plot_stream({"small": np.eye(3), "large": 9 * np.eye(3)})
    assert len({round(np.ptp(ax.get_xlim()), 6) for ax in axes}) == 1


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: plot_fold(units, POINTS[:, :1], [0] * 5), r"points must be \[n, 2\] .* got shape \(5, 1\)"),
        (lambda: plot_fold(units, POINTS, [0, 1]), r"got shape \(5, 2\) and 2"),
        (lambda: plot_norm([[1.0, 2.0]], ["a"]), r"tokens must be \[n, 3\] with n names, got shape \(1, 2\) and 1"),
        (lambda: plot_norm([[2.0, 2.0, 2.0]], ["a"]), "tokens must have features that differ"),
        (lambda: plot_stream({}), "streams must hold at least one, got none"),
        (lambda: plot_stream({"a": [[1.0, 2.0]]}), r"streams\['a'\] must have at least two states, got 1"),
    ],
)
def test_what_cannot_be_drawn_is_named(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()


# Descriptions by name


def test_a_description_is_found_by_its_name(tmp_path, monkeypatch):
    file = tmp_path / "descriptions.md"
    file.write_text("# Title\n\nWhy.\n\n## 07.bar\n\nA bar,\nof height 5.\n\n## A.x_2\n\nTwo.\n", encoding="utf-8")
    monkeypatch.setattr(descriptions, "_FILE", file)
    assert descriptions.read(file) == {"07.bar": "A bar, of height 5.", "A.x_2": "Two."}
    assert figure(plt.subplots()[1], "07.bar").alt == "A bar, of height 5."
    assert figure(plt.subplots()[1], "A bar. 07.bar").alt == "A bar. 07.bar"
    with pytest.raises(ValueError, match="alt must describe the picture, or name an entry .* got '07.no'"):
        figure(plt.subplots()[1], "07.no")
