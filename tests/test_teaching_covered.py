"""Cells of the notebooks that spell out an answer: marked by a tag, and not shown by an assignment."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest
import torch

from transformer_lib.course.cells import source_of, tags_of
from transformer_lib.course.exercises import all_exercises, get
from transformer_lib.course.lab import counting
from transformer_lib.course.teaching.assignments import build
from transformer_lib.course.teaching.assignments.covered import answered_by, run_covered
from transformer_lib.course.teaching.assignments.source import course_source, groups_of
from transformer_lib.course.teaching.notebook_files import read

NOTEBOOKS = build.chosen_notebooks([])
SEED = 7_654_321
MARKED = [(path, cell) for path in NOTEBOOKS for cell in read(path)["cells"] if answered_by(cell)]


def shown(path, graded, cell_id):
    """The source of a cell in an assignment."""
    [cell] = [each for each in course_source(read(path), seed=SEED, graded=graded)["cells"] if each["id"] == cell_id]
    return source_of(cell)


@pytest.mark.parametrize(("path", "cell"), MARKED, ids=[cell["id"] for _, cell in MARKED])
def test_a_marked_cell_is_shown_only_where_its_exercise_gives_no_points(path, cell):
    ids = {each.id for each in all_exercises() if each.notebook == path.stem.partition("_")[0]}
    answers = set(answered_by(cell))
    assert answers <= ids and cell["cell_type"] == "code" and not {"exercise", "check", "solution"} & set(tags_of(cell))
    for graded in (ids, *({name} for name in answers)):
        comment, *call = shown(path, graded, cell["id"]).splitlines()
        assert all(name in comment for name in answers & graded)
        assert call[0].startswith("from transformer_lib.") and len(call) == 3
        assert call[2] == f'run_covered("{path.stem.partition("_")[0]}", "{cell["id"]}", globals())'
    assert shown(path, ids - answers, cell["id"]) == source_of(cell)


def test_a_covered_cell_leaves_what_it_defines_and_its_result_is_the_same(capsys):
    """Notebook 08 up to the cell that is 08.1 to 08.3 in code, as published and as an assignment."""
    [path] = build.chosen_notebooks(["08"])
    results = []
    for notebook in (read(path), course_source(read(path), seed=SEED)):
        names: dict[str, object] = {}
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code" and not {"exercise", "check", "solution", "quiz"} & set(tags_of(cell)):
                capsys.readouterr()
                exec(source_of(cell), names)
            if cell["id"] == "08-024":
                break
        results.append((capsys.readouterr().out, names["output"].tolist(), set(names)))
    assert results[0][:2] == results[1][:2] and results[0][0].startswith("x [2, 5, 11]")
    assert results[0][2] <= results[1][2]


def test_the_answer_that_notebook_16_goes_on_with_holds_no_grid_of_scores():
    """Its cells measure what an assignment puts in the place of the learner's function."""
    reference = get("16.4").reference

    def blockwise(Q, K, V):
        return torch.cat([reference(rows, K.split(64), V.split(64)) for rows in Q.split(64)])

    Q, K, V = torch.randn(3, 512, 64)
    assert counting.largest_tensor(blockwise, Q, K, V) == Q.nbytes
    assert counting.multiply_adds(blockwise, Q, K, V) == 2 * 512**2 * 64


def test_the_answer_that_notebook_12_goes_on_with_copes_with_its_largest_vocabulary():
    logits = torch.zeros(160, 10_000)
    torch.testing.assert_close(get("12.4").reference(logits), torch.tensor(10_000.0).log())


def test_what_cannot_be_run_is_named(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"cell_id must be a cell of 08_multi_head_attention\.ipynb, got '08-999'"):
        run_covered("08", "08-999", {})
    with pytest.raises(ValueError, match="notebook_id must be one of 00 to 25 or A, got '99'"):
        run_covered("99", "08-024", {})
    [path] = build.chosen_notebooks(["08"])
    build.make_course(tmp_path, [path], seed=SEED)
    monkeypatch.setattr(build.course, "path_of", lambda entry: tmp_path / "source" / entry.stem / entry.filename)
    with pytest.raises(FileNotFoundError, match=r"08_multi_head_attention\.ipynb must lie beside the library"):
        run_covered("08", "08-024", {})


@cache
def expressions(source: str) -> dict[str, int]:
    """{every expression and statement, its names and numbers left out: how many parts it has}"""
    found = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.expr | ast.stmt) and not isinstance(node, ast.FunctionDef):
            text = re.sub(r"(Name\(id|Constant\(value)=[^,)]*", r"\1=", ast.dump(node))
            found[text] = sum(not isinstance(part, ast.expr_context | ast.operator) for part in ast.walk(node))
    return found


def repeated(cells, group) -> list[str]:
    """Cells after an exercise in which more than half of its solution stands in one piece."""
    [function] = [
        node
        for node in ast.parse(source_of(cells[group.solution])).body
        if isinstance(node, ast.FunctionDef) and node.name == f"{group.name}_solution"
    ]
    body = "\n".join(map(ast.unparse, function.body))
    pieces, size = (
        expressions(body),
        sum(not isinstance(n, ast.expr_context | ast.operator) for n in ast.walk(function)),
    )
    later = [cell for cell in cells[group.solution + 2 :] if cell["cell_type"] == "code"]
    return [
        cell["id"]
        for cell in later
        if not {"check", "solution", "exercise"} & set(tags_of(cell))
        and group.exercise.id not in answered_by(cell)
        and max([pieces[text] for text in expressions(source_of(cell)) if text in pieces], default=0) > max(9, size / 2)
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem[:2])
def test_no_later_cell_repeats_a_solution_without_a_mark(path):
    cells = read(path)["cells"]
    assert {group.exercise.id: repeated(cells, group) for group in groups_of(cells) if repeated(cells, group)} == {}


def test_the_search_for_repetitions_finds_one():
    [path] = build.chosen_notebooks(["04"])
    cells = read(path)["cells"]
    again = "print(scores.var(dim=-1, correction=0).mean().sqrt())"
    cells.append({"cell_type": "code", "id": "again", "metadata": {}, "source": again})
    assert repeated(cells, groups_of(cells)[0]) == ["again"]
    cells[-1]["metadata"]["tags"] = ["answers:04.1"]
    assert repeated(cells, groups_of(cells)[0]) == []
