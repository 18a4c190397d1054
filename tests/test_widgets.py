"""Interactive figures: a control moves, the picture follows; the numbers shown are the right ones."""

from __future__ import annotations

import re

import ipywidgets
import numpy as np
import pytest
import torch

import transformer_lib as tl
from small_panels import TOKENS, softmax
from transformer_lib.course import notebooks, progress
from transformer_lib.course.figures import widgets
from transformer_lib.course.figures.svg import Picture
from transformer_lib.course.figures.svg.elements import text
from transformer_lib.course.figures.widgets import (
    architecture_panel,
    lookup_panel,
    scaling_panel,
)
from transformer_lib.course.figures.widgets.controls import word


def drawing(**values):
    shown = " ".join(f"{name} {value}" for name, value in values.items())
    return Picture(text(5, 15, shown), 300, 20, f"Shows {shown}", shown)


# Controls


def test_box_and_slider_move_together_and_stay_in_bounds():
    control = widgets.number("d_ff", 3, 1, 7)
    control.slider.value = 5
    assert (control.value, control.box.value) == (5, 5)
    control.box.value = 2
    assert (control.value, control.slider.value) == (2, 2)
    control.value = 99
    assert (control.value, control.box.value, control.slider.value) == (7, 7, 7)
    assert isinstance(control.box, ipywidgets.IntText)
    assert isinstance(widgets.number("T", 0.5, 0, 1, 0.1).slider, ipywidgets.FloatSlider)


def test_powers_step_by_doubling_and_the_box_takes_any_number():
    control = widgets.number("d_k", 64, 1, 1024, powers=True)
    assert (control.slider.value, control.slider.max) == (6, 10)
    control.slider.value = 3
    assert control.value == 8
    control.box.value = 100
    assert (control.value, control.slider.value) == (100, 7)
    assert widgets.number("T", 1.0, 1 / 32, 128.0, powers=True).slider.min == -5


def test_steps_are_not_blurred_by_binary_fractions():
    control = widgets.number("T", 1.0, 0.0, 2.0, 0.05)
    control.slider.value = 1.0499999999999998  # what the browser sends after 21 steps
    assert (control.value, control.box.value) == (1.05, 1.05)


def test_a_number_out_of_bounds_is_brought_inside_and_this_is_said():
    shown = widgets.soft_lookup()
    control = shown.controls["temperature"]
    control.box.value = 0.0
    assert (control.value, control.box.value, control.note.value) == (1 / 32, 1 / 32, "<i>the smallest is 0.03125</i>")
    assert "largest weight 1.00" in shown.picture.says
    control.box.value = 1000.0
    assert (control.value, control.note.value) == (128.0, "<i>the largest is 128</i>")
    control.box.value = 2.0
    assert (control.value, control.note.value) == (2.0, "")


def test_one_change_is_reported_once():
    seen = []
    control = widgets.number("d_k", 64, 1, 1024, powers=True)
    control.observe(lambda change: seen.append(change.new), "value")
    control.slider.value = 2
    control.box.value = 33
    assert seen == [4, 33]


def test_a_number_is_named_by_its_box():
    control = widgets.number("query length", 1.0, 0.0, 2.0, 0.5)
    assert control.box.description == "query length"
    with pytest.raises(ValueError, match="value must lie between 1 and 3, got 5"):
        widgets.number("n", 5, 1, 3)


def test_choice_is_buttons_then_a_slider():
    few, many = widgets.choice("head", ["all", 1, 2]), widgets.choice("head", list(range(10)), 4)
    assert (type(few), few.value) == (ipywidgets.ToggleButtons, "all")
    assert (type(many), many.value) == (ipywidgets.SelectionSlider, 4)
    with pytest.raises(ValueError, match="options must hold at least one entry"):
        widgets.choice("head", [])


def descendants(widget):
    yield widget
    for child in getattr(widget, "children", ()):
        yield from descendants(child)


# Panel


