"""W38, a writer that is rewarded: it shows what the study has stored, and nothing beyond the step."""

from __future__ import annotations

import pytest

from svg_parts import parts, points
from transformer_lib.course.figures.widgets import rewarded, rewarded_panel
from transformer_lib.course.lab import rewards


@pytest.mark.parametrize("price", rewarded_panel.PRICES)
@pytest.mark.parametrize("seed", rewarded_panel.SEEDS)
def test_it_says_what_is_stored(price, seed):
    panel = rewarded(price, 150, seed)
    run = next(run for run in rewards.load_results()["runs"] if (run["arm"], run["seed"]) == (f"KL {price:g}", seed))
    last = run["steps"]["150"]
    assert f"{last['grammatical']:.2f} grammatical, {round(400 * last['distinct'])} of 400" in panel.picture.says
    assert last["text"][:20] in panel.picture.body
    assert len(panel.picture.table) == 1 + len(rewarded_panel.STEPS)


def test_it_draws_only_up_to_the_step():
    panel = rewarded()
    assert "after 0 steps" in panel.picture.says and "one of 400 texts" in panel.picture.body
    panel.set(step=60)
    assert {len(points(line)) for line in parts(panel.picture.body, "polyline")} == {4}  # 0, 20, 40, 60


def test_its_states_are_few_and_listed():
    states = list(rewarded().states())
    assert len(states) == 42 and {values["price"] for values, *_ in states} == {0.0, 0.05}


@pytest.mark.parametrize(
    ("bad", "message"),
    [({"price": 0.1}, "price must be one of 0.0, 0.05, got 0.1"), ({"step": 61}, "step must"), ({"seed": 3}, "seed")],
)
def test_what_is_not_stored_is_refused(bad, message):
    with pytest.raises(ValueError, match=message):
        rewarded(**bad)
