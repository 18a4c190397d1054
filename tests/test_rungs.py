"""The ladder as notebooks show it: the rungs so far, the marked one, what it bought, and the picture's description."""

from __future__ import annotations

import copy
import doctest
import re

import pytest

import transformer_lib as tl
from transformer_lib.course import rungs
from transformer_lib.course.lab import ladder as study

pytestmark = pytest.mark.fast

NOTEBOOKS = [rung.id for rung in study.RUNGS]


def results(**measures: tuple[tuple[float, ...], tuple[float, ...]]) -> dict:
    """Results in which rung 04 differs from 03 in these measures: the seeds of 03, those of 04, after any budget."""

    def runs(which: int) -> list[dict]:
        by_seed = zip(*(measures[name.split()[0]][which] for name in study.MEASURES), strict=True)
        scores = [dict(zip(study.MEASURES, found, strict=True)) for found in by_seed]
        return [{"seed": seed, "scores": {"2": dict(found), "4": found}} for seed, found in enumerate(scores)]

    dictionary = dict.fromkeys(study.MEASURES[1:], 0.5)
    return {"seeds": [0, 1], "passes": [2, 4], "dictionary": dictionary, "runs": {"03": runs(0), "04": runs(1)}}


CONTENT = results(
    loss=((2.0, 3.0), (0.5, 1.5)), exact=((0.5, 0.6), (0.1, 0.2)), nouns=((0.1, 0.3), (0.2, 0.4)), it=((0, 0), (0, 0))
)


def test_what_a_rung_bought_is_where_every_seed_got_better():
    said = rungs.sentence(CONTENT, "04")
    assert said == (
        "04, division by √d_k: bought loss 2.50 → 1.00; cost exact match .550 → .150; "
        'no clear difference in nouns, "it".'
    )


def test_what_one_budget_alone_says_is_told_apart():
    content = copy.deepcopy(CONTENT)
    content["runs"]["04"][0]["scores"]["2"]["loss"] = 2.5  # no longer below every seed of 03
    said = rungs.sentence(content, "04").splitlines()
    assert said[0] == (
        '04, division by √d_k: bought nothing; cost exact match .550 → .150; no clear difference in loss, nouns, "it".'
    )
    assert said[1:] == ["After 4 passes alone, the seeds also agree on loss 2.50 → 1.00."]


def test_a_rung_that_buys_nothing_is_said_to():
    content = copy.deepcopy(CONTENT)
    content["runs"]["04"] = content["runs"]["03"]
    assert "bought nothing; no clear difference in loss, exact match" in rungs.sentence(content, "04")


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_the_rungs_so_far_and_no_later_one_are_shown(notebook, capsys):
    shown = tl.course.ladder(notebook)
    printed = capsys.readouterr().out
    rows = re.findall(r"^(▶|\s) (\d\d) ", printed, re.MULTILINE)
    assert rows == [(" ", f"{number:02}") for number in range(1, int(notebook))] + [("▶", notebook)]
    later = [rung.part for rung in study.RUNGS if rung.id > notebook]
    assert [part for part in later if part in printed + shown.html] == []
    assert all(len(line) <= 95 for line in printed.splitlines() if re.search(r"\d\d\d  ", line))


@pytest.mark.parametrize("notebook", ["02", "08", "14"])
def test_the_numbers_shown_are_the_stored_ones(notebook, capsys):
    shown, content = tl.course.ladder(notebook), study.load_results()
    printed = capsys.readouterr().out
    runs = [run["scores"][str(study.PASSES[-1])] for run in content["runs"][notebook]]
    row = next(line for line in printed.splitlines() if line.startswith("▶"))
    numbers = [float(number) for number in re.findall(r"\d*\.\d+", row)]
    assert numbers == pytest.approx([sum(run[name] for run in runs) / 3 for name in study.MEASURES], abs=6e-3)
    low, high = (rungs._short(pick(run["loss"] for run in runs)) for pick in (min, max))
    assert low == high or f"({low}–{high})" in shown.html
    assert f"{notebook} ({study.find(notebook).part}): loss" in shown.alt or f"to {notebook} (" in shown.alt
    assert shown.html.count("<tr>") == int(notebook) + 1


@pytest.mark.parametrize(("notebook", "count"), [("02", 1), ("04", 1), ("05", 0), ("08", 1), ("12", 0)])
def test_controls_stand_beside_the_rung_that_they_explain(notebook, count, capsys):
    tl.course.ladder(notebook)
    assert len(re.findall(r"^   · ", capsys.readouterr().out, re.MULTILINE)) == count


@pytest.mark.parametrize("notebook", ["01", "15", 4])
def test_other_notebooks_have_no_rung(notebook):
    with pytest.raises(ValueError, match=f'notebook must be one of "02" to "14", got {notebook!r}'):
        tl.course.ladder(notebook)


def test_the_order_of_depth_and_residuals_is_told_with_its_numbers(capsys):
    tl.course.ladder("12")
    said = capsys.readouterr().out.splitlines()[-2:]
    one, two = (list(study.load_results()["order"][rung.id].values()) for rung in study.ORDER)
    assert max(one) < min(two) - 1 and said[0].startswith("Without the residual connections and norms of rung 09")
    assert f"{sum(two) / 3:.2f} ({min(two):.2f}–{max(two):.2f})" in said[1]


def test_the_example_of_the_module_holds():
    assert doctest.testmod(rungs) == (0, 2)
