from __future__ import annotations

import math

import pytest

from transformer_lib.training.schedules import SCHEDULES, cosine_rate, make_schedule, make_timed_schedule, paper_rate

pytestmark = pytest.mark.fast

TOTAL, WARMUP, PEAK = 211, 17, 0.003


def make(kind, **changes):
    options = {"total_steps": TOTAL, "learning_rate": PEAK, "warmup_steps": WARMUP, "d_model": 512, **changes}
    return make_schedule(kind, **options)


@pytest.mark.parametrize(
    ("step", "wanted"), [(1, 1.7469281e-7), (4000, 6.9877124e-4), (16_000, 3.4938562e-4), (100_000, 1.3975425e-4)]
)
def test_the_papers_base_model(step, wanted):
    assert paper_rate(step, 512, 4000) == pytest.approx(wanted, rel=1e-6)


def test_the_papers_rate_peaks_at_the_end_of_the_warm_up():
    rates = [paper_rate(step, 30, WARMUP) for step in range(1, TOTAL + 1)]
    assert rates.index(max(rates)) == WARMUP - 1
    assert max(rates) == pytest.approx(1 / math.sqrt(30 * WARMUP))
    assert rates[2] == pytest.approx(3 * rates[0])  # linear before,
    assert rates[4 * WARMUP - 1] == pytest.approx(max(rates) / 2)  # and an inverse square root after


def test_cosine_rises_to_its_peak_and_falls_to_nearly_nothing():
    rates = [cosine_rate(step, TOTAL, PEAK, WARMUP) for step in range(1, TOTAL + 1)]
    assert rates[0] == pytest.approx(PEAK / WARMUP) and rates[WARMUP - 1] == PEAK
    assert rates[:WARMUP] == sorted(rates[:WARMUP]) and rates[WARMUP:] == sorted(rates[WARMUP:], reverse=True)
    assert rates[WARMUP] < PEAK
    assert 0 < rates[-1] < 0.001 * PEAK


def test_cosine_is_at_half_its_peak_half_way_down():
    assert cosine_rate(16 + 50, 16 + 99, PEAK, 16) == pytest.approx(PEAK / 2)


def test_cosine_stays_at_zero_past_its_end():
    assert cosine_rate(TOTAL + 1, TOTAL, PEAK, WARMUP) == cosine_rate(9 * TOTAL, TOTAL, PEAK, WARMUP) == 0


def test_a_warm_up_longer_than_the_run_only_rises():
    rates = [cosine_rate(step, 5, PEAK, 7) for step in range(1, 6)]
    assert rates == pytest.approx([PEAK * step / 7 for step in range(1, 6)])


def test_a_run_of_warm_up_alone_ends_at_the_peak():
    assert cosine_rate(5, 5, PEAK, 5) == PEAK


@pytest.mark.parametrize("step", [1, WARMUP, WARMUP + 1, 100, TOTAL])
def test_schedules_by_name(step):
    assert make("cosine")(step) == cosine_rate(step, TOTAL, PEAK, WARMUP)
    assert make("paper", learning_rate=2.0)(step) == pytest.approx(2 * paper_rate(step, 512, WARMUP))
    assert make("constant")(step) == pytest.approx(PEAK * min(1, step / WARMUP))


@pytest.mark.parametrize("kind", SCHEDULES)
def test_steps_count_from_one(kind):
    schedule = make(kind)
    assert schedule(1) > 0
    if kind != "constant":
        with pytest.raises(ValueError, match="step must be at least 1, got 0"):
            schedule(0)


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("linear", {}, "schedule must be one of 'cosine', 'paper', 'constant', got 'linear'"),
        ("paper", {"warmup_steps": 0}, "warmup_steps must be at least 1, got 0"),
        ("cosine", {"total_steps": 0}, "total_steps must be at least 1, got 0"),
        ("constant", {"learning_rate": 0.0}, "learning_rate must be positive, got 0.0"),
        ("constant", {"learning_rate": float("nan")}, "learning_rate must be positive, got nan"),
    ],
)
def test_bad_options_are_refused(kind, changes, message):
    with pytest.raises(ValueError, match=message):
        make(kind, **changes)


# By the clock.


def make_timed(kind, **changes):
    return make_timed_schedule(kind, **{"learning_rate": PEAK, "warmup_steps": WARMUP, "d_model": 512, **changes})


def test_by_the_clock_the_rate_warms_up_by_steps_and_falls_with_the_time():
    schedule = make_timed("cosine")
    assert schedule(1, 0.0) == pytest.approx(PEAK / WARMUP)
    assert schedule(WARMUP, 0.0) == pytest.approx(PEAK) == schedule(9999, 0.0)
    assert schedule(9999, 0.5) == pytest.approx(PEAK / 2)
    assert schedule(9999, 0.25) == pytest.approx(PEAK * (1 + math.sqrt(0.5)) / 2)
    falling = [schedule(9999, i / 100) for i in range(101)]
    assert falling == sorted(falling, reverse=True) and falling[-1] == schedule(9999, 1.3) == 0


def test_many_short_steps_are_rated_like_a_run_by_steps():
    schedule = make_timed("cosine", warmup_steps=1)
    by_step = make("cosine", warmup_steps=1)
    for step in range(2, TOTAL + 1):
        assert schedule(step, (step - 1) / TOTAL) == pytest.approx(by_step(step), abs=1e-9)


@pytest.mark.parametrize("kind", ["paper", "constant"])
def test_schedules_without_an_end_go_by_steps_alone(kind):
    for step in (1, WARMUP, 100):
        assert make_timed(kind)(step, 0.7) == make(kind)(step)


def test_a_time_before_the_beginning_is_refused():
    with pytest.raises(ValueError, match="fraction must be at least 0, got -0.1"):
        make_timed("cosine")(3, -0.1)
    with pytest.raises(ValueError, match="schedule must be one of .*, got 'linear'"):
        make_timed("linear")