def test_the_panel_redraws_on_a_change_and_tells_the_result():
    shown = widgets.Panel(drawing, {"n": widgets.number("n", 3, 1, 7), "on": widgets.switch("on")})
    assert "n 3 on False" in shown._view.value
    shown.controls["n"].slider.value = 5
    assert "n 5 on False" in shown._view.value and "n 5 on False" in shown._says.value
    assert 'aria-live="polite"' in shown._says.value
    assert shown.set(on=True).picture.says == "n 5 on True"
    with pytest.raises(ValueError, match=r"values must name controls among \['n', 'on'\], got \['m'\]"):
        shown.set(m=1)


def test_the_states_are_all_settings_and_leave_the_controls_alone():
    controls = {"n": widgets.number("n", 4, 1, 7, 3), "on": widgets.switch("on"), "c": widgets.choice("c", "ab", "b")}
    shown = widgets.Panel(drawing, controls, footer=lambda n, **_: f"<p>{n}</p>")
    states = list(shown.states(most=12))
    assert [values for values, *_ in states[:5]] == [
        {"n": n, "on": on, "c": c} for n, on, c in ((1, 0, "a"), (1, 0, "b"), (1, 1, "a"), (1, 1, "b"), (4, 0, "a"))
    ]
    assert states[-1][1].says == "n 7 on True c b" and states[-1][2] == "<p>7</p>" and len(states) == 12
    assert shown.values == {"n": 4, "on": False, "c": "b"}
    with pytest.raises(ValueError, match="12 states are more than 11; name fewer values as `carried`"):
        shown.states(most=11)


@pytest.mark.parametrize(
    ("control", "values"),
    [
        (widgets.number("x", 0.5, 0, 1, 0.5), [0, 0.5, 1]),
        (widgets.number("x", 4, 1, 8, powers=True), [1, 2, 4, 8]),
        (widgets.number("x", 0.3, 1 / 1024, 0.4, powers=True), [0.000977, 0.001953, 0.3]),
        (widgets.number("d", 64, 1, 100, 1, powers=True), [1, 2, 4, 8, 16, 32, 64]),
        (widgets.choice("c", "ab"), ["a", "b"]),
        (widgets.switch("on"), [False, True]),
    ],
)
def test_a_page_offers_what_the_slider_or_the_buttons_give(control, values):
    offered = widgets.Panel(drawing, {"x": control}).carried["x"]
    assert [each for each in offered if each in values] == values
    assert control.value in offered


def test_a_page_offers_what_a_panel_names_and_its_present_value():
    controls = {"n": widgets.number("n", 3, 1, 7), "w": word("w", "bank")}
    shown = widgets.Panel(drawing, controls, carried={"n": (1, 5), "w": ["seal"]})
    assert shown.carried == {"n": [1, 3, 5], "w": ["bank", "seal"]}
    with pytest.raises(ValueError, match=r"carried must name controls among \['n', 'w'\], got \['v'\]"):
        widgets.Panel(drawing, controls, carried={"v": [1]})
    with pytest.raises(ValueError, match="carried must name values of 'w', which takes any text"):
        widgets.Panel(drawing, controls).states()


def test_controls_are_declared_with_what_is_shown_of_their_values():
    controls = {"c": widgets.choice("c:", "ab", "b", names=["one", "two"]), "n": widgets.number("n", 3, 1, 7)}
    c, n = widgets.Panel(drawing, controls, carried={"n": (1, 5)}).declared()
    assert c == {"name": "c", "kind": "choice", "label": "c", "values": ["one", "two"], "at": 1} | {
        "some": False,
        "scripted": False,
    }
    assert (n["kind"], n["values"], n["at"], n["some"]) == ("number", [1, 3, 5], 1, True)


