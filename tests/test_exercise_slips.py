"""Known mistakes as slips: what is replaced is there, once, and what it is replaced in is right."""

from __future__ import annotations

import pytest
import torch

from transformer_lib.course import exercises
from transformer_lib.course.exercises.slips import Slip, compiled, slips

SLIPS = [(e, m.function) for e in exercises.all_exercises() for m in e.mistakes if isinstance(m.function, Slip)]
ANSWERS = {(e.id, slip.arguments, slip.right): (e, slip) for e, slip in SLIPS}
LOST = [f"{e.id}: {s.right.count(s.old)} × {s.old!r}" for e, s in SLIPS if s.right.count(s.old) != 1 or s.old == s.new]
assert not LOST, LOST  # before any test runs: a right answer was changed, and a slip no longer finds its fragment


@pytest.mark.parametrize(("exercise", "slip"), ANSWERS.values(), ids=[key[0] for key in ANSWERS])
def test_what_the_slips_are_made_of_is_right(exercise, slip):
    answer = compiled(slip.arguments, slip.right, slip.names)
    assert exercises.examine(exercise, answer, time_limit=60.0).status == "passed"
    assert slip.arguments == ", ".join(exercise.arguments)


def test_a_slip_is_a_diff_of_the_right_answer():
    (mistake,) = slips(
        "x, axis",
        """
        shifted = x - x.max(axis, keepdim=True).values
        return helper(shifted, axis)
        """,
        ("no shift", "x - x.max(axis, keepdim=True).values", "x", "It overflows."),
        helper=lambda x, axis: x.softmax(axis),
    )
    assert (mistake.name, mistake.diagnosis) == ("no shift", "It overflows.")
    assert mistake.function.diff == "- shifted = x - x.max(axis, keepdim=True).values\n+ shifted = x"
    assert mistake.function(torch.zeros(2), 0).tolist() == [0.5, 0.5]


def test_a_fragment_must_be_there_once():
    for fragment, count in (("y", 0), ("x", 2)):
        (mistake,) = slips("x", "return x + x", ("lost", fragment, "z", "Never said."))
        with pytest.raises(ValueError, match=f"must have the fragment '{fragment}' once, got {count} times"):
            mistake.function(1)
