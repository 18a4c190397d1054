"""SVG pictures: values, colours, escapes, the two forms, and that the same call gives the same bytes."""

from __future__ import annotations

import base64
import html
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from matplotlib import colormaps

from svg_parts import centre, number, parts, points
from transformer_lib.course.figures.plotting.base import ink
from transformer_lib.course.figures.svg import (
    CIVIDIS,
    PUOR,
    Picture,
    attention_map,
    cells,
    charts,
    colours,
    elements,
    flow,
    token_lines,
)
from transformer_lib.course.figures.svg.lookup import lookup_table
from transformer_lib.course.figures.svg.plane import dot_product_facts, dot_product_plane

pytestmark = pytest.mark.fast

SVG = "{http://www.w3.org/2000/svg}"
TOKENS = ["the", "animal", "because", "it", "the"]


def softmax(*shape, seed=0, sharpness=2.0):
    scores = np.random.default_rng(seed).normal(size=shape) * sharpness
    weights = np.exp(scores)
    return weights / weights.sum(-1, keepdims=True)


def rgb(colour):
    return np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])


def luminance(colour):
    c = rgb(colour)
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def texts(svg, kind=None):
    found = ET.fromstring(svg).iter(f"{SVG}text")
    return [e.text for e in found if kind is None or kind in (e.get("class") or "").split()]


def saved(picture):
    source = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', picture.saved_html).group(1)
    return base64.b64decode(source).decode()


# Colours


@pytest.mark.parametrize(("table", "name"), [(CIVIDIS, "cividis"), (PUOR, "PuOr")])
def test_tables_are_matplotlibs_maps(table, name):
    expected = colormaps[name](np.linspace(0, 1, len(table)))[:, :3]
    np.testing.assert_allclose([rgb(colour) for colour in table], expected, atol=0.5 / 255 + 1e-9)


def test_cividis_grows_lighter_and_puor_is_white_in_the_middle():
    assert np.all(np.diff([luminance(colour) for colour in CIVIDIS]) > 0)
    middle = len(PUOR) // 2
    assert int(np.argmax([luminance(colour) for colour in PUOR])) == middle
    assert luminance(PUOR[middle]) > 0.9


@pytest.mark.parametrize("colour", [*CIVIDIS, *PUOR, colours.GREY, *flow.FILLS.values()])
def test_ink_on_every_colour_has_a_contrast_of_4_5(colour):
    paper, written = luminance(colour), 0.0 if colours.ink_on(colour) == "#000" else 1.0
    assert (max(paper, written) + 0.05) / (min(paper, written) + 0.05) >= 4.5
    assert colours.ink_on(colour) == ink(*rgb(colour))


def test_labels_on_the_parts_of_the_model_are_black():
    assert {colours.ink_on(colour) for colour in flow.FILLS.values()} == {"#000"}


def test_levels_reach_both_ends_and_are_symmetric():
    np.testing.assert_array_equal(colours.weight_levels(np.array([-0.1, 0, 0.5, 1, 1.1])), [0, 0, 32, 63, 63])
    np.testing.assert_array_equal(colours.signed_levels(np.array([-9.0, -3, 0, 3, 9]), 3.0), [0, 0, 32, 64, 64])
    np.testing.assert_array_equal(colours.signed_levels(np.zeros(2), 0.0), [32, 32])
    assert set(colours.weight_levels(np.linspace(0, 1, 101), step=3) % 3) == {0}


# Elements and pictures


def test_text_is_escaped_everywhere():
    nasty = ['<b>"x"</b>', "a&b", "'y'"]
    picture = attention_map(softmax(3, 3), nasty, query=0)
    for svg in (picture.svg, picture.saved_svg):
        assert "<b>" not in svg
        assert nasty[0] in texts(svg)
    assert ET.fromstring(token_lines(softmax(3, 3), nasty).svg) is not None
    assert elements.escape("<a href='x'>&\"") == "&lt;a href=&#x27;x&#x27;&gt;&amp;&quot;"


def test_numbers_are_short():
    assert [elements.number(x) for x in (1.0, 1.25, -0.01, 12.34)] == ["1", "1.2", "0", "12.3"]


