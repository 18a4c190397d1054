"""The study of hops: its task, its encoders, a short run that must repeat the stored one, and what is stored."""

from __future__ import annotations

import pytest
import torch

from studies import hops as study
from transformer_lib.course.lab import hops as study_lab

STORED = study_lab.load_results()


@pytest.mark.parametrize("hops", [1, 2, 3, 8])
def test_a_token_has_to_name_the_colour_at_the_end_of_its_hops(hops):
    x, colours = study.sequences(5, hops, torch.Generator().manual_seed(3))
    names, pointers, own = (part.argmax(dim=-1).tolist() for part in x.split(study.NAMES, dim=-1))
    for row in range(5):
        assert sorted(names[row]) == sorted(pointers[row]) == sorted(own[row]) == list(range(study.NAMES))
        for token in range(study.NAMES):
            at = token
            for _ in range(hops):
                at = names[row].index(pointers[row][at])
                assert (at == token) == (_ == study.NAMES - 1)  # one circle: back at the start after 8 hops
            assert colours[row, token] == own[row][at]


def test_any_token_may_read_any_other():
    torch.manual_seed(0)
    model, (x, _) = study.Follower("one layer"), study.sequences(1, 1, torch.Generator().manual_seed(0))
    changed = x.clone()
    changed[0, 7] = x[0, 0]
    assert (model(changed) - model(x)).abs().amax(dim=-1).min() > 1e-5


def test_what_is_not_reached_within_the_cap_is_none():
    assert study.steps_of(study.train("one layer", 2, 0, steps=25)) is None
    assert study.reached([1.0] * study.WINDOW) and not study.reached([1.0] * (study.WINDOW - 1))
    assert not study.reached([1.0] * 50 + [0.9] * study.WINDOW)


def test_a_short_run_repeats_the_stored_one():
    found = study.steps_of(study.train("one layer", 1, 1, steps=150))
    assert found == pytest.approx(STORED["steps"]["one layer"]["1"][1], abs=8)


def test_what_was_not_reached_has_the_shares_at_the_end(monkeypatch):
    monkeypatch.setattr(study, "WINDOW", 2)

    def trained(shape, hops, seed):
        return [0.0, 0.25, 0.75] if (shape, hops, seed) == ("one layer", 3, 5) else [0.0] * hops + [1.0, 1.0]

    monkeypatch.setattr(study, "trained", trained)
    assert study.steps_needed("one layer", 3, [4, 5]) == [5, None]
    assert study.unreached([4, 5]) == {"one layer": {"3": [1.0, 0.5]}}


def test_the_table_shows_what_was_not_reached():
    rows = study_lab.table(STORED).splitlines()
    assert len(rows) == 2 + len(study.SHAPES) and rows[1].split() == [
        "parameters",
        "1",
        "hop",
        "2",
        "hops",
        "3",
        "hops",
    ]
    shares = ", ".join(f"{share:.2f}" for share in STORED["unreached"]["one layer"]["3"])
    assert rows[2].startswith("one layer") and rows[2].endswith(f">3000 ({shares})")
    assert rows[4].endswith(" / ".join(map(str, STORED["steps"]["two layers"]["3"])))
