"""The ladder as notebooks show it: the rung beside the one before, what happened, the picture and its description."""

from __future__ import annotations

import contextlib
import copy
import doctest
import functools
import io
import re

import matplotlib.pyplot as plt
import pytest

import transformer_lib as tl
from transformer_lib.course import rungs
from transformer_lib.course.lab import ladder as study

pytestmark = pytest.mark.fast

NOTEBOOKS = [rung.id for rung in study.RUNGS]


@functools.cache
def ladder(notebook: str) -> tuple[tl.plotting.Shown, str]:
    """What a notebook shows, and what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        shown = tl.course.ladder(notebook)
    return shown, printed.getvalue()


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


def changed(**measures: tuple[tuple[float, ...], tuple[float, ...]]) -> dict:
    """CONTENT, with these measures after the smaller budget."""
    content = copy.deepcopy(CONTENT)
    for name, both in measures.items():
        for rung, found in zip(("03", "04"), both, strict=True):
            for run, number in zip(content["runs"][rung], found, strict=True):
                run["scores"]["2"][name] = number
    return content


def test_what_happened_is_where_the_seeds_are_apart():
    assert rungs.story(CONTENT, "04") == [
        "What happened: the loss fell from 2.50 to 1.00, and the exactly right sentences fell from .550 to .150. "
        "The ranges of the seeds are apart, after 2 passes as well as after 4. "
        'In the nouns and "it" they overlap, so a difference in the table may be chance.'
    ]


def test_what_a_single_budget_shows_is_said_to():
    (said,) = rungs.story(changed(loss=((2, 3), (2.5, 1))), "04")
    assert "apart, but after 2 they were only in the exactly right sentences." in said
    assert said.startswith("What happened: the exactly right sentences fell")  # what both show is told first
    (said,) = rungs.story(changed(**{"loss": ((2, 3), (2.5, 1)), "exact match": ((0.1, 0.2), (0.15, 0.3))}), "04")
    assert "After 4 passes the ranges of the seeds are apart, but after 2 they were not yet." in said
    (said,) = rungs.story(changed(nouns=((0.1, 0.3), (0.4, 0.6))), "04")
    assert said.endswith("may be chance. After 2 passes they were apart in the nouns (.200 to .500).")


def test_two_changes_are_told_with_numbers_and_the_others_by_name():
    apart = ((0.1, 0.2), (0.3, 0.4))
    content = results(loss=((2, 3), (0.5, 1.5)), exact=apart, nouns=((0, 0), (1, 1)), it=apart)
    (said,) = rungs.story(content, "04")
    assert said == (
        "What happened: the loss fell from 2.50 to 1.00, and the nouns rose from .000 to 1.00. The ranges of the seeds "
        "are apart, after 2 passes as well as after 4. "
        'They are apart in the exactly right sentences and "it", too.'
    )


def test_a_rung_without_a_sure_change_is_said_to_have_none():
    near = ((0.1, 0.2), (0.2, 0.4))  # they touch
    (said,) = rungs.story(results(loss=near, exact=near, nouns=near, it=near), "04")
    assert said == (
        "What happened: nothing that we can be sure of. After 4 passes the ranges of the seeds overlap in every "
        "measure, so the differences may be chance."
    )
    content = copy.deepcopy(CONTENT)
    content["runs"]["04"] = content["runs"]["03"]
    assert rungs.story(content, "04") == ["What happened: nothing. Every mean is as it was."]


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_what_is_told_agrees_with_the_table(notebook):
    _, printed = ladder(notebook)
    before, now = (re.findall(r"(?<= )(?:—|\d*\.\d+)", row) for row in re.findall(r"^(?:▶|  \d\d).*$", printed, re.M))
    told = re.search(r"What happened: (.*?)\. ", " ".join(printed.split()) + " ")[1]
    steps = re.findall(r"(rose|fell) from (\d*\.\d+) to (\d*\.\d+)", told)
    assert all((old, new) in set(zip(before, now, strict=True)) for _, old, new in steps)
    assert all((float(new) > float(old)) == (verb == "rose") for verb, old, new in steps)
    assert len(steps) <= 2 and bool(steps) != told.startswith("nothing")
    assert told != "nothing" or before == now


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_the_table_has_two_rungs_the_picture_all_so_far_and_none_has_a_later_one(notebook):
    shown, printed = ladder(notebook)
    rows = re.findall(r"^(▶|\s) (\d\d) ", printed, re.MULTILINE)
    assert rows == [(" ", f"{int(notebook) - 1:02}"), ("▶", notebook)]
    assert [f"<td>{rung.id} {rung.part}</td>" in shown.html for rung in rungs.ALL] == [
        rung.id <= notebook for rung in rungs.ALL
    ]
    later = [rung.part for rung in study.RUNGS if rung.id > notebook]
    assert [part for part in later if part in printed + shown.html] == []
    assert all(len(line) <= 95 for line in printed.splitlines())


@pytest.mark.parametrize("notebook", ["02", "08", "14"])
def test_the_numbers_shown_are_the_stored_ones(notebook):
    (shown, printed), content = ladder(notebook), study.load_results()
    runs = [run["scores"][str(study.PASSES[-1])] for run in content["runs"][notebook]]
    row = next(line for line in printed.splitlines() if line.startswith("▶"))
    numbers = [float(number) for number in re.findall(r"\d*\.\d+", row)]
    assert numbers == pytest.approx([sum(run[name] for run in runs) / 3 for name in study.MEASURES], abs=6e-3)
    assert re.findall(r"\S+", printed[printed.index("guessing") :])[1:5] == ["—", "—", ".478", ".500"]
    low, high = (rungs._short(pick(run["loss"] for run in runs)) for pick in (min, max))
    assert low == high or f"({low}–{high})" in shown.html
    assert f"{notebook} ({study.find(notebook).part}): loss" in shown.alt or f"to {notebook} (" in shown.alt
    assert shown.html.count("<tr>") == int(notebook) + 1


def test_a_dot_is_a_seed_after_either_budget(monkeypatch):
    drawn = []
    monkeypatch.setattr(rungs.plotting, "figure", lambda axes, *_, **__: drawn.extend(axes))
    rungs.picture(study.load_results(), rungs.up_to("03"))
    assert [ax.get_title(loc="left") for ax in drawn] == ["loss", "exactly right", "nouns right", '"it" right']
    for ax, measure in zip(drawn, study.MEASURES, strict=True):
        sets = [list(line.get_xdata()) for line in ax.lines if line.get_marker() != "None"]
        runs = study.load_results()["runs"]["03"]
        assert sets[-2:] == [[run["scores"][passes][measure] for run in runs] for passes in ("4", "8")]
    plt.close("all")


@pytest.mark.parametrize("notebook", ["02", "11"])
def test_the_model_is_drawn_up_to_a_rung(notebook):
    shown = tl.course.ladder_model(notebook)
    assert shown.alt.endswith(f"In colour up to {notebook}, the rest dashed.")
    assert all(f"{rung.id} {rung.part}" in shown.alt for rung in study.RUNGS)
    assert tl.course.ladder_model().alt == tl.course.ladder_model("02").alt


@pytest.mark.parametrize(("notebook", "count"), [("02", 1), ("04", 3), ("05", 0), ("08", 1), ("12", 0)])
def test_controls_stand_beside_the_rung_that_they_explain(notebook, count):
    assert len(re.findall(r"^   · ", ladder(notebook)[1], re.MULTILINE)) == count


@pytest.mark.parametrize("notebook", ["01", "15", 4])
def test_other_notebooks_have_no_rung(notebook):
    for shown in (tl.course.ladder, tl.course.ladder_model):
        with pytest.raises(ValueError, match=f'notebook must be one of "02" to "14", got {notebook!r}'):
            shown(notebook)


def test_the_order_of_depth_and_residuals_is_told_with_its_numbers():
    said = rungs.story(study.load_results(), "12")[-1]
    one, two = (list(study.load_results()["order"][rung.id].values()) for rung in study.ORDER)
    assert max(one) < min(two) - 1 and said.startswith("Without the residual connections and norms of rung 09")
    assert f"{sum(two) / 3:.2f} ({min(two):.2f}–{max(two):.2f})" in said


def test_the_example_of_the_module_holds():
    assert doctest.testmod(rungs) == (0, 2)
