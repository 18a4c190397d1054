"""Static figures: what `figure` stores, what each plot shows, and the errors for what cannot be shown."""

from __future__ import annotations

import base64
import re

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.axes import Axes

from transformer_lib.course.figures import plotting
from transformer_lib.course.figures.plotting import base

pytestmark = pytest.mark.fast

TOKENS = ["the", "animal", "did", "not", "cross", "the", "street"]


def softmax(rows, columns, seed=0):
    scores = np.random.default_rng(seed).normal(size=(rows, columns)) * 2
    weights = np.exp(scores)
    return weights / weights.sum(-1, keepdims=True)


@pytest.fixture(autouse=True)
def no_open_figures():
    yield
    plt.close("all")


def written(ax):
    return [text.get_text() for text in ax.texts]


def test_figure_stores_a_png_with_alt_text_and_closes_it():
    ax = plotting.plot_attention(softmax(3, 3), ["a", "b", "c"])
    number = ax.figure.number
    bundle = plotting.figure(ax, ' weights: "a" < b ', "What to see")._repr_mimebundle_()
    assert bundle["text/plain"] == 'weights: "a" < b'
    assert 'alt="weights: &quot;a&quot; &lt; b"' in bundle["text/html"]
    assert "<em>What to see</em>" in bundle["text/html"]
    png = base64.b64decode(re.search(r'src="data:image/png;base64,([^"]+)"', bundle["text/html"]).group(1))
    assert png.startswith(b"\x89PNG")
    assert not plt.fignum_exists(number)


def test_figure_is_at_most_720_px_wide_and_the_same_twice():
    def shown(width):
        fig, ax = plt.subplots(figsize=(width, 2))
        ax.plot([1, 3, 2])
        return plotting.figure(fig, "a line").html

    widths = [int(re.search(r'width="(\d+)"', shown(width)).group(1)) for width in (4, 7.2, 11)]
    assert widths[0] < 420
    assert widths[1] <= 720
    assert widths[2] == 720
    assert shown(4) == shown(4)


def test_figure_folds_the_data_into_a_table():
    fig, _ = plt.subplots()
    html = plotting.figure(fig, "bars", table=[["name", "score"], ["a<b", 0.5]]).html
    assert "<details>" in html
    assert '<th scope="col">score</th>' in html
    assert "<td>a&lt;b</td><td>0.5</td>" in html


def test_figure_accepts_arrays_of_axes():
    axes = plotting.plot_heads(np.stack([softmax(3, 3, s) for s in range(2)]), ["a", "b", "c"])
    assert "alt=" in plotting.figure(axes, "two heads").html


@pytest.mark.parametrize("alt", ["", "  \n"])
def test_figure_refuses_an_empty_alt_text(alt):
    with pytest.raises(ValueError, match="alt must say what the picture shows"):
        plotting.figure(plt.figure(), alt)


def test_figure_names_wrong_types():
    with pytest.raises(TypeError, match="alt must be a string, got NoneType"):
        plotting.figure(plt.figure(), None)
    with pytest.raises(TypeError, match="fig must be a matplotlib figure or axes, got list"):
        plotting.figure([1, 2], "a list")


def test_style_leaves_the_global_settings_alone():
    before = dict(mpl.rcParams)
    plotting.plot_lines({"a": [1, 2]}, xlabel="x", ylabel="y")
    assert dict(mpl.rcParams) == before
    with plotting.style():
        assert mpl.rcParams["axes.titlesize"] == 10.5


def test_attention_map_shows_whole_tokens_and_every_weight():
    weights = softmax(7, 7)
    ax = plotting.plot_attention(torch.tensor(weights, requires_grad=True), TOKENS, title="Head 1")
    labels = ["the₁", "animal", "did", "not", "cross", "the₂", "street"]
    assert [label.get_text() for label in ax.get_xticklabels()] == labels
    assert [label.get_text() for label in ax.get_yticklabels()] == labels
    assert ax.get_xlabel() == "key (is read) →"
    assert ax.get_ylabel() == "query (reads) ←"  # turned by 90°, the arrow points down
    assert ax.get_title() == "Head 1"
    assert written(ax) == [base.weight_text(w) for w in weights.ravel()]
    assert ax.images[0].get_cmap().name == "cividis"
    assert ax.images[0].get_clim() == (0, 1)
    assert ax.yaxis.get_inverted()


