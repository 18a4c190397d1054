"""The study of looking as far back as the word says: its rows, what a reader sees, and a short run."""

from __future__ import annotations

import pytest
import torch

from studies import look_back as study
from transformer_lib.course.lab import look_back as lab

GENERATOR = torch.Generator().manual_seed(11)


def test_the_answers_are_the_letters_asked_for():
    ids, answers = lab.draw_rows(5, 13, GENERATOR)
    assert ids.shape == (5, 13) and answers.shape == (5, 13 - lab.FARTHEST)
    for row in range(5):
        for position in range(lab.FARTHEST, 13):
            back = int(ids[row, position]) % lab.FARTHEST + 1
            assert answers[row, position - lab.FARTHEST] == ids[row, position - back] // lab.FARTHEST


@pytest.mark.parametrize(("scheme", "heads"), study.ARMS)
def test_a_reader_answers_at_every_position_and_sees_nothing_later(scheme, heads):
    torch.manual_seed(0)
    reader, ids = lab.Reader(scheme, heads), torch.randint(lab.LETTERS * lab.FARTHEST, (3, 17))
    changed = ids.clone()
    changed[:, 11] = (ids[:, 11] + 1) % (lab.LETTERS * lab.FARTHEST)
    before, after = reader(ids), reader(changed)
    assert before.shape == (3, 17, lab.LETTERS)
    moved = (before - after).abs().amax(dim=(0, 2)) > 1e-6
    assert not moved[:11].any() and moved[11:].all()


def test_a_longer_training_begins_as_a_shorter_one():
    setup = lab.Setup("rotary", 1, 0.003, 5)
    short = [reader.head.bias.clone() for reader in lab.train_reader(setup, (2,))]
    both = [reader.head.bias.clone() for reader in lab.train_reader(setup, (2, 5))]
    assert torch.equal(short[0], both[0]) and not torch.equal(both[0], both[1])


def test_a_head_told_where_to_look_is_always_right():
    """The measure finds 1 for a reader that answers right, and guessing for one that does not."""

    class Told(torch.nn.Module):
        def forward(self, ids):
            back = ids % lab.FARTHEST + 1
            at = (torch.arange(ids.shape[1]) - back).clamp(min=0)
            return torch.nn.functional.one_hot((ids // lab.FARTHEST).gather(1, at), lab.LETTERS).double()

    assert study.measure(Told(), 7) == (1.0, 1.0)
    torch.manual_seed(0)
    inside, beyond = study.measure(lab.Reader("learned", 1), 60)
    assert inside == pytest.approx(1 / lab.LETTERS, abs=0.05) and beyond == pytest.approx(1 / lab.LETTERS, abs=0.05)


def test_a_short_run_finds_what_is_stored():
    """One rotary run of 500 steps, at the rate with which it takes seconds to be right."""
    (reader,) = lab.train_reader(lab.Setup("rotary", 1, 0.003, 2), (500,))
    inside, beyond = study.measure(reader)
    stored = [lab.shares(where, "rotary", 1, 500) for where in ("inside", "beyond")]
    runs = lab.load_results()["runs"]
    (at,) = [n for n, run in enumerate(r for r in runs if (r["scheme"], r["heads"]) == ("rotary", 1))
             if (run["rate"], run["seed"]) == (0.003, 2)]  # fmt: skip
    assert (inside, beyond) == pytest.approx((stored[0][at], stored[1][at]), abs=0.03)


def test_what_is_stored_is_read_by_place_and_budget():
    assert len(lab.shares("inside", "relative", 4, 2500)) == 3 * len(lab.RATES)
    for wrong in (("outside", "rotary", 1, 500), ("inside", "rotary", 3, 500), ("inside", "rotary", 1, 7)):
        with pytest.raises(ValueError, match="nothing is stored for"):
            lab.shares(*wrong)