def test_the_saved_form_is_a_picture_with_alt_text_and_a_widget_view():
    shown = widgets.Panel(drawing, {"n": widgets.number("n", 3, 1, 7)}, footer=lambda n: f"<p>see {n}</p>")
    bundle = shown._repr_mimebundle_()
    assert set(bundle) == {"application/vnd.jupyter.widget-view+json", "text/html", "text/plain"}
    assert bundle["text/plain"] == "Shows n 3"
    _, saved = bundle["text/html"].split("</p>", 1)
    assert saved.startswith('<p><strong>n 3</strong></p>\n<img alt="Shows n 3" src="data:image/svg+xml;')
    assert "<svg" not in bundle["text/html"]  # raw SVG is stripped from a notebook that is not trusted
    assert bundle["text/html"].endswith("><p>see 3</p>")
    assert shown._below.outputs[0]["data"]["text/html"] == "<p>see 3</p>"


def room_for_text(shown):
    return float(re.search(r"min-height:([\d.]+)em", shown._says.value)[1])


def test_the_room_for_the_result_never_shrinks():
    shown = widgets.Panel(
        lambda n: Picture(text(5, 15, n), 300, 20, "Shows n", "word " * n), {"n": widgets.number("n", 1, 1, 99)}
    )
    before = room_for_text(shown)
    most = room_for_text(shown.set(n=90))
    assert most > before
    assert room_for_text(shown.set(n=1)) == most


def test_the_map_stays_where_it_is_and_its_boxes_can_be_clicked():
    shown = widgets.model_map(step=4)
    spots = [child for child in descendants(shown) if "tl-spot" in getattr(child, "_dom_classes", ())]
    assert len(spots) == len(architecture_panel.STEPS)
    spots[7].click()
    assert shown.values == {"step": 8}
    assert "8. encoder, memory" in shown.picture.says
    assert list(progress.state()["widget"]) == ["W15"]
    room = {room_for_text(shown.set(step=step)) for step in range(1, len(spots) + 1)}
    assert len(room) == 1


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("encoder.layers.0.self_attention", "encoder layer 1"),
        ("decoder.layers.1.cross_attention", "decoder layer 2, cross"),
        ("enc", "enc"),
    ],
)
def test_layers_are_called_what_the_text_calls_them(name, label):
    shown = widgets.attention_view({name: softmax(2, 5, 5), "other": softmax(2, 5, 5)}, TOKENS)
    assert shown.controls["layer"].options[0][0] == label


# W1


def test_w1_is_a_dict_at_zero_and_a_mean_at_infinity():
    scores = np.array([3.0, 1.0, 0.0, -1.0])
    assert lookup_panel.lookup_weights(scores, 0.05).max() > 0.999
    assert np.abs(lookup_panel.lookup_weights(scores, 100.0) - 0.25).max() < 0.006
    expected = torch.softmax(torch.tensor(scores) / 0.7, -1).numpy()
    np.testing.assert_allclose(lookup_panel.lookup_weights(scores, 0.7), expected, rtol=1e-12)
    np.testing.assert_allclose(np.array(lookup_panel.KEYS) @ [1, 0], scores)
    with pytest.raises(ValueError, match="temperature must be positive, got 0"):
        lookup_panel.lookup_weights(scores, 0)


def test_w1_at_both_ends_of_its_slider():
    shown = widgets.soft_lookup()
    says = shown.set(temperature=0.05).picture.says
    assert says == "largest weight 1.00; blended value 9.00; the nearest key returns 9.00 (honey)"
    assert shown.set(temperature=100.0).picture.says.startswith("largest weight 0.26; blended value 3.79")


def test_w1_two_equal_keys_share_and_the_others_shrink():
    shown = widgets.soft_lookup()
    alone = [float(row[3]) for row in shown.picture.table[1:]]
    shared = [float(row[3]) for row in shown.set(copy=True).picture.table[1:]]
    assert shared[0] == shared[1]
    assert shared[0] < alone[0]
    assert shared[2] < alone[1]
    assert "2 keys tie for nearest" in shown.picture.says


def test_w1_with_own_keys():
    shown = widgets.soft_lookup([[1.0], [2.0], [3.0]], [10, 20, 30], query=[2.0])
    assert list(shown.controls) == ["q1", "temperature", "copy"]
    weights = torch.softmax(torch.tensor([2.0, 4.0, 6.0]), 0)
    assert f"blended value {weights @ torch.tensor([10.0, 20, 30]):.2f}" in shown.picture.says
    assert "the nearest key returns 30.00 (entry 3)" in shown.picture.says


