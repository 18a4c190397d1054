"""The pages of the project are true: what they show follows from `data/`, what they name is there."""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path

import pytest

import studies
from studies import multi30k, pages, precision, processes, speed
from transformer_lib import __version__
from transformer_lib.course.lab import stored

pytestmark = pytest.mark.fast

ROOT = Path(__file__).parents[1]
WRITTEN = ("README.md", "docs/speed.md", "docs/multi30k.md", "docs/scale.md")  # by studies, between marks
PAGES = [
    *(ROOT / name for name in ("README.md", "AGENTS.md", "CONTRIBUTING.md", "CHANGELOG.md", "data/README.md")),
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if "hub" not in path.parts),
]
NOW = [page for page in PAGES if page.name != "CHANGELOG.md"]  # it also names what was
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
FILE = re.compile(r"(?<![\w/.<-])(?:transformer_lib|tests|docs|data|notebooks)/[\w./-]*\w")
MODULE = re.compile(r"python -m (transformer_lib[\w.]*)")
ANY = re.compile(r"NN|\bNAME\b")  # stands for the number of any notebook, the name of any study
IN_A_WHEEL = {"transformer_lib/_data"}
DIRECTIVE = re.compile(r"^\.\. (currentmodule|auto\w+):: ([\w.]+)$", re.MULTILINE)


def of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


# What stands between marks ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "study", [speed, multi30k, precision, processes], ids=lambda study: study.__name__.rpartition(".")[2]
)
def test_the_pages_show_what_is_stored(study, tmp_path):
    (tmp_path / "docs").mkdir()
    for name in WRITTEN:
        shutil.copyfile(ROOT / name, tmp_path / name)
    study.write_pages(stored.read(study.RESULTS), tmp_path)
    again = "make bench BENCH=--tables and python -m studies.multi30k (processes --tables) do"
    assert [name for name in WRITTEN if text_of(tmp_path / name) != text_of(ROOT / name)] == [], again


def test_only_what_stands_between_the_marks_is_replaced():
    text = "before\n<!-- speed: begin -->\nold\n<!-- speed: end -->\nafter"
    assert pages.put_between(text, "speed", "new") == text.replace("old", "new")


@pytest.mark.parametrize("text", ["", "<!-- x: end --><!-- x: begin -->", "<!-- x: begin --><!-- x: end -->" * 2])
def test_a_page_without_its_marks_is_refused(text):
    with pytest.raises(ValueError, match="text must have the marks <!-- x: begin --> and <!-- x: end --> once"):
        pages.put_between(text, "x", "new")


# What pages name -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=of)
def test_links_lead_somewhere(page):
    targets = {target for target in LINK.findall(text_of(page)) if "://" not in target}
    base = {target: ROOT / target[1:] if target.startswith("/") else page.parent / target for target in targets}
    assert [target for target, path in base.items() if not path.exists()] == []


@pytest.mark.parametrize("page", NOW, ids=of)
def test_files_and_modules_are_there(page):
    text = text_of(page)
    files = {name for name in FILE.findall(text) if not ANY.search(name)}
    assert [name for name in files - IN_A_WHEEL if not (ROOT / name).exists()] == []
    modules = {name.rstrip(".") for name in MODULE.findall(text) if not ANY.search(name)}
    assert [name for name in modules if importlib.util.find_spec(name) is None] == []


def test_what_a_tutor_is_told_to_run_works_and_records_nothing(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("TRANSFORMER_COURSE_PROGRESS", str(tmp_path / "progress.json"))
    monkeypatch.setenv("TRANSFORMER_COURSE_MINE", str(tmp_path / "mine"))
    monkeypatch.delenv("TRANSFORMER_COURSE_STATIC", raising=False)
    [code] = re.findall(r"^```python\n(.*?)^```$", text_of(ROOT / "AGENTS.md"), re.MULTILINE | re.DOTALL)
    exec(compile(code, "AGENTS.md", "exec"), {})
    assert "✗ 01.2 The softmax" in capsys.readouterr().out  # summed over the wrong axis
    exec(compile(code.replace("sum(dim=0)", "sum(dim=-1, keepdim=True)"), "AGENTS.md", "exec"), {})
    assert "✓ 01.2" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_the_readme_leads_an_assistant_to_its_page():
    assert "](AGENTS.md)" in text_of(ROOT / "README.md")


def test_the_readme_draws_the_tree_as_it_is():
    tree = re.search(r"^notebooks/ .*?^tests/ ", text_of(ROOT / "README.md"), re.MULTILINE | re.DOTALL)[0]
    above: list[str] = []
    for line in tree.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        for name in re.split(r"  +", line.strip())[0].split():
            above = [*above[:depth], name]
            assert ROOT.joinpath(*above).exists(), "/".join(above)


def test_the_readme_says_where_each_study_writes():
    folder, readme = Path(studies.__file__).parent, text_of(ROOT / "README.md")
    exceptions = readme[readme.index("The exceptions:") :].partition("\n\n")[0]
    named = set(re.findall(r"`(\w+)`", exceptions))
    commands = {path.stem for path in folder.glob("*.py") if '__name__ == "__main__"' in text_of(path)} | {"speed"}
    by_its_name = {name for name in commands if (ROOT / "data" / f"{name}.json").is_file()}
    assert commands - by_its_name == named - {"multi30k"}  # that one does, but from runs of another command


def test_modules_that_moved_are_where_the_changelog_says():
    rows = re.findall(r"^\| `(transformer_lib\.[\w.]+)` \| (.+) \|$", text_of(ROOT / "CHANGELOG.md"), re.MULTILINE)
    assert len(rows) > 40
    new = [name for _, names in rows for name in re.findall(r"`((?:transformer_lib|studies)[\w.]*)`", names)]
    assert [name for name in new if importlib.util.find_spec(name) is None] == []


def test_each_promise_names_tests_that_are_there():
    text = text_of(ROOT / "docs" / "promises.md")
    named = re.findall(r"`(tests/\w+\.py)::(\w+)`", text)
    assert len(named) > 35
    assert [name for file, name in named if f"def {name}(" not in text_of(ROOT / file)] == []
    promises = re.split(r"\n(?=- \*\*)", text.partition("What is not promised")[0])[1:]
    assert [promise for promise in promises if "::test_" not in promise] == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "api").glob("*.md")), ids=of)
def test_the_reference_names_what_is_there(page):
    current = ""
    for directive, name in DIRECTIVE.findall(text_of(page)):
        if directive == "currentmodule":
            current = name
        elif directive == "automodule":
            assert importlib.util.find_spec(name) is not None, name
        else:
            assert hasattr(importlib.import_module(current), name), name


def test_the_entry_to_cite_has_the_version_of_the_library():
    assert f"Version {__version__}:" in text_of(ROOT / "README.md")
    assert f"\nversion: {__version__}\n" in text_of(ROOT / "CITATION.cff")


def test_the_changelog_has_a_section_for_the_version_of_the_library():
    versions = re.findall(r"^## (\S+)(?: - \d{4}-\d\d-\d\d)?$", text_of(ROOT / "CHANGELOG.md"), re.MULTILINE)
    assert next(version for version in versions if version != "Unreleased") == __version__
