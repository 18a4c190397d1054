"""Assignments with as many hints as a teacher chooses."""

from __future__ import annotations

import re

import pytest

from transformer_lib.course.cells import source_of
from transformer_lib.course.teaching.assignments import build
from transformer_lib.course.teaching.assignments.source import course_source, groups_of
from transformer_lib.course.teaching.notebook_files import read

NOTEBOOKS = build.chosen_notebooks([])
SEED = 7_654_321


def hints_of(cells) -> list[str]:
    """The cells with hints, as texts."""
    return [text for text in map(source_of, cells) if "<summary>Hint" in text]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem[:2])
def test_the_first_hints_stay_and_the_last_go(path):
    notebook = read(path)
    full, exercises = hints_of(notebook["cells"]), len(groups_of(notebook["cells"]))
    assert len(full) == exercises
    assert hints_of(course_source(notebook, seed=SEED)["cells"]) == full
    assert hints_of(course_source(notebook, seed=SEED, hints=0)["cells"]) == []
    for depth in (1, 2):
        kept = hints_of(course_source(notebook, seed=SEED, hints=depth)["cells"])
        assert len(kept) == exercises
        for before, after in zip(full, kept, strict=True):
            assert re.findall(r"<summary>(.*?)</summary>", after) == [f"Hint {n + 1}" for n in range(depth)]
            assert after.count("<details>") == after.count("</details>") == depth and after.endswith("</details>")
            assert before.startswith(after.removesuffix("</details>" * depth).rstrip())


def test_all_else_is_the_same_whatever_the_hints():
    notebook = read(build.chosen_notebooks(["08"])[0])
    every, none = (course_source(notebook, seed=SEED, hints=depth)["cells"] for depth in (None, 0))
    assert [cell for cell in every if "<summary>Hint" not in source_of(cell)] == none


def test_the_command_passes_the_number_of_hints_on(tmp_path, capsys):
    build.main(["--out", str(tmp_path), "00", "--hints", "1"])
    [source] = (tmp_path / "source").glob("*/*.ipynb")
    text = source.read_text(encoding="utf-8")
    assert "Hint 1" in text and "Hint 2" not in text
    with pytest.raises(SystemExit):
        build.main(["--out", str(tmp_path), "00", "--hints", "-1"])
    assert "hints must be at least 0, got -1" in capsys.readouterr().err