# W2


def test_w2_right_angle_and_doubled_length():
    shown = widgets.dot_product()
    assert "cosine 0.00" in shown.set(angle=90).picture.says
    assert shown.picture.says.endswith("score 0.00")
    once = dict(shown.set(angle=60, key_length=2.0, query_length=2.0).picture.table)
    twice = dict(shown.set(key_length=4.0).picture.table)
    assert (once["score"], twice["score"]) == ("2.00", "4.00")
    assert once["cosine"] == twice["cosine"] == "0.50"


def test_w2_shows_the_learners_own_vectors_exactly():
    shown = widgets.dot_product(torch.tensor([1.0, 2.0]), [-3.0, 0.5])
    assert dict(shown.picture.table)["score"] == "−2.00"
    assert shown.set(angle=0).picture.says.startswith("angle 0°, cosine 1.00")


def test_w2_starts_on_the_steps_of_its_sliders_which_would_otherwise_move_it():
    for query, key in (([2.0, 1.0], [1.0, 2.5]), ([3.0, 0.0], [1.0, 2.0]), ([0.1, 7.0], [-0.3, 0.0])):
        for name, control in widgets.dot_product(query, key).controls.items():
            steps = (control.value - control.slider.min) / control.slider.step
            assert steps == pytest.approx(round(steps), abs=1e-9), name


# W3


def test_w3_numbers_against_torch():
    d_k, n_keys = 7, 11
    found = widgets.softmax_saturation(d_k, True, n_keys, seed=3)
    generator = np.random.default_rng(3)
    queries = torch.tensor(generator.standard_normal((200, d_k), dtype=np.float32), dtype=torch.float64)
    keys = torch.tensor(generator.standard_normal((200, n_keys, d_k), dtype=np.float32), dtype=torch.float64)
    scores = (keys @ queries[:, :, None])[..., 0] / d_k**0.5
    weights = torch.softmax(scores, -1)
    np.testing.assert_allclose(found.scores, scores[0], atol=1e-6)
    assert found.largest_weight == pytest.approx(weights.max(-1).values.mean().item(), abs=1e-6)
    jacobians = [torch.autograd.functional.jacobian(lambda s: torch.softmax(s, -1), row) for row in scores]
    norm = torch.stack(jacobians).flatten(1).norm(dim=1).mean().item()
    assert found.gradient == pytest.approx(norm, abs=1e-6)


@pytest.mark.parametrize(("d_k", "largest", "gradient"), [(16, 0.588, 0.296), (64, 0.781, 0.223), (1024, 0.954, 0.063)])
def test_w3_agrees_with_larger_samples(d_k, largest, gradient):
    found = widgets.softmax_saturation(d_k, False)
    assert found.largest_weight == pytest.approx(largest, abs=0.04)
    assert found.gradient == pytest.approx(gradient, abs=0.03)


def test_w3_scaling_keeps_the_weights_alike_for_every_width():
    largest = [widgets.softmax_saturation(d_k, True).largest_weight for d_k in scaling_panel.WIDTHS]
    assert max(largest) - min(largest) < 0.04
    with pytest.raises(ValueError, match="d_k and n_keys must be at least 1, got 0 and 64"):
        widgets.softmax_saturation(0, True)


def test_w3_numbers_cannot_be_changed_by_accident():
    with pytest.raises(ValueError, match="read-only"):
        widgets.softmax_saturation(16, True).weights[0] = 1.0


def test_w3_shows_the_measured_numbers():
    shown = widgets.saturation()
    for d_k, scaled in ((64, False), (512, True), (100, False)):
        measured = widgets.softmax_saturation(d_k, scaled)
        says = shown.set(d_k=d_k, scaled=scaled).picture.says
        assert f"largest weight {measured.largest_weight:.2f}, gradient {measured.gradient:.3f}" in says


# W15


