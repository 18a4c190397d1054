"""A stored result can be measured once more from a notebook."""

from __future__ import annotations

import ast
import importlib
import json
import re

import pytest

from studies.engine import Step
from transformer_lib.course.lab.stored import again
from transformer_lib.course.notebooks import NOTEBOOKS, file_of


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


def asked_for() -> list[tuple[str, str]]:
    """(notebook, call) of every line that measures a stored result again, without the # in front."""
    lines = []
    for entry in NOTEBOOKS:
        for cell in json.loads(file_of(entry).read_text(encoding="utf-8"))["cells"]:
            found = re.findall(r"^(?:# )?tl\.course\.(again\(.*?\))(?:  #.*)?$", "".join(cell["source"]), re.MULTILINE)
            lines += [(entry.id, call) for call in found if cell["cell_type"] == "code"]
    return lines


@pytest.mark.parametrize(("notebook", "call"), asked_for())
def test_what_a_notebook_measures_again_is_stored(notebook, call, monkeypatch, capsys):
    monkeypatch.setattr(Step, "run", lambda step: None)
    told = ast.parse(call, mode="eval").body
    study, *words = map(ast.literal_eval, told.args)
    seeds = [ast.literal_eval(one.value) for one in told.keywords if one.arg == "seeds"]
    found = importlib.import_module(f"studies.{study}").STUDY
    assert found.measure_again(words, *seeds)
