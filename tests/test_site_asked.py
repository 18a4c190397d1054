"""What a page of the site knows of its questions: as much as it takes to answer as JupyterLab does."""

from __future__ import annotations

import html
import json
import re

import pytest
import site_asked
import site_pages

import transformer_lib as tl
from transformer_lib.course import predictions
from transformer_lib.course.cells import source_of, text_of
from transformer_lib.course.notebooks import NOTEBOOKS, file_of
from transformer_lib.course.predictions.bank import PREDICTIONS
from transformer_lib.course.quiz.bank import QUESTIONS
from transformer_lib.course.teaching import notebook_files


def known(page: str) -> list[tuple[str, dict]]:
    found = re.findall(r'data-asked="(\w+)" data-known="([^"]*)"', page)
    return [(kind, json.loads(html.unescape(data))) for kind, data in found]


def test_every_question_and_prediction_is_asked_and_every_outcome_is_compared():
    asked: dict[str, set[str]] = {"quiz": set(), "predict": set(), "outcome": set()}
    for entry in NOTEBOOKS:
        for cell in notebook_files.read(file_of(entry))["cells"]:
            for output in cell.get("outputs", []):
                page = text_of(output.get("data", {}).get("text/html", ""))
                for kind, data in known(site_asked.live(page, source_of(cell))) if page else ():
                    asked[kind].add(data["id"])
    assert asked["quiz"] == {entry.id for entry in QUESTIONS}
    assert asked["predict"] == asked["outcome"] == {entry.id for entry in PREDICTIONS}


@pytest.mark.parametrize("entry", NOTEBOOKS, ids=lambda entry: entry.id)
def test_what_came_out_of_a_prediction_opens_with_a_click(entry):
    shown = site_pages.page_of(notebook_files.read(file_of(entry)), entry)["cells"]
    compared = [cell for cell in shown if "outcome(" in source_of(cell) and cell.get("outputs")]
    assert compared or entry.id in {"A"} or not any(found.id.startswith(entry.id) for found in PREDICTIONS)
    assert all("hide-output" in cell["metadata"]["tags"] for cell in compared)


@pytest.mark.parametrize("entry", QUESTIONS, ids=lambda entry: entry.id)
def test_a_question_knows_every_reply(entry):
    ((kind, data),) = known(site_asked.live("<div></div>", f'quiz("{entry.id}")'))
    assert kind == "quiz"
    if "options" in data:
        replies = [(option["right"], option["why"]) for option in data["options"]]
        assert replies == [(reply.right, reply.why) for reply in map(entry.reply, entry.letters)]
        return
    for reply in data["replies"]:
        expected = entry.reply(reply["value"])
        assert (reply["right"], reply["why"]) == (expected.right, expected.why)
    assert (data["tolerance"], data["otherwise"]) == (entry.tolerance, entry.otherwise)


def test_an_outcome_is_what_came_out():
    shown = predictions.view.compared("It is 252.", None)
    ((_, data),) = known(site_asked.live(shown, 'outcome("04.p1", mean)'))
    assert (data["came"], data["close"], data["decimals"], data["shown"]) == (252.0, 13, 0, "It is 252.")
    assert site_asked.live("<p>another output of the cell</p>", 'outcome("04.p1", mean)') == (
        "<p>another output of the cell</p>"
    )


def test_what_a_page_gives_is_taken_along(tmp_path, capsys, own_progress):
    tl.progress.mark("quiz", "04.q1")
    passed = {"quiz": {"04.q1": "2001-02-03", "04.q2": "2026-11-28", "99.q1": "2026-11-28"}}
    passed["prediction"] = {"04.p1": "2026-11-28 surprise 64", "04.p2": "nonsense"}
    file = tmp_path / "progress.json"
    file.write_text(json.dumps({"version": 1, "passed": passed, "last": "04"}), "utf-8")
    tl.progress.take(file)
    now = tl.progress.state()
    assert now["quiz"].keys() == {"04.q1", "04.q2"} and now["quiz"]["04.q1"] != "2001-02-03"
    assert now["prediction"] == {"04.p1": "2026-11-28 surprise 64"}
    assert "2 added to what you had." in capsys.readouterr().out
    file.write_text("{}", "utf-8")
    with pytest.raises(ValueError, match="file must be a progress file"):
        tl.progress.take(file)
