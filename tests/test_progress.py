"""Progress is remembered on this machine, survives two kernels at once, and stays out of stored outputs."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from transformer_lib.course import notebooks, progress
from transformer_lib.course.progress import live, places, store, view

pytestmark = pytest.mark.fast


@pytest.fixture
def file(own_progress):
    return own_progress


def ids(kind="exercise"):
    return sorted(progress.state()[kind])


# The file -----------------------------------------------------------------------------------------------


def test_what_is_marked_is_remembered(file):
    kinds = ("exercise", "quiz", "case", "widget", "notebook", "route", "prediction")
    assert progress.state() == {kind: {} for kind in kinds}
    assert progress.mark("exercise", "04.1")
    assert progress.mark("quiz", "04.q1")
    assert progress.mark("exercise", "04.1")
    assert (ids(), ids("quiz")) == (["04.1"], ["04.q1"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", progress.state()["exercise"]["04.1"])
    assert file.is_file()


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="kind must be one of exercise, quiz, case, widget, notebook, got 'exam'"):
        progress.mark("exam", "04.1")


def test_reset_is_one_call():
    progress.mark("exercise", "04.1")
    assert progress.reset()
    assert ids() == []


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", '{"passed": 3}', '{"passed": {"exercise": [1]}}', '{"version": 1}', "\x00\xff"]
)
def test_a_damaged_file_counts_as_empty_and_is_kept_aside(file, content):
    file.parent.mkdir()
    file.write_text(content, encoding="latin-1")
    assert ids() == []
    assert progress.mark("exercise", "04.2")
    assert ids() == ["04.2"]
    assert file.with_name("progress.json.corrupt").read_text(encoding="latin-1") == content


def test_unknown_entries_of_a_later_version_do_no_harm(file):
    file.parent.mkdir()
    file.write_text(json.dumps({"version": 2, "passed": {"exercise": {"04.1": "2026-01-02"}, "exam": {}}}))
    assert ids() == ["04.1"]


def test_a_place_that_cannot_be_written_does_not_stop_anybody(tmp_path, monkeypatch):
    blocked = tmp_path / "a_file"
    blocked.write_text("")
    monkeypatch.setenv("TRANSFORMER_COURSE_PROGRESS", str(blocked / "progress.json"))
    assert not progress.mark("exercise", "04.1")
    assert not progress.reset()
    assert ids() == []


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs permissions, which nobody refuses to root")
def test_a_folder_that_may_only_be_read_does_not_either(file):
    file.parent.mkdir(mode=0o555)
    assert not progress.mark("exercise", "04.1")
    assert ids() == []


def _mark_many(numbers):
    for number in numbers:
        assert progress.mark("exercise", f"x{number}")


@pytest.mark.slow
def test_two_kernels_at_once_lose_nothing():
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_mark_many, args=(range(start, 60, 2),)) for start in (0, 1)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert ids() == sorted(f"x{number}" for number in range(60))


@pytest.mark.parametrize("age", [0, 60])
def test_a_kernel_that_crashed_while_writing_does_not_stop_the_next(file, age):
    file.parent.mkdir()
    for left in ("progress.json.lock", f"progress.json.{os.getpid()}.part"):
        file.with_name(left).write_text("half")
        os.utime(file.with_name(left), (time.time() - age,) * 2)
    assert progress.mark("exercise", "04.1")
    assert ids() == ["04.1"]


def test_another_kernel_is_waited_for_and_then_given_up(file, monkeypatch):
    monkeypatch.setattr(store, "LOCK_PATIENCE", 0.05)
    held = []
    assert store.update(file, lambda current: held.append(progress.mark("exercise", "04.1")) or current)
    assert held == [False]
    assert progress.mark("exercise", "04.1")


def test_the_users_data_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("TRANSFORMER_COURSE_PROGRESS")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    if sys.platform == "win32":
        folder = Path(os.environ["APPDATA"])
    else:
        monkeypatch.setenv("HOME", str(tmp_path))
        folder = tmp_path / "xdg"
    assert progress.path() == folder / "transformer-course" / "progress.json"
    if sys.platform == "linux":
        monkeypatch.delenv("XDG_DATA_HOME")
        assert progress.path() == tmp_path / ".local" / "share" / "transformer-course" / "progress.json"


def test_on_a_mac_a_file_from_before_stays_in_use(monkeypatch, tmp_path):
    monkeypatch.delenv("TRANSFORMER_COURSE_PROGRESS")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    monkeypatch.setattr(store.Path, "home", lambda: tmp_path)
    monkeypatch.setattr(store.sys, "platform", "darwin")
    earlier = tmp_path / "Library" / "Application Support" / "transformer-course" / "progress.json"
    assert progress.path() != earlier
    earlier.parent.mkdir(parents=True)
    earlier.touch()
    assert progress.path() == earlier


# What is shown ------------------------------------------------------------------------------------------


def pass_all(notebook_id):
    for kind, name in notebooks.notebook(notebook_id).parts:
        progress.mark(kind, name)


def without_tasks(notebook_id):
    return replace(notebooks.notebook(notebook_id), exercises=0, quizzes=0, widgets=())


def test_standing_goes_from_not_yet_over_started_to_done():
    entry = notebooks.notebook("04")
    assert view.standing(entry, progress.state()) == "not yet"
    progress.banner("04")
    assert view.standing(entry, progress.state()) == "started"
    pass_all("04")
    assert view.standing(entry, progress.state()) == "done"
    start = without_tasks("00")
    assert view.standing(start, progress.state()) == "not yet"
    progress.banner("00")
    assert view.standing(start, progress.state()) == "done"


def test_the_banner_says_where_one_is():
    progress.mark("exercise", "04.1")
    lines = repr(progress.banner("04")).splitlines()
    assert lines == [
        "Notebook 04: Scaled dot-product attention",
        f"◐ started · {notebooks.notebook('04').minutes} minutes · you will build {notebooks.notebook('04').builds}",
        "1 of 10 done: ✓ 04.1 ○ 04.2 ○ 04.3 ○ 04.4 ○ 04.5 ○ 04.6 ○ 04.q1 ○ 04.q2 ○ 04.q3 ○ panel",
        " ".join(f"[◐{n.id}]" if n.id == "04" else f"○{n.id}" for n in notebooks.NOTEBOOKS),
        "▶ continue at 04.3",
    ]
    html = progress.banner("04")._repr_mimebundle_()["text/html"]
    assert '<b aria-current="page">[◐&nbsp;04]</b>' in html
    assert 'title="05 Tokens and embeddings: not yet"' in html
    assert len(view.strip_view(without_tasks("00"), progress.state(), notebooks.NOTEBOOKS)[1].splitlines()) == 3


def test_a_banner_shown_again_is_up_to_date():
    banner = progress.banner("04")
    progress.mark("quiz", "04.q3")
    assert "✓ 04.q3" in repr(banner)


def test_a_panel_that_two_notebooks_show_starts_neither():
    progress.mark("widget", "W15")
    assert [view.standing(notebooks.notebook(name), progress.state()) for name in ("00", "12")] == ["not yet"] * 2


def test_the_banner_links_the_others_and_says_where_to_continue():
    assert "continue" not in repr(progress.banner("01"))
    progress.mark("exercise", "01.1")
    progress.mark("exercise", "01.3")
    html = progress.banner("01")._repr_mimebundle_()["text/html"]
    following = places.place_to_continue(notebooks.notebook("01"), progress.state())
    assert f'<a href="{following.link}">▶ continue at {following.name}</a>' in html
    assert '<a href="02_similarity_without_weights.ipynb" title="02' in html
    # Another notebook, opened next, leads back; and then on in itself, once something is passed in it.
    assert f"▶ continue at {following.name}" in repr(progress.banner("02"))
    progress.mark("quiz", "02.q1")
    assert "▶ continue at 02." in repr(progress.banner("02"))


def test_one_continues_after_the_last_thing_passed_and_then_with_what_was_left_out(monkeypatch):
    tasks = [("exercise", "01.1"), ("quiz", "01.q1"), ("exercise", "01.2")]
    course = tuple(places.Place(kind, name, name) for kind, name in tasks)
    monkeypatch.setattr(places, "places_in", lambda entry: course)

    def onward(*passed):
        state = store.empty()
        for kind, name in tasks:
            state[kind] |= {name: "2026-01-02"} if name in passed else {}
        place = places.place_to_continue(notebooks.notebook("01"), state)
        return place and place.name

    assert onward() is None
    assert onward("01.1") == "01.q1"
    assert onward("01.q1") == "01.2"
    assert onward("01.1", "01.2") == "01.q1"
    assert onward("01.1", "01.2", "01.q1") is None


@pytest.mark.parametrize("entry", notebooks.NOTEBOOKS, ids=lambda entry: entry.id)
def test_every_task_has_its_place_and_exercises_begin_at_their_stub(entry):
    found = places.places_in(entry)
    assert {(place.kind, place.name) for place in found} == {part for part in entry.parts if part[0] != "widget"}
    cells = json.loads(notebooks.file_of(entry).read_text(encoding="utf-8"))["cells"]
    tags = {cell["id"]: cell["metadata"].get("tags", []) for cell in cells}
    for place in found:
        file, cell = place.link.split("#cell-id=")
        assert file == entry.filename
        assert place.kind != "exercise" or "exercise" in tags[cell]


@pytest.mark.parametrize("entry", notebooks.NOTEBOOKS, ids=lambda entry: entry.id)
def test_every_notebook_leads_on_in_itself_and_then_to_the_next(entry):
    *tasks, end = [(place.kind, place.name) for place in places.places_in(entry)]
    following = notebooks.following(entry)
    for task, after in zip(tasks, [*tasks[1:], end], strict=True):
        assert progress.passed(*task) is None
        assert places.place_to_continue(entry, progress.state()).name == after[1]
    for shown in (entry, following or entry):  # the one opened next leads back
        assert repr(progress.banner(shown.id)).endswith(f"▶ continue at {end[1]}")
    said = repr(progress.passed(*end))
    assert "Next: " not in said if following is None else f"Next: {following.id} · {following.title}" in said
    assert all("continue at" not in repr(progress.banner(shown.id)) for shown in (entry, following or entry))


def test_a_file_of_an_earlier_version_is_read_and_loses_nothing(file):
    """It knew no chosen route, and not where one had worked last."""
    file.parent.mkdir(parents=True)
    kinds = {"case": {}, "exercise": {"04.1": "2025-03-01"}, "notebook": {"04": "2025-03-01"}, "quiz": {}, "widget": {}}
    file.write_text(json.dumps({"version": 1, "passed": kinds}))
    assert progress.last() == ()
    assert "✓ 04.1" in repr(progress.banner("04")) and "▶ continue at 04." in repr(progress.banner("04"))
    assert progress.last() == ("04",)
    assert progress.state() == {**kinds, "route": {}, "prediction": {}}
    assert not list(file.parent.glob("*.corrupt"))


def test_the_last_task_of_a_notebook_closes_it_once():
    entry = notebooks.notebook("04")
    tasks = [part for part in entry.parts if part[0] != "widget"]
    assert [progress.passed(*task) for task in tasks[:-1]] == [None] * (len(tasks) - 1)
    closing = progress.passed(*tasks[-1])
    assert repr(closing).startswith("✓ Notebook 04: every exercise passed, every question answered.")
    html = closing._repr_mimebundle_()["text/html"]
    assert '<a href="05_tokens_and_embeddings.ipynb">Next: 05 · Tokens and embeddings →</a>' in html
    assert progress.passed(*tasks[-1]) is None
    assert view.closing_view(notebooks.NOTEBOOKS[-1], None)[1].endswith("That was the last one.")


def test_the_notebook_last_worked_in_is_remembered(file):
    assert progress.last() == ()
    progress.mark("exercise", "04.1")
    progress.mark("widget", "W1")
    assert progress.last() == ("04",)
    progress.banner("05")
    assert progress.last() == ("05",)
    file.write_text(file.read_text().replace('"last": "05"', '"last": "99"'))
    assert progress.last() == ()


class Page:
    """What a kernel's page would show: each display under its id."""

    def __init__(self, monkeypatch):
        self.shown = {}
        monkeypatch.setattr(live, "in_kernel", lambda: True)
        monkeypatch.setattr("IPython.display.display", self.display)
        monkeypatch.setattr("IPython.display.update_display", self.display)

    def display(self, data, *, raw, display_id):
        self.shown[display_id] = data["text/plain"]


