"""The plane of two senses against NumPy's own, and the arrows on it."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from transformer_lib.course.figures import plotting

pytestmark = pytest.mark.fast

SENSES = ["money"] * 5 + ["river"] * 8


@pytest.fixture(autouse=True)
def no_open_figures():
    yield
    plt.close("all")


def vectors(seed=0, d_model=7):
    """Vectors of both senses, apart along one direction and spread out most along another."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(len(SENSES), d_model)) * np.linspace(0.2, 3, d_model)
    return x + np.outer([sense == "river" for sense in SENSES], random.normal(size=d_model) * 4)


def test_the_plane_is_that_of_the_covariance():
    x, river = vectors(), np.array(SENSES) == "river"
    plane = plotting.sense_plane(torch.tensor(x, requires_grad=True), SENSES)
    means = x[~river].mean(0), x[river].mean(0)
    across = (means[1] - means[0]) / np.linalg.norm(means[1] - means[0])
    keep = np.eye(7) - np.outer(across, across)  # takes the first axis away
    values, directions = np.linalg.eigh(keep @ np.cov(x.T) @ keep)
    assert plane.senses == ("money", "river")
    assert plane.origin == pytest.approx(sum(means) / 2)
    assert plane.axes[0] == pytest.approx(across)
    assert abs(plane.axes[1] @ directions[:, values.argmax()]) == pytest.approx(1)
    assert plane.axes @ plane.axes.T == pytest.approx(np.eye(2))


def test_the_senses_lie_at_equal_distances_and_the_order_says_on_which_side():
    x, river = vectors(1), np.array(SENSES) == "river"
    points = plotting.sense_plane(x, SENSES).project(x)
    assert points[river, 0].mean() == pytest.approx(-points[~river, 0].mean()) and points[river, 0].mean() > 0
    assert points[river, 1].mean() == pytest.approx(points[~river, 1].mean())
    turned = plotting.sense_plane(x[::-1], SENSES[::-1])
    assert turned.senses == ("river", "money")
    assert turned.project(x)[:, 0] == pytest.approx(-points[:, 0])
    assert np.abs(turned.project(x)[:, 1]) == pytest.approx(np.abs(points[:, 1]))


@pytest.mark.parametrize(
    ("x", "senses", "message"),
    [
        (vectors(), SENSES[:-1], r"senses must name two, one for each of 13 vectors, got 12 of \['money', 'river'\]"),
        (vectors(), ["money"] * 13, r"got 13 of \['money'\]"),
        (vectors(), [*SENSES[:-1], "bench"], r"got 13 of \['money', 'river', 'bench'\]"),
        (np.ones((13, 7)), SENSES, "vectors must differ between the senses and within them, to span a plane"),
        (np.eye(13)[:2], SENSES[4:6], "vectors must differ between the senses and within them"),
        (np.ones(13), SENSES, "vectors must be an array with 2 axes"),
    ],
)
def test_what_spans_no_plane_is_refused(x, senses, message):
    with pytest.raises(ValueError, match=message):
        plotting.sense_plane(x, senses)


def test_only_vectors_of_the_same_width_lie_on_a_plane():
    with pytest.raises(ValueError, match=r"vectors must have 7 features, got shape \(2, 5\)"):
        plotting.sense_plane(vectors(), SENSES).project(np.ones((2, 5)))


@pytest.fixture
def drawn():
    """A path of three steps for three sentences, in a plane found with other vectors."""
    plane = plotting.sense_plane(vectors(), SENSES)
    start = np.tile(plane.origin, (3, 1))
    money, river = -3 * plane.axes[0], 2 * plane.axes[0] + plane.axes[1]
    steps = [start, start + [money, river, river], start + [2 * money, 2 * river, 3 * river]]
    names = ("before", "after layer 1", "after layer 2")
    return plotting.plot_arrows(*steps, plane=plane, senses=["money", "river", "river"], names=names, title="bank")


def arrows(ax):
    """Return (from, to) of each arrow: annotations without words."""
    return [(text.xyann, text.xy) for text in ax.texts if not text.get_text()]