def test_attention_map_of_two_lengths_and_a_mask():
    mask = np.tril(np.ones((3, 5), dtype=bool))
    ax = plotting.plot_attention(softmax(3, 5), ["a", "b", "c"], list("vwxyz"), mask=torch.tensor(mask))
    assert written(ax).count("×") == (~mask).sum()
    assert len(ax.patches) == (~mask).sum()
    assert all(patch.get_hatch() for patch in ax.patches)


def test_a_mask_may_have_leading_axes_of_one():
    mask = np.tril(np.ones((1, 1, 3, 3), dtype=bool))
    assert written(plotting.plot_attention(softmax(3, 3), list("abc"), mask=mask)).count("×") == 3


def test_attention_map_writes_fewer_numbers_as_it_grows():
    middle, large = softmax(13, 13), softmax(29, 29)
    expected = ((middle >= 0.1) | (middle == middle.max(-1, keepdims=True))).sum()
    shown = written(plotting.plot_attention(middle, ["t"] * 13))
    assert len(shown) == expected
    assert all(text.startswith(".") for text in shown)
    assert written(plotting.plot_attention(large, ["t"] * 29)) == []


def test_scores_are_symmetric_about_zero_and_infinity_is_masked():
    scores = np.array([[1.0, -np.inf, -3.0], [0.5, 2.0, -0.001]])
    ax = plotting.plot_scores(scores, ["a", "b"], ["x", "y", "z"])
    assert ax.images[0].get_clim() == (-3, 3)
    assert ax.images[0].get_cmap().name == "PuOr"
    assert sorted(written(ax)) == sorted(["×", "1.00", "−3.00", "0.50", "2.00", "0.00"])
    assert plotting.plot_scores(np.zeros((1, 1)), ["a"]).images[0].get_clim() == (-1, 1)
    assert plotting.plot_scores(scores, ["a", "b"], ["x", "y", "z"], largest=5).images[0].get_clim() == (-5, 5)
    assert written(plotting.plot_scores(np.ones((13, 13)), ["a"] * 13)) == []
    assert sorted(written(plotting.plot_scores(scores, ["a", "b"], ["x", "y", "z"], decimals=0))) == sorted(
        ["×", "1", "−3", "0", "2", "0"]
    )


def test_heads_have_one_axes_each_without_numbers():
    axes = plotting.plot_heads(np.stack([softmax(3, 5, s) for s in range(5)]), list("abc"), list("vwxyz"))
    assert axes.shape == (5,)
    assert [ax.get_title() for ax in axes] == [f"head {i}" for i in range(1, 6)]
    assert all(not ax.texts for ax in axes)
    with pytest.raises(ValueError, match="titles must hold one per head, 2, got 1"):
        plotting.plot_heads(np.full((2, 3, 3), 1 / 3), list("abc"), titles=["one"])


def test_heads_carry_their_numbers_if_asked():
    weights = np.arange(1, 31).reshape(2, 3, 5) / 100
    axes = plotting.plot_heads(weights, list("abc"), list("vwxyz"), show_values=True)
    shown = [[float(text.get_text()) for text in ax.texts] for ax in axes]
    np.testing.assert_allclose(np.reshape(shown, weights.shape), weights, atol=1e-9)


def test_encoding_range():
    ax = plotting.plot_encoding(np.zeros((5, 7)))
    assert ax.images[0].get_clim() == (-1, 1) and ax.images[0].get_array().shape == (7, 5)  # positions sideways
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("position →", "feature ↓")
    assert plotting.plot_encoding(np.full((5, 7), -2.5), title="PE").images[0].get_clim() == (-2.5, 2.5)


def test_lines_are_told_apart_without_colour():
    ax = plotting.plot_lines({"a": [3, 1], "b": ([2, 64], [5, 4])}, xlabel="x", ylabel="y", log_x=True)
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), [1, 2])
    np.testing.assert_array_equal(ax.lines[1].get_xdata(), [2, 64])
    assert ax.lines[0].get_linestyle() != ax.lines[1].get_linestyle()
    assert ax.lines[0].get_marker() != ax.lines[1].get_marker()
    assert ax.get_xscale() == "log"
    np.testing.assert_array_equal(ax.get_xticks(), [1, 2, 64])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]
    assert plotting.plot_lines({"a": [1, 2]}, xlabel="x", ylabel="y").get_legend() is None