def test_fit_cuts_only_what_is_too_wide():
    assert elements.fit("short", 100) == "short"
    cut = elements.fit("a very long token", 60)
    assert cut.endswith("…")
    assert elements.text_width(cut) <= 60


def test_an_arrow_ends_at_its_point_and_a_vanishing_one_is_not_drawn():
    drawn = elements.arrow(0, 0, 30, 40, "#123456")
    assert drawn.count('fill="#123456"') == 1
    assert "30,40 " in drawn
    assert elements.arrow(5, 5, 5.1, 5, "#123456") == ""


def test_the_live_form_follows_the_theme_and_the_saved_form_brings_a_white_card():
    picture = Picture(elements.text(3, 12, "hello"), 100, 20, "A greeting & more", live="<g/>", css=".a{}")
    live, kept = ET.fromstring(picture.svg), ET.fromstring(saved(picture))
    assert "var(--jp-content-font-color1, #111)" in picture.svg
    assert (live.get("aria-label"), live.get("role")) == ("A greeting & more", "group")
    assert (kept.get("aria-label"), kept.get("role")) == ("A greeting & more", "img")
    assert [e.get("fill") for e in kept.iter(f"{SVG}rect")] == ["#fff"]
    assert not list(live.iter(f"{SVG}rect"))
    assert "<g/>" in picture.svg
    assert "<g/>" not in saved(picture)
    assert ".a{}" not in saved(picture)
    assert html.escape("A greeting & more") in picture.saved_html


def test_a_picture_needs_alt_text_and_fits_the_page():
    with pytest.raises(ValueError, match="alt must say what the picture shows"):
        Picture("", 10, 10, " ")
    with pytest.raises(ValueError, match="width must be between 1 and 720 px, got 721"):
        Picture("", 721, 10, "wide")


# Maps


def test_a_single_map_shows_tokens_weights_and_the_best_in_words():
    weights = softmax(5, 5)
    picture = attention_map(weights, TOKENS, query=2)
    shown = texts(saved(picture))
    assert shown.count("the₁") == 2
    assert shown.count("the₂") == 2
    assert {"query (reads) ↓", "key (is read) →"} <= set(shown)
    for weight in weights.ravel():
        assert f"{weight:.2f}" in shown or "<.01" in shown
    best = np.argsort(-weights[2])
    labels = ["the₁", "animal", "because", "it", "the₂"]
    assert picture.says.startswith(f"query because: {labels[best[0]]} {weights[2, best[0]]:.2f}, ")
    i, j = np.unravel_index(weights.argmax(), weights.shape)
    assert picture.alt.endswith(f"Largest: {labels[i]} reads {labels[j]} {weights.max():.2f}.")


def test_every_query_can_be_reached_and_read():
    weights = softmax(5, 5)
    root = ET.fromstring(attention_map(weights, TOKENS).svg)
    rows = [e for e in root.iter(f"{SVG}rect") if "row" in (e.get("class") or "")]
    assert [row.get("tabindex") for row in rows] == ["0"] * 5
    assert rows[3].get("aria-label").startswith("query it: ")
    style = next(root.iter(f"{SVG}style")).text
    for i in range(5):
        assert f".tl:has(.q{i}:hover) .s{i}" in style
        assert any(f"s{i}" in (e.get("class") or "").split() for e in root.iter(f"{SVG}text"))


def test_masked_cells_are_hatched_and_left_out_of_the_words():
    mask = np.tril(np.ones((5, 5), dtype=bool))
    weights = softmax(5, 5) * mask
    weights /= weights.sum(-1, keepdims=True)
    picture = attention_map(weights, TOKENS, mask=mask, query=1)
    drawn = saved(picture)
    assert texts(drawn, "cross") == ["×"] * 10
    strokes = re.findall(r"M(\d) (\d)l(\d)-(\d)", drawn)
    covered = sorted((int(y) - 1 - n, int(x) + n) for x, y, length, _ in strokes for n in range(int(length)))
    assert covered == [(i, j) for i, j in np.argwhere(~mask)]
    assert colours.GREY in drawn
    reading = " ".join(texts(drawn, "idle"))
    assert "animal" in reading
    assert "because" not in reading


def test_words_leave_out_what_is_not_read():
    assert cells.top_words(np.array([0.0, 1.0, 0.0]), ["a", "b", "c"]) == "b 1.00"
    assert cells.top_words(np.zeros(3), ["a", "b", "c"]) == "nothing"


