"""Several processes: the same losses whole and sharded, the bytes that a ring sends, and what the page shows."""

from __future__ import annotations

import pytest

from studies import processes

WAYS = (processes.WHOLE, processes.SHARDED)


@pytest.mark.slow
def test_two_processes_take_the_steps_of_one_whole_or_sharded():
    alone = processes.run_group(1, 1, processes.WHOLE, steps=1)
    for way in WAYS:
        found = processes.run_group(2, 1, way, steps=1)
        assert found["losses"] == pytest.approx(alone["losses"], abs=1e-4)
        # Other programs also send through the loopback interface, so that only a lower bound is certain.
        wanted = 2 * processes.sent_through_gloo(found["parameters"], found["in_layers"], 2, way)
        assert found["bytes"] == 0 or found["bytes"] > 0.99 * wanted
        assert found["kept"] == found["parameters"] / (1 if way == processes.WHOLE else 2)
    assert alone["losses"][-1] < alone["losses"][0] - 0.05


def ring_bytes(numbers: int, members: int) -> float:
    """Pass parts of the gradients around a ring until all have the sum, and count what each member sends."""
    part, sent = numbers // members, [0] * members
    held = [[{member} for _ in range(members)] for member in range(members)]  # whose gradients each part contains
    for lap, whole in ((0, False), (1, True)):  # first sums are passed on, then what has become whole
        for step in range(members - 1):
            moving = [(member, (member + lap - step) % members) for member in range(members)]
            passed = [held[member][which] for member, which in moving]
            for (member, which), content in zip(moving, passed, strict=True):
                following = (member + 1) % members
                held[following][which] = content if whole else held[following][which] | content
                sent[member] += 4 * part
    assert all(contains == set(range(members)) for parts in held for contains in parts)
    assert len(set(sent)) == 1
    return sent[0]


@pytest.mark.fast
@pytest.mark.parametrize("members", [2, 3, 7])
def test_a_ring_sends_what_the_formula_says(members):
    numbers = 5 * members
    assert processes.sent_by_each(numbers, members, processes.WHOLE) == pytest.approx(ring_bytes(numbers, members))
    # Sharded, each gradient makes the first lap alone, and each weight the second lap, twice.
    lap = ring_bytes(numbers, members) / 2
    assert processes.sent_by_each(numbers, members, processes.SHARDED) == pytest.approx(3 * lap)


@pytest.mark.fast
def test_what_is_kept_adds_up():
    assert processes.kept_by_each(13, 5) == 13 * 16
    assert processes.kept_by_each(13, 5, ("Adam",)) == pytest.approx(13 * (8 + 8 / 5))
    assert processes.kept_by_each(13, 5, tuple(processes.BYTES)) == pytest.approx(13 * 16 / 5)


@pytest.mark.fast
@pytest.mark.parametrize("way", WAYS)
def test_with_the_tokens_of_balance_computing_takes_as_long_as_sending(way):
    rate, link, parameters = 3e11, 7e8, 11e6
    tokens = processes.tokens_to_balance(rate, link, 5, way)
    sending = processes.sent_by_each(parameters, 5, way) / link
    assert 6 * parameters * tokens / rate == pytest.approx(sending)


@pytest.mark.fast
def test_the_models_of_the_paper_have_its_sizes():
    base, big = (processes.MODELS[name] for name in ("base", "big"))
    assert base == pytest.approx(65e6, rel=0.05) and big == pytest.approx(213e6, rel=0.05)  # its table 3


@pytest.mark.fast
def test_what_was_counted_is_what_was_computed():
    results = processes.load_results()
    assert list(results["groups"]) == [name for name, *_ in processes.GROUPS]
    for name, members, _, way in processes.GROUPS:
        row = results["groups"][name]
        wanted = members * processes.sent_through_gloo(results["parameters"], results["in_layers"], members, way)
        assert row["bytes"] == pytest.approx(wanted, rel=0.03, abs=1e5)
        assert row["apart"] < 1e-4
    assert results["groups"][processes.ALONE]["faster"] == 1
