"""Ways to compute attention agree; a race times them; what is stored has all ways at all lengths."""

from __future__ import annotations

import pytest
import torch

import transformer_lib as tl
from studies import racing as study
from transformer_lib.course.lab import racing

WAYS = ("grid", "grid, memory ready", "blocks", "fused")


def inputs(n=37, d_k=5, d_v=7):
    draw = torch.Generator().manual_seed(0)
    return [torch.randn(n, width, generator=draw) for width in (d_k, d_k, d_v)]


@pytest.mark.fast
def test_all_ways_give_the_same_output():
    query, key, value = inputs()
    wanted, _ = tl.scaled_dot_product_attention(query, key, value)
    ready = racing.grid_in(*torch.empty(2, 37, 37))
    for way in (racing.grid, ready, lambda *x: racing.in_blocks(*x, block=11), racing.fused):
        torch.testing.assert_close(way(query, key, value), wanted)


@pytest.mark.fast
def test_blocks_are_joined_and_leave_the_logarithm_of_the_sum():
    query, key, value = inputs()
    output, log_total = racing.attend(query, key, value, block=11)
    wanted, _ = tl.scaled_dot_product_attention(query, key, value)
    torch.testing.assert_close(output, wanted)
    torch.testing.assert_close(log_total, (query @ key.T / 5**0.5).logsumexp(dim=-1, keepdim=True))
    wrong, _ = racing.attend(query, key, value, 11, lambda a, b: (torch.maximum(a[0], b[0]), a[1] + b[1], a[2] + b[2]))
    assert (wrong - wanted).abs().max() > 0.01


@pytest.mark.fast
def test_a_race_has_a_time_for_each_way_and_leaves_the_threads_as_they_were():
    before = torch.get_num_threads()
    seconds = racing.race({"first": torch.add, "second": torch.matmul}, *torch.ones(2, 13, 13), rounds=2)
    assert list(seconds) == ["first", "second"] and min(seconds.values()) > 0
    assert torch.get_num_threads() == before
    for ways, rounds in (({}, 1), ({"first": torch.add}, 0)):
        with pytest.raises(ValueError, match="ways and rounds must be at least one"):
            racing.race(ways, rounds=rounds)


@pytest.mark.fast
def test_rates_and_pages_are_counts():
    assert racing.product_rate(31, rounds=1) > 0 and racing.moving_rate(2**20, rounds=1) > 0
    assert racing.pages(torch.add, *torch.ones(2, 13)) in (None, *range(1000))


@pytest.mark.fast
def test_the_file_has_every_way_at_every_length_for_every_seed():
    stored = racing.load_results()
    assert {(run["n"], run["seed"]) for run in stored["runs"]} == {(n, s) for n in study.LENGTHS for s in (0, 1, 2)}
    assert all(tuple(run["seconds"]) == WAYS and min(run["seconds"].values()) > 0 for run in stored["runs"])


def test_a_tiny_run_has_the_form_of_the_stored_one(monkeypatch):
    monkeypatch.setattr(study, "LENGTHS", (64, 128, 256))
    monkeypatch.setattr(study, "UNCACHED", 2**18)
    found, stored = study.measure([3], rounds=1, longest=128), racing.load_results()
    assert set(found) == set(stored) - {"command", "date", "seeds"}
    assert [(run["n"], run["seed"]) for run in found["runs"]] == [(64, 3), (128, 3)]
    assert all(tuple(run["seconds"]) == WAYS for run in found["runs"])
    assert set(found["per second"]) == set(stored["per second"])