def test_a_level_across_is_named_and_leaves_a_logarithmic_axis_alone():
    lines = {"a": ([0.001, 0.01, 0.1], [7, 5, 11])}
    look = {"xlabel": "rate", "ylabel": "steps", "log_x": True, "log_y": True}
    ax = plotting.plot_lines(lines, reference={"stopped": 13.0}, **look)
    assert list(ax.lines[-1].get_ydata()) == [13, 13]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "stopped"]
    assert list(ax.get_xticks()) == [0.001, 0.01, 0.1]
    plt.close("all")


def test_curves_draw_the_mean_in_the_band_of_the_seeds():
    runs = {"ours": np.array([[3.0, 2.0, 1.0], [5.0, 2.0, 3.0]]), "cut": ([10, 20], [4.0, 4.5])}
    ax = plotting.plot_curves(runs, log_y=True, title="Loss")
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [4, 2, 2])
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == (1, 5)
    assert ax.lines[0].get_label() == "ours (mean and range of 2 seeds)"
    assert ax.get_yscale() == "log"


def test_many_curves_name_what_their_bands_share_once_below_the_axes():
    ax = plotting.plot_curves({name: [[1, 2, 3], [3, 4, 5]] for name in "abcd"})
    legend = ax.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == list("abcd")
    assert legend.get_title().get_text() == "mean and range of 2 seeds"
    ax.figure.draw_without_rendering()
    assert legend.get_window_extent().y1 < ax.get_window_extent().y0


def test_panels_share_one_legend_and_name_the_y_axis_once():
    runs = {"raw": [[1, 2, 3], [3, 4, 5]], "scaled": ([2, 3, 5], [1.0, 2.0, 4.0])}
    axes = plotting.plot_panels({"narrow": runs, "wide": runs}, ylabel="accuracy", share_y=True)
    assert [ax.get_title() for ax in axes] == ["narrow", "wide"]
    assert [ax.get_ylabel() for ax in axes] == ["accuracy", ""]
    assert all(ax.get_legend() is None for ax in axes)
    (legend,) = axes[0].figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["raw (mean and range of 2 seeds)", "scaled"]
    assert axes[0].get_ylim() == axes[1].get_ylim()
    np.testing.assert_allclose(axes[1].lines[0].get_ydata(), [2, 3, 4])


def test_one_curve_in_one_panel_needs_no_legend():
    (ax,) = plotting.plot_panels({"alone": {"loss": [3.0, 2.0]}})
    assert ax.get_xlabel() == "step" and ax.figure.legends == []


@pytest.mark.parametrize("panels", [{}, {"a": {"x": [1.0]}, "b": {"y": [1.0]}}])
def test_panels_must_show_the_same_names(panels):
    with pytest.raises(ValueError, match="at least one panel, all with the same names"):
        plotting.plot_panels(panels)


def test_points_have_a_panel_each_and_marks_by_their_kind():
    points = np.array([[0.0, 1], [2, 3], [4, 5]])
    axes = plotting.plot_points({"before": points, "after": 2 * points}, ["ship", "plane", "ship"])
    assert [ax.get_title() for ax in axes] == ["before", "after"]
    ships, planes = axes[1].collections
    np.testing.assert_allclose(ships.get_offsets(), [[0, 2], [8, 10]])
    np.testing.assert_allclose(planes.get_offsets(), [[4, 6]])
    (legend,) = axes[0].figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["ship", "plane"]
    with pytest.raises(ValueError, match=r"points \[2, 2\], one for each of the kinds, got \[\(3, 2\)\]"):
        plotting.plot_points({"before": points}, ["ship", "plane"])