def test_in_a_kernel_the_strip_follows_what_is_passed(monkeypatch):
    page = Page(monkeypatch)
    progress.banner("04")._ipython_display_()
    [before] = page.shown.values()
    assert "○ 04.2" in before
    progress.mark("exercise", "04.2")
    [after] = page.shown.values()
    assert "✓ 04.2" in after and "continue at" in after


def test_a_strip_to_be_stored_is_an_ordinary_result(monkeypatch):
    page = Page(monkeypatch)
    monkeypatch.setenv("TRANSFORMER_COURSE_STATIC", "1")
    with pytest.raises(NotImplementedError):
        progress.banner("04")._ipython_display_()
    assert page.shown == {}


def test_an_unknown_notebook_is_refused():
    with pytest.raises(ValueError, match="notebook_id must be one of 00 to 25 or A, got '4'"):
        progress.banner("4")


def test_the_map_links_what_is_written_and_calls_the_rest_planned(tmp_path, monkeypatch):
    monkeypatch.setattr(notebooks, "written", lambda entry: entry.id in ("01", "04"))
    pass_all("01")
    bundle = progress.course_map()._repr_mimebundle_()
    assert '<a href="01_attention_is_a_lookup.ipynb">01 · Attention is a lookup</a>' in bundle["text/html"]
    lines = bundle["text/plain"].splitlines()
    assert len(lines) == len(notebooks.NOTEBOOKS)
    assert lines[0].split()[:2] == ["·", "planned"]
    assert lines[1].split()[:2] == ["✓", "done"]
    assert lines[4].split()[:3] == ["○", "not", "yet"]
    assert bundle["text/html"].count("<tr>") == len(notebooks.NOTEBOOKS) + 1


