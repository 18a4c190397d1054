"""A stored result can be measured once more from a notebook."""

from __future__ import annotations

import pytest

from transformer_lib.course.lab.stored import again


def test_the_new_result_is_printed_beside_the_stored_one(capsys):
    again("hops", "parameters", "one layer", seeds=(0,))
    place, now, stored = capsys.readouterr().out.splitlines()
    assert place == "parameters 'one layer'"
    assert now.partition(": ")[2].split() == stored.partition(": ")[2].split() != []


@pytest.mark.parametrize(
    "study, words, said",
    [
        ("hopps", (), "No module named studies.hopps"),
        ("hops", ("four layers",), "hops.json has no result with the words four layers"),
    ],
)
def test_what_is_not_stored(study, words, said):
    with pytest.raises(ValueError, match=f"study and words must name stored results: .*{said}"):
        again(study, *words)