def test_a_query_that_may_read_nothing_says_so():
    mask = np.array([[True, True], [False, False]])
    picture = attention_map(np.array([[0.5, 0.5], [0.0, 0.0]]), ["a", "b"], mask=mask, query=1)
    assert "b → masked: nothing to read" in texts(saved(picture))


def test_heads_share_one_picture():
    weights = softmax(3, 5, 5)
    picture = attention_map(weights, TOKENS, query=0)
    assert [t for t in texts(saved(picture), "bold") if t.startswith("head")] == ["head 1", "head 2", "head 3"]
    assert saved(picture).count('stroke-width="2"') == 3
    assert picture.says.startswith("query the₁: head 1 ")
    root = ET.fromstring(picture.svg)
    assert sum(e.get("tabindex") == "0" for e in root.iter()) == 5  # one stop a token, not one a head and token


def test_very_long_tokens_leave_room_for_the_map():
    tokens = ["x" * 100, "Donaudampfschifffahrt"]
    for picture in (attention_map(softmax(2, 2), tokens), token_lines(softmax(2, 2), tokens)):
        assert picture.width <= 720
        assert {"x" * 22 + "…", tokens[1]} <= set(texts(saved(picture)))


def test_two_lengths():
    picture = attention_map(softmax(3, 5), ["das", "Tier", "war"], TOKENS)
    assert "3 queries (rows) by 5 keys (columns)" in picture.alt


def decoded(drawn, shape):
    """Return the colour of each cell, read back from the paths."""
    root = ET.fromstring(f"<g>{drawn}</g>")
    grid = np.full(shape, root.find("rect").get("fill"), dtype=object)
    for path in root.iter("path"):
        if path.get("stroke", "").startswith("#") and "h" in path.get("d"):
            for x, y, length in re.findall(r"M(\d+) (\d+)h(\d+)", path.get("d")):
                grid[int(y), int(x) : int(x) + int(length)] = path.get("stroke")
    return grid


def test_cells_have_the_colours_of_their_weights():
    weights, visible = softmax(5, 7), np.ones((5, 7), dtype=bool)
    visible[2, 3:5] = False
    levels = colours.weight_levels(weights)
    expected = np.array([[CIVIDIS[level] for level in row] for row in levels], dtype=object)
    expected[~visible] = colours.GREY
    assert np.array_equal(decoded(cells.cells(levels, CIVIDIS, visible, 3, 5, 20), (5, 7)), expected)


def test_read_out_sums_what_it_leaves_out():
    weights = np.full(13, 1 / 13)
    first, second = cells.read_out(weights, [f"t{i}" for i in range(13)], np.ones(13, dtype=bool))
    assert first.startswith("t0 0.08 · t1 0.08")
    assert second.endswith("3 others 0.23")


@pytest.mark.parametrize("shape", [(12, 12), (40, 40), (8, 12, 12), (32, 12, 12), (8, 40, 40), (53, 53)])
@pytest.mark.parametrize("causal", [False, True])
def test_saved_maps_stay_below_50_kb_and_inside_the_page(shape, causal):
    mask = np.tril(np.ones(shape[-2:], dtype=bool)) if causal else None
    picture = attention_map(softmax(*shape), [f"tok{i}" for i in range(shape[-1])], mask=mask, query=1)
    assert len(picture.saved_html) <= 50_000
    assert picture.width <= 720
    ET.fromstring(picture.svg)


@pytest.mark.parametrize(("n_heads", "n", "named"), [(4, 17, 4 + 2), (3, 13, 3 + 2), (4, 29, 0), (5, 17, 0)])
def test_the_tokens_of_several_long_maps_are_named_two_maps_side_by_side(n_heads, n, named):
    """A key is named on each map, a query in each row of maps."""
    picture = attention_map(softmax(n_heads, n, n), [f"w{i}x" for i in range(n)])
    assert picture.body.count(">w1x<") == named and picture.width <= 720


@pytest.mark.parametrize("draw", [attention_map, token_lines])
def test_wrong_shapes_are_named(draw):
    with pytest.raises(ValueError, match=r"weights must .* shape \(5, 5\) for these tokens, got .*3"):
        draw(softmax(3, 3), TOKENS)
    with pytest.raises(ValueError, match="weights must lie between 0 and 1"):
        draw(softmax(5, 5) * 7, TOKENS)