def test_arrows_lead_from_step_to_step(drawn):
    found = [tuple(np.round(ends, 6).tolist()) for ends in arrows(drawn)]
    assert sorted(found) == sorted(
        [
            ([0, 0], [-3, 0]),
            ([-3, 0], [-6, 0]),
            ([0, 0], [2, 1]),
            ([0, 0], [2, 1]),
            ([2, 1], [4, 2]),
            ([2, 1], [6, 3]),
        ]
    )


def test_marks_tell_senses_and_steps_apart_without_colour(drawn):
    lines = [line for line in drawn.lines if line.get_marker() != "None"]
    looks = [
        (line.get_marker(), line.get_markerfacecolor() == "white", np.round(line.get_xdata(), 6).tolist())
        for line in lines
    ]
    assert looks == [
        ("o", True, [-3]),
        ("o", False, [-6]),
        ("s", True, [2, 2]),
        ("s", False, [4, 6]),
        ("D", False, [0, 0, 0]),
    ]
    assert [text.get_text() for text in drawn.get_legend().get_texts()] == ["before", "after layer 1", "after layer 2"]


def test_senses_are_named_with_their_means_and_the_axes_in_words(drawn):
    named = {text.get_text(): text.xy for text in drawn.texts if text.get_text()}
    assert set(named) == {"money −6.0", "river 5.0"} and named["river 5.0"] == pytest.approx((5, 3))
    assert drawn.get_xlabel().split() == ["←", "money", "between", "the", "senses", "river", "→"]
    assert drawn.get_ylabel() == "largest other variance" and drawn.get_title() == "bank"
    assert drawn.get_aspect() == 1  # a step counts the same in every direction


def test_one_sense_alone_can_be_drawn_before_and_after():
    plane = plotting.sense_plane(vectors(), SENSES)
    ax = plt.figure().add_subplot()
    x = vectors(2)[:3]
    assert plotting.plot_arrows(x, x + 1, plane=plane, senses=["river"] * 3, ax=ax) is ax
    assert len(arrows(ax)) == 3 and [text.get_text()[:5] for text in ax.texts if text.get_text()] == ["river"]


@pytest.mark.parametrize(
    ("counts", "senses", "names", "message"),
    [
        ((2,), ["river"] * 2, ("before",), "steps must be two or more, each with a name, got 1"),
        ((2, 2), ["river"] * 2, ("before",), r"got 2 and names \['before'\]"),
        ((2, 3), ["river"] * 2, ("x", "y"), r"steps must have a row for each of 2 senses, got \[2, 3\]"),
        ((2, 2), ["river", "bench"], ("x", "y"), r"senses must be of the plane's, \['money', 'river'\], got \['bench'"),
        ((0, 0), [], ("x", "y"), "senses must be of the plane's"),
    ],
)
def test_what_cannot_be_drawn_is_refused(counts, senses, names, message):
    plane = plotting.sense_plane(vectors(), SENSES)
    steps = [np.ones((count, 7)) for count in counts]
    with pytest.raises(ValueError, match=message):
        plotting.plot_arrows(*steps, plane=plane, senses=senses, names=names)


def test_paths_are_arrows_from_step_to_step_named_at_their_ends():
    paths = np.array([[[0, 0], [1, 1], [2, 0]], [[1, 0], [1, 3], [2, 2]], [[5, 0], [4, 3], [2, 7]]])
    ax = plotting.plot_paths(paths, ["a", "b", "c"], landmarks={"here": (3, 3)}, xlabel="x", ylabel="y")
    arrows = [text for text in ax.texts if text.arrow_patch is not None]
    assert len(arrows) == 2 * 3 and {text.get_text() for text in ax.texts} == {"", "a", "b", "c", "here"}
    assert {tuple(text.xy) for text in arrows} == {tuple(point) for point in paths[1:].reshape(-1, 2).tolist()}
    low, high = ax.get_xlim()
    assert low < 0 and high > 5


@pytest.mark.parametrize("shape", [(1, 3, 2), (2, 3, 3), (2, 5, 2)])
def test_paths_of_another_form_are_refused(shape):
    with pytest.raises(ValueError, match=r"paths must be \[n_steps, 3, 2\] with two steps or more, got"):
        plotting.plot_paths(np.zeros(shape), ["a", "b", "c"], xlabel="x", ylabel="y")
