"""A certificate: what it states and proves, and that a forged or altered one is refused."""

from __future__ import annotations

import json
import re

import pytest

from transformer_lib.course import certificate, mine, notebooks, printing, progress
from transformer_lib.course.certificate import __main__ as command
from transformer_lib.course.certificate import statement as statements
from transformer_lib.course.exercises import get

pytestmark = pytest.mark.fast

PART = "causal_mask"


@pytest.fixture
def learner(tmp_path, monkeypatch):
    """A learner who has passed something, and predicted something; returns the folder of their own code."""
    monkeypatch.setenv("TRANSFORMER_COURSE_PROGRESS", str(tmp_path / "progress.json"))
    monkeypatch.setenv("TRANSFORMER_COURSE_MINE", str(tmp_path / "mine"))
    for name in ("TRANSFORMER_COURSE_STATIC", "NBGRADER_EXECUTION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(certificate, "chromium", lambda: None)
    for kind, name in (("exercise", "04.1"), ("exercise", "07.1"), ("quiz", "04.q1"), ("case", "17.A")):
        progress.mark(kind, name)
    progress.say("00.p1", "9", True)
    progress.say("00.p2", "A", False)
    progress.say("00.p3", "B")
    progress.mark("exercise", "99.1")  # which the course does not have
    return tmp_path / "mine"


def test_a_page_says_what_is_passed_and_what_that_proves(learner):
    [path] = certificate.write("  Ada   Lovelace ")
    assert path == learner / "certificate.html"
    text = path.read_text(encoding="utf-8")
    shown = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    total = sum(entry.exercises for entry in notebooks.NOTEBOOKS)
    assert f"has passed 2 of {total} exercises" in shown and "1 of 2 predictions came true" in shown
    assert "Ada Lovelace" in shown and "1 of 6 exercises, 1 of" in shown and "99.1" not in text
    assert "not signed" in shown and "anybody can write such a file" in shown.replace("\n", " ")
    assert "does not say who wrote it" in shown
    assert not re.search(r"<link|src=|url\(|https?:", shown) and shown.count("<script") == 0


def test_what_is_stated_comes_back_from_the_page(learner):
    [path] = certificate.write("</script><b>Ada</b>")
    read = certificate.read(path)
    assert read == certificate.stated("</script><b>Ada</b>")
    assert read["exercise"].keys() == {"04.1", "07.1"} and read["prediction"].keys() == {"00.p1", "00.p2"}
    assert "<b>Ada" not in path.read_text(encoding="utf-8")


def test_the_functions_of_the_learner_stand_on_the_page(learner):
    mine.keep(PART, get("07.1").reference)
    [path] = certificate.write("Ada")
    read = certificate.read(path)
    assert read["functions"] == [PART] and f"def {PART}(" in read["source"]
    assert "1 function can be computed again" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["", " ", "x" * 101, "a\x00b"])
def test_a_name_that_is_none_is_refused(learner, name):
    with pytest.raises(ValueError, match="name must be yours, in at most 100 characters"):
        certificate.write(name)


def test_nothing_passed_is_nothing_to_show(learner):
    progress.reset()
    with pytest.raises(ValueError, match="there must be something passed to show"):
        certificate.stated("Ada")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (" of 6 exercises", " of 5 exercises"),  # what one reads
        ('"04.1":', '"04.2":'),  # what is stated
        ("</body>", "<p>and more</p></body>"),
        ("not signed", "signed"),
    ],
)
def test_a_page_that_was_altered_is_refused(learner, old, new):
    [path] = certificate.write("Ada")
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ValueError, match="page must be as it was written, got one whose text was altered"):
        certificate.read(path)


@pytest.mark.parametrize("forged", [{"name": "Ada\x1b[2J"}, {"exercise": {"99.1": "2026-11-28"}}])
def test_a_page_with_what_the_course_does_not_write_is_refused(learner, forged):
    [path] = certificate.write("Ada")
    path.write_text(certificate.page({**certificate.stated("Ada"), **forged}), encoding="utf-8")
    with pytest.raises(ValueError, match="page must be as it was written"):
        certificate.read(path)


def test_what_is_no_certificate_and_one_of_another_version_are_named(learner, monkeypatch):
    [path] = certificate.write("Ada")
    monkeypatch.setattr(statements, "__version__", "7.0.0")
    with pytest.raises(ValueError, match=r"page must be of this version of the course, 7\.0\.0, got one of version"):
        certificate.read(path)
    for text in ("", "<html>", '<script type="application/json" id="statement">[1]</script>'):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match="page must be a certificate of the course"):
            certificate.read(path)


def test_the_code_is_a_fingerprint_of_what_is_stated(learner):
    stated = certificate.stated("Ada")
    code = certificate.code_of(stated)
    assert re.fullmatch(r"(?:[0-9A-F]{4}-){4}[0-9A-F]{4}", code)
    assert code in certificate.page(stated)
    assert code != certificate.code_of({**stated, "name": "Eve"})
    assert json.loads(certificate.canonical(stated)) == stated


def test_the_command_says_where_the_page_is_and_why_there_is_no_pdf(learner, tmp_path, capsys):
    command.main(["Ada", "--out", str(tmp_path / "out")])
    out = capsys.readouterr().out
    assert str(tmp_path / "out" / "certificate.html") in out and "No PDF, since no Chromium was found" in out
    with pytest.raises(SystemExit):
        command.main([" "])
    assert "name must be yours" in capsys.readouterr().err


def test_without_a_browser_nothing_is_printed(tmp_path, monkeypatch):
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert printing.chromium() is None
    (tmp_path / "a.html").write_text("", encoding="utf-8")
    with pytest.raises(RuntimeError, match="no Chromium was found"):
        printing.print_pdf(tmp_path / "a.html", tmp_path / "a.pdf")