@pytest.mark.parametrize("norm_first", [False, True])
def test_w15_shapes_are_those_of_forward_hooks(norm_first):
    config = tl.TransformerConfig(
        src_vocab_size=11, tgt_vocab_size=13, d_model=6, n_heads=3, n_layers=2, d_ff=17, norm_first=norm_first
    )
    model, seen = tl.Transformer(config).eval(), {}
    for name, module in model.named_modules():
        module.register_forward_hook(lambda _, __, out, name=name: seen.setdefault(name, []).append(tuple(out.shape)))
    src, tgt_in = torch.randint(3, 11, (5, 7)), torch.randint(3, 11, (5, 4))
    with tl.record_attention(model) as weights, torch.no_grad():
        logits = model(src, tgt_in)
    shapes = widgets.step_shapes(config, batch=5, src_len=7, tgt_len=4)
    sizes = architecture_panel._sizes(config, 5, 7, 4)
    for number, (step, shape) in enumerate(zip(architecture_panel.STEPS, shapes, strict=True)):
        if step.module:
            assert shape == seen[step.module][1 if (step.module, number > 7) == ("position", True) else 0], step
        if step.kind == "attention":
            assert architecture_panel.shape_of(step.inner, sizes) == tuple(weights[step.module].shape)
        elif step.inner:
            assert architecture_panel.shape_of(step.inner, sizes) == seen[f"{step.module}.expand"][0]
    assert (shapes[0], shapes[8], shapes[-1]) == (tuple(src.shape), tuple(tgt_in.shape), tuple(logits.shape))


def test_w15_tells_the_shape_and_frames_the_step():
    shown = widgets.model_map(src_len=7, tgt_len=5, step=14)
    assert "[batch 1, tgt_len 5, d_model 512]" in shown.picture.says
    assert "inside: [batch 1, n_heads 8, tgt_len 5, src_len 7]" in shown.picture.says
    assert shown.picture.svg.count("▶ 14") == 1
    assert shown.set(step=1).picture.svg.count("▶ 1<") == 1


def test_w15_names_the_parts_of_a_pre_norm_model():
    config = tl.TransformerConfig(src_vocab_size=11, tgt_vocab_size=11, norm_first=True)
    shown = widgets.model_map(config, step=4).picture
    assert "norm, self-attention" in shown.svg
    assert "add &amp; norm" not in shown.svg


def test_w15_links_only_to_notebooks_that_are_there():
    every = {name for step in architecture_panel.STEPS for name in step.notebooks}
    assert all(notebooks.notebook(name).id == name for name in every)
    assert '<a href="04_scaled_dot_product_attention.ipynb">' in architecture_panel._links(
        4, lambda entry: entry.id == "04"
    )
    assert architecture_panel._links(4, lambda entry: entry.id == "04").count("<a ") == 1
    assert "<a " not in architecture_panel._links(4, lambda entry: False)


# Attention view


def test_view_shows_the_recorded_weights():
    config = tl.TransformerConfig(src_vocab_size=11, tgt_vocab_size=11, d_model=6, n_heads=3, n_layers=2, d_ff=17)
    model = tl.Transformer(config).eval()
    with tl.record_attention(model) as recorded, torch.no_grad():
        model(torch.randint(3, 11, (1, 5)), torch.randint(3, 11, (1, 4)))
    cross = {name: weights for name, weights in recorded.items() if "cross" in name}
    shown = widgets.attention_view(cross, list("abcd"), list("vwxyz"))
    shown.set(layer="decoder.layers.1.cross_attention", head=3, token=2)
    row = cross["decoder.layers.1.cross_attention"][0, 2, 1]
    best = int(row.argmax())
    assert shown.picture.says.startswith(f"query b: {'vwxyz'[best]} {row[best]:.2f}, ")
    assert "decoder layer 2, cross, head 3" in shown.picture.svg


def test_view_of_one_head_and_as_lines():
    shown = widgets.attention_view(softmax(5, 5), TOKENS)
    assert list(shown.controls) == ["head", "show", "token"]
    assert shown.set(show="lines", token=2).picture.alt.startswith("Lines from 5 queries")
    assert shown.picture.says.startswith("query cat: ")