def test_static_outputs_hide_and_keep_out_what_was_passed(file, monkeypatch):
    neutral = repr(progress.course_map())
    progress.mark("exercise", "04.1")
    before = file.read_bytes()
    monkeypatch.setenv("TRANSFORMER_COURSE_STATIC", "1")
    assert repr(progress.course_map()) == neutral
    assert f"○ not yet · {notebooks.notebook('04').minutes} minutes" in repr(progress.banner("04"))
    assert progress.banner("04")._repr_mimebundle_() == progress.banner("04")._repr_mimebundle_()
    assert not progress.mark("exercise", "04.2")
    assert not progress.reset()
    assert file.read_bytes() == before
    monkeypatch.setenv("TRANSFORMER_COURSE_STATIC", "0")
    assert ids() == ["04.1"]


def test_grading_records_nothing(monkeypatch, file):
    monkeypatch.setenv("NBGRADER_EXECUTION", "validate")
    assert not progress.mark("exercise", "04.1")
    assert not file.exists()


# The course list ----------------------------------------------------------------------------------------


def test_the_course_list_is_in_order_and_file_names_are_plain():
    assert [entry.id for entry in notebooks.NOTEBOOKS] == [*(f"{number:02d}" for number in range(26)), "A"]
    for entry in notebooks.NOTEBOOKS:
        assert re.fullmatch(r"(\d\d|A)_[a-z0-9_]+\.ipynb", entry.filename)
        assert entry.minutes > 0


def test_widgets_count_as_parts():
    entry = notebooks.Notebook("99", "x", "X", 1, "x", exercises=1, quizzes=1, widgets=("W1",))
    assert entry.parts == (("exercise", "99.1"), ("quiz", "99.q1"), ("widget", "W1"))


def test_written_looks_beside_the_package_and_in_the_working_directory(tmp_path, monkeypatch):
    entry = notebooks.Notebook("99", "nowhere", "Nowhere", 1, "nothing")
    monkeypatch.chdir(tmp_path)
    assert not notebooks.written(entry)
    (tmp_path / "99_nowhere.ipynb").write_text("{}")
    assert notebooks.written(entry)