def test_wrong_titles_are_named():
    with pytest.raises(ValueError, match="titles must hold one per head, 2, got 1"):
        attention_map(softmax(2, 5, 5), TOKENS, titles=["only one"])


# Lines


def test_lines_are_as_thick_as_their_weights_and_light_ones_are_left_out():
    weights = np.array([[0.99, 0.01], [0.25, 0.75]])
    drawn = saved(token_lines(weights, ["a", "b"], ["x", "y"]))
    widths = [float(w) for w in re.findall(r'<path [^>]*stroke-width="([\d.]+)"', drawn)]
    assert widths == pytest.approx([0.4 + 5 * 0.99, 0.4 + 5 * 0.25, 0.4 + 5 * 0.75], abs=0.06)


def test_one_query_stands_out_with_its_weights():
    picture = token_lines(softmax(5, 5), TOKENS, query=3)
    assert saved(picture).count('opacity=".12"') == 4
    assert len(texts(saved(picture), "idle")) == 5
    assert picture.says.startswith("query it: ")


# Plane


@pytest.mark.parametrize(
    ("query", "key", "angle", "cosine", "score"),
    [
        ((3, 0), (0, 2), 90, 0, 0),
        ((3, 0), (2, 0), 0, 1, 6),
        ((1, 1), (-2, -2), 180, -1, -4),
        ((1, 0), (1, 1), 45, 0.5**0.5, 1),
    ],
)
def test_facts_of_two_vectors(query, key, angle, cosine, score):
    facts = dot_product_facts(query, key)
    assert facts["angle"] == pytest.approx(angle, abs=1e-5)
    assert facts["cosine"] == pytest.approx(cosine)
    assert facts["score"] == pytest.approx(score)
    assert facts["projection"] * facts["query length"] == pytest.approx(score)


def test_a_zero_vector_has_no_angle():
    assert dot_product_facts((0, 0), (1, 2))["cosine"] == 0
    assert "score 0.00" in dot_product_plane((0.0, 0.0), (1.0, 2.0)).says


def test_the_plane_widens_for_long_vectors():
    texts_of = texts(dot_product_plane((11.0, 0.0), (0.0, 3.0)).svg)
    assert "10" in texts_of
    assert "5" not in texts(dot_product_plane((11.0, 0.0), (0.0, 3.0)).svg)


# Lookup table and charts


def test_lookup_table_holds_every_number():
    weights = np.array([0.75, 0.25])
    picture = lookup_table(["a", "b"], ["(1)", "(2)"], np.array([2.0, -1.0]), weights, np.array([4.0, 8.0]), alt="t")
    shown = texts(saved(picture))
    assert {"2.00", "−1.00", "0.75", "0.25", "3.00", "blended value 5.00", "sum 1.00"} <= set(shown)
    assert [row[0] for row in picture.table] == ["entry", "a", "b"]
    assert "<td>0.750</td>" in picture.saved_html


def test_bars_grow_from_zero_in_both_directions():
    drawn = charts.bar_strip(np.array([2.0, -1.0]), ["#aaaaaa", "#bbbbbb"], (10, 0, 20, 40), (-2.0, 2.0))
    up, down = parts(drawn, "rect")
    assert number(up, "y") + number(up, "height") == number(down, "y")  # they meet at zero
    assert number(up, "height") == 2 * number(down, "height") > 0
    assert (up.get("fill"), down.get("fill")) == ("#aaaaaa", "#bbbbbb")
    assert number(up, "y") >= 0 and number(down, "y") + number(down, "height") <= 40


def test_log_chart_places_powers_evenly_and_holds_high_values_at_the_top():
    drawn = charts.log_chart([1, 4, 16], {"a": [0, 1, 2]}, (0, 0, 100, 50), high=1, colours=["#aaaaaa"], marked=(4, 1))
    [line] = parts(drawn, "polyline")
    first, second, third = points(line)
    assert second[0] - first[0] == third[0] - second[0] > 0
    assert first[1] > second[1] == third[1]  # y grows downwards
    [mark] = parts(drawn, "circle")
    assert centre(mark) == second