def test_scattered_points_share_names_and_the_y_axis():
    panels = {"left": {"a": ([1, 2], [3.0, 4]), "b": ([0], [50.0])}, "right": {"a": ([5], [6.0]), "b": ([], [])}}
    axes = plotting.plot_scatter(panels, xlabel="weight", ylabel="effect", linear_below=1)
    assert [ax.get_title() for ax in axes] == ["left", "right"] and axes[0].get_ylim() == axes[1].get_ylim()
    assert [ax.get_ylabel() for ax in axes] == ["effect", ""] and axes[1].get_yscale() == "symlog"
    np.testing.assert_allclose(axes[0].collections[0].get_offsets(), [[1, 3], [2, 4]])
    (legend,) = axes[0].figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]
    assert plotting.plot_scatter(panels, xlabel="x", ylabel="y")[0].get_yscale() == "linear"
    with pytest.raises(ValueError, match="at least one panel, all with the same names"):
        plotting.plot_scatter({"left": {"a": ([1], [2])}, "right": {}}, xlabel="x", ylabel="y")


def test_many_points_keep_matplotlib_ticks():
    ax = plotting.plot_lines({"a": np.arange(1.0, 100.0)}, xlabel="x", ylabel="y", log_x=True)
    assert len(ax.get_xticks()) < 99


def test_bars_with_whiskers_and_a_reference_level():
    scores = {"ours": {"exact": 0.5, "sense": 0.97}, "GRU": {"exact": 0.25, "sense": 0.75}}
    ax = plotting.plot_bars(
        scores, ylabel="score", intervals={"ours": {"exact": (0.4, 0.7)}}, reference={"chance": 0.5}
    )
    assert [bar.get_height() for bar in ax.patches] == [0.5, 0.97, 0.25, 0.75]
    assert ax.patches[0].get_hatch() != ax.patches[2].get_hatch()
    assert written(ax) == ["0.5", "0.97", "0.25", "0.75"]
    assert ax.texts[0].xy[1] == 0.7  # above its whisker
    assert "chance (0.5)" in [text.get_text() for text in ax.get_legend().get_texts()]
    assert plotting.plot_bars({"ours": {"exact": 0.5}}, ylabel="score").get_legend() is None


def test_the_legend_is_below_names_of_two_lines():
    def top(name):
        bars = {series: {name: 0.5} for series in ("ours", "theirs")}
        return plotting.plot_bars(bars, ylabel="score").get_legend().get_bbox_to_anchor().y0

    assert top("same side\nother gender") < top("same side")


def test_phases_are_marked_where_they_begin():
    ax = plotting.plot_lines({"loss": ([5, 7, 11], [3, 2, 1])}, xlabel="step", ylabel="loss")
    plotting.mark_phases(ax, {"first": 0, "second": 7})
    assert [text.get_text().strip() for text in ax.texts] == ["first", "second"]
    assert [line.get_xdata()[0] for line in ax.lines[1:]] == [7]
    assert ax.texts[0].get_position()[0] == ax.get_xlim()[0] and ax.texts[1].get_position()[0] == 7
    for starts in ({}, {"late": 7, "early": 5}):
        with pytest.raises(ValueError, match="starts must be at least one phase, each later than the one before"):
            plotting.mark_phases(ax, starts)


def test_axes_that_are_given_are_used():
    _, ax = plt.subplots()
    assert plotting.plot_attention(softmax(3, 3), list("abc"), ax=ax) is ax
    assert isinstance(plotting.plot_curves({"a": [1.0]}, ax=plt.subplots()[1]), Axes)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plotting.plot_attention(np.ones(3), list("abc")), r"weights must be an array with 2 axes"),
        (lambda: plotting.plot_attention(np.full((3, 5), 0.2), list("abc")), r"must have shape \(3, 3\).*\(3, 5\)"),
        (lambda: plotting.plot_attention(np.full((1, 1), 1.5), ["a"]), r"between 0 and 1, got 1.5 to 1.5"),
        (lambda: plotting.plot_attention(np.full((1, 1), np.nan), ["a"]), r"must hold finite numbers, got nan"),
        (lambda: plotting.plot_scores(np.full((1, 1), np.inf), ["a"]), r"must hold finite numbers, got inf"),
        (
            lambda: plotting.plot_attention(np.ones((1, 1)), ["a"], mask=np.ones((1, 3), dtype=bool)),
            r"mask must have shape \(1, 1\), got \(1, 3\)",
        ),
        (lambda: plotting.plot_heads(np.ones((3, 3)), list("abc")), r"an array with 3 axes, got shape \(3, 3\)"),
        (lambda: plotting.plot_lines({}, xlabel="x", ylabel="y"), "at least one named line"),
        (lambda: plotting.plot_curves({}), "at least one named run"),
        (lambda: plotting.plot_curves({"a": ([1, 2, 3], [1.0, 2.0])}), "as many x as y, got 3 and 2"),
        (lambda: plotting.plot_bars({}, ylabel="s"), "at least one named series"),
        (lambda: plotting.plot_bars({"a": {"x": 1}, "b": {"y": 1}}, ylabel="s"), r"groups \['x'\] in series 'b'"),
        (
            lambda: plotting.plot_bars({"a": {"x": 1}}, ylabel="s", intervals={"a": {"x": (2, 3)}}),
            r"intervals of 'x' must hold 1, got \(2, 3\)",
        ),
    ],
)
def test_errors_name_what_does_not_fit(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_mask_of_numbers_is_refused():
    with pytest.raises(TypeError, match=r"mask must be boolean \(True = may attend\), got float64"):
        plotting.plot_attention(np.ones((1, 1)), ["a"], mask=np.zeros((1, 1)))


@pytest.mark.parametrize(
    ("weight", "long", "short"),
    [(0.0, "0", "0"), (1.0, "1.00", "1.00"), (0.004, "<.01", "<.01"), (0.005, "0.01", ".01"), (0.494, "0.49", ".49")],
)
def test_weight_text(weight, long, short):
    assert (base.weight_text(weight), base.weight_text(weight, short=True)) == (long, short)


def test_signed_text_has_a_minus_sign_and_no_negative_zero():
    assert [base.signed_text(v) for v in (-1.5, -0.001, 0.0, 2.345)] == ["−1.50", "0.00", "0.00", "2.35"]


def test_repeated_tokens_are_numbered():
    assert base.distinct_tokens(["a"] * 11 + ["b"])[9:] == ["a₁₀", "a₁₁", "b"]


def test_tables_side_by_side_share_their_rows():
    tables = {"matched": torch.arange(9.0).reshape(3, 3), "carried": -torch.ones(3, 5)}
    left, right = plotting.plot_tables(tables, list("abc"), {"carried": list("vwxyz")}, decimals=0)
    assert [ax.get_title() for ax in (left, right)] == ["matched", "carried"]
    assert [label.get_text() for label in left.get_xticklabels()] == list("abc")
    assert [label.get_text() for label in right.get_xticklabels()] == list("vwxyz")
    assert [label.get_text() for label in right.get_yticklabels()] == list("abc")
    assert left.get_ylabel() and not right.get_ylabel()
    assert {text.get_text() for text in right.texts} == {"−1"}
    assert left.images[0].norm.vmax == 8 and right.images[0].norm.vmax == 1
    assert plotting.plot_tables(tables, list("abc"), {"carried": list("vwxyz")}, largest=7)[1].images[0].norm.vmax == 7


@pytest.mark.parametrize("given", [({}, None), ({"one": torch.ones(2, 2)}, {"two": ["x"]})])
def test_tables_are_there_and_so_are_those_with_columns(given):
    with pytest.raises(ValueError, match="tables must be at least one, and all those of columns"):
        plotting.plot_tables(given[0], ["a", "b"], given[1])


@pytest.mark.parametrize(
    ("points", "written"),
    [
        ([1e-11, 1e-9, 1e-5, 1e-3], ["$10^{-11}$", "$10^{-9}$", "$10^{-7}$", "$10^{-5}$", "0.001"]),
        ([0.001, 0.005, 0.1, 1.0], ["0.001", "0.01", "0.1", "1"]),
        ([64, 4096], ["64", "4,096"]),
    ],
)
def test_numbers_below_a_logarithmic_axis_are_plain(points, written):
    ax = plotting.plot_lines({"a": (points, range(len(points)))}, xlabel="x", ylabel="y", log_x=True)
    ax.figure.canvas.draw()
    assert [tick.get_text() for tick in ax.get_xticklabels()] == written


def test_panels_say_once_what_their_curves_share():
    runs = {"a": np.ones((3, 4)), "b": np.zeros((3, 4))}
    legend = plotting.plot_panels({"one": runs, "two": runs})[0].figure.legends[0]
    assert legend.get_title().get_text() == "mean and range of 3 seeds"
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]
