"""Every notebook keeps the rules of `notebook_rules`, and every rule notices when it is broken."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

import notebook_rules as rules
from markdown_rendering import rendering_problems
from notebook_measures import measure, spine
from notebook_rules import Notebook
from refresh import to_text

PATHS = sorted((Path(__file__).parents[1] / "notebooks").glob("**/*.ipynb"))
NOTEBOOKS = [path for path in PATHS if ".ipynb_checkpoints" not in path.parts]


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_keeps_every_rule(path):
    notebook = Notebook.read(path)
    problems = [f"{rule.__name__}: {problem}" for rule in rules.RULES for problem in rule(notebook)]
    assert not problems, f"{path.name}:\n" + "\n".join(problems)


# A notebook that keeps every rule, and for each rule the ways to break it.

OPENING = """# Why is a sum a sum?
You will be able to add. **Time:** about 1 minutes to read and run. Prerequisites: none.

## Terms
| word | symbol |
|---|---|
| sum | Σ |
"""
ENDING = "## Summary\nAdd.\n\nA common misconception: none.\n\n```python\n# not a heading\n```"


def markdown(text: str, *tags: str) -> dict:
    return {"cell_type": "markdown", "metadata": {"tags": list(tags)} if tags else {}, "source": text}


def code(text: str, *tags: str, outputs: tuple = (), **metadata) -> dict:
    cell = {"cell_type": "code", "metadata": metadata, "source": text, "outputs": list(outputs)}
    if tags:
        cell["metadata"]["tags"] = list(tags)
    return cell


def guard(text: str, *tags: str) -> dict:
    return code(text, "guard", *tags, jupyter={"source_hidden": True})


def display(**data: str) -> dict:
    return {
        "output_type": "display_data",
        "metadata": {},
        "data": {key.replace("_", "/"): value for key, value in data.items()},
    }


def stream(text: str) -> dict:
    return {"output_type": "stream", "name": "stdout", "text": text}


@pytest.fixture
def rewritten(monkeypatch):
    """The small notebook counts as one of the third edition."""
    monkeypatch.setattr(rules, "THIRD_EDITION", ("07",))


def build(cells: list[dict]) -> dict:
    cells = copy.deepcopy(cells)
    counts = iter(range(1, len(cells) + 1))
    for index, cell in enumerate(cells):
        cell["id"] = f"cell-{index}"
        if cell["cell_type"] == "code":
            cell["execution_count"] = next(counts)
    raw = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return json.loads(to_text(raw))


FIGURE = display(text_html='<img alt="a bar of height 5" src="data:image/png;base64,AAAA">')
GOOD = [
    markdown(OPENING),
    code("import torch", "claim:C123"),
    guard("assert torch.ones(3).sum() == 3"),
    markdown("Predict the bar."),
    code("tl.plotting.figure(ax, '07.bar')", "nbval-ignore-output", outputs=(FIGURE,)),
    guard("torch.testing.assert_close(1.0, 1.0)"),
    markdown("It has a height of 5.", "telling"),
    markdown("Now you. ![a plus sign](plus.png)"),
    code("def add(a, b):\n    raise NotImplementedError", "exercise"),
    code("print('not attempted yet')", "check"),
    markdown("A hint."),
    code("# Solution (click to open)\nadd = sum", "solution", "hide-input", jupyter={"source_hidden": True}),
    code("if torch.cuda.is_available():\n    print(1)", "gpu"),
    guard("assert True", "gpu"),
    markdown(ENDING),
]


def good_raw() -> dict:
    return build(GOOD)


@pytest.mark.usefixtures("rewritten")
def test_the_good_notebook_keeps_every_rule():
    notebook = Notebook("07_sums.ipynb", to_text(good_raw()))
    assert [problem for rule in rules.RULES for problem in rule(notebook)] == []


def replace(number: int, cell: dict):
    def change(raw: dict) -> None:
        raw["cells"][number] = build([*GOOD[:number], cell, *GOOD[number + 1 :]])["cells"][number]

    return change


def put(number: int, key: str, value):
    def change(raw: dict) -> None:
        raw["cells"][number][key] = value

    return change


def long_code(lines: int):
    """Every cell of the lesson gets so many lines."""

    def change(raw: dict) -> None:
        for number in (1, 4, 12):
            raw["cells"][number]["source"] = "x = 1\n" * lines

    return change


def error_output(**more) -> dict:
    return {"output_type": "error", "ename": "KeyError", "evalue": "'x'", "traceback": [], **more}


STDERR = {"output_type": "stream", "name": "stderr", "text": "UserWarning: careful"}
NO_ALT = display(text_html='<img alt="" src="a.png">')
BARE_PNG = {"output_type": "display_data", "metadata": {}, "data": {"image/png": "AAAA", "text/plain": "fig"}}
MEAN, NO_NUMBER = stream("mean 0.98\n"), stream("d2l\n")
MEASURED = "print(mean)\nassert mean > 0.9"
FULL = "tl.plotting.figure(ax, 'A bar of height 5, and no other.')"
NO_FOLD = code("# Solution\nadd = sum", "solution", "hide-input")

BROKEN = [
    (rules.valid_format, put(1, "outputs", "none"), "not valid nbformat"),
    (rules.normal_form, put(0, "metadata", {"collapsed": True}), "make refresh"),
    (rules.normal_form, lambda raw: raw["metadata"].update(widgets={"state": {}}), "make refresh"),
    (rules.unique_ids, put(4, "id", "cell-1"), "cell-1 is missing or used twice"),
    (rules.unique_ids, lambda raw: raw["cells"][0].pop("id"), "None is missing"),
    (rules.executed_in_order, put(1, "execution_count", None), "cell 1 has execution count None, expected 1"),
    (rules.executed_in_order, put(4, "execution_count", 5), "cell 4 has execution count 5, expected 3"),
    (rules.executed_in_order, put(4, "source", "  \n"), "cell 4 is an empty code cell"),
    (rules.no_stored_error, put(1, "outputs", [error_output()]), "cell 1 stores an error: KeyError"),
    (rules.no_stored_error, put(1, "outputs", [STDERR]), "cell 1 stores text on stderr"),
    (rules.unchecked_output_asserts, put(5, "source", "print('assert')"), "cell 4 is not compared"),
    (rules.unchecked_output_asserts, put(13, "source", "# assert nothing"), "cell 12 is not compared"),
    (rules.known_tags, replace(1, code("x = 1", "excercise")), "unknown tag 'excercise'"),
    (rules.known_tags, replace(1, code("x = 1", "claim:12")), "unknown tag 'claim:12'"),
    (rules.known_tags, replace(1, code("x = 1", "nbval-skip")), "unknown tag 'nbval-skip'"),
    (rules.known_tags, put(1, "source", "# NBVAL_SKIP\nx = 1"), "use a tag"),
    (rules.known_tags, replace(1, code("x = 1", "approx")), "unknown tag 'approx'"),
    (rules.tolerances_are_used, replace(1, code(MEASURED, "approx:-1", outputs=(MEAN,))), "cell 1: the tag must be"),
    (rules.tolerances_are_used, replace(1, code(MEASURED, "approx:1", "approx:2", outputs=(MEAN,))), "one tag approx"),
    (rules.tolerances_are_used, replace(1, code(MEASURED, "approx:1", outputs=(NO_NUMBER,))), "stores no number"),
    (rules.tolerances_are_used, replace(1, code(MEASURED, "approx:1")), "stores no number"),
    (rules.tolerances_are_used, replace(14, code("print(mean)", "approx:1", outputs=(MEAN,))), "asserts nothing"),
    (rules.tolerances_are_used, replace(1, code(MEASURED, "approx:1", "gpu", outputs=(MEAN,))), "never compared"),
    (
        rules.tolerances_are_used,
        replace(1, code(MEASURED, "approx:5%", "nbval-ignore-output", outputs=(MEAN,))),
        "nbval-ignore-output, so that its output is never compared",
    ),
    (
        rules.tolerances_are_used,
        put(0, "metadata", {"tags": ["approx:1"]}),
        "cell 0 is tagged approx and has no output",
    ),
    (rules.claims_are_asserted, put(2, "source", "print('true')"), "tagged claim:C123 and asserts nothing"),
    (rules.claims_are_asserted, put(0, "metadata", {"tags": ["claim:C007"]}), "tagged claim:C007"),
    (rules.plain_python, put(1, "source", "%pip install torch"), "cell 1 is not plain Python"),
    (rules.plain_python, put(1, "source", "!pip install torch"), "cell 1 is not plain Python"),
    (rules.plain_python, put(1, "source", "warnings.filterwarnings('ignore')"), "cell 1 filters warnings"),
    (rules.plain_python, put(1, "source", "ax.plot(x);\n"), "cell 1 ends with ';'"),
    (rules.guards_are_guards, put(2, "source", "x = 1"), "cell 2 is a guard and asserts nothing"),
    (rules.guards_are_guards, put(2, "metadata", {"tags": ["guard"]}), "the guard in cell 2 is not folded"),
    (rules.guards_are_guards, put(2, "outputs", [MEAN]), "the guard in cell 2 shows something"),
    (rules.guards_are_guards, replace(1, markdown("x")), "the guard in cell 2 has no cell of code right above it"),
    (rules.guards_assert, put(4, "source", MEASURED), "cell 4 asserts: move that to a guard"),
    (rules.descriptions_have_names, put(4, "source", FULL), "cell 4 tells what its figure shows"),
    (rules.tellings_are_folded, put(6, "source", "## So\n\nFive."), "the telling in cell 6 has a heading"),
    (rules.tellings_are_folded, put(6, "metadata", {}), "what follows cell cell-4, whose result is predicted"),
    (rules.honest_minutes, put(6, "source", "word " * 1400), "1 minutes are stated to read and run, 8 are counted"),
    (rules.short_cells, put(1, "source", "x = 1\n" * 31), "cell 1 has 31 lines of code"),
    (rules.short_cells, replace(7, code("x = 1")), "cells 7 to 9 are code without prose"),
    (rules.proportions, put(7, "source", "### Exercise 07.1 · Add (85 minutes, ★☆☆)"), "has 86 minutes, at most 85"),
    (rules.proportions, put(1, "source", "x = 1\n" * 17), "has 17 lines in the longest cell, at most 16"),
    (rules.proportions, long_code(7), "has 7 lines in the median cell, at most 6"),
    (rules.proportions, put(1, "source", "x" * 89), "has 89 characters in its longest line, at most 88"),
    (rules.markdown_renders_as_meant, put(7, "source", "*in the row* bank*.*"), "cell 7: '*' is shown as it is"),
    (rules.markdown_renders_as_meant, put(7, "source", "the _ first"), "cell 7: '_' is shown as it is"),
    (rules.markdown_renders_as_meant, put(7, "source", "text\n| a | b |\n| 1 | 2 |"), "a table is shown as text"),
    (rules.markdown_renders_as_meant, put(7, "source", "| a | b |\n|---|---|\n| 1 | 2 | 3 |"), "a row with 3 cells"),
    (rules.markdown_renders_as_meant, put(7, "source", "<details>\n**bold**\n</details>"), "is shown as it is"),
    (rules.images_have_alt_text, put(1, "outputs", [BARE_PNG]), "cell 1 stores a bare image"),
    (rules.images_have_alt_text, put(4, "outputs", [NO_ALT]), "alt text"),
    (rules.images_have_alt_text, put(4, "outputs", [display(text_html="<b>x</b><svg></svg>")]), "raw <svg>"),
    (rules.images_have_alt_text, put(7, "source", "![](plus.png)"), "Markdown image without alt text"),
    (rules.images_have_alt_text, put(7, "source", "<img src='a.png'>"), "cell 7 shows an <img> without alt"),
    (rules.title_is_a_question, put(0, "source", "# Sums"), "not a question"),
    (rules.title_is_a_question, put(0, "source", "Hello\n# Why?"), "begin with it"),
    (rules.title_is_a_question, put(7, "source", "# A second title?"), "expected one H1"),
    (rules.title_is_a_question, replace(0, code("x = 1")), "expected one H1"),
    (rules.anatomy, put(0, "source", OPENING.replace("1 minutes", "short")), "the time it takes"),
    (rules.anatomy, put(0, "source", OPENING.replace("Prerequisites", "Before")), "prerequisites"),
    (rules.anatomy, put(0, "source", OPENING.replace("You will", "Be")), "what you will be able to do"),
    (rules.anatomy, put(0, "source", OPENING.replace("|", " ")), "a table of terms"),
    (rules.anatomy, put(14, "source", ENDING.replace("Summary", "The end")), "a summary"),
    (rules.anatomy, put(14, "source", ENDING.replace("misconception", "error")), "common misconceptions"),
    (rules.exercises_are_complete, replace(9, code("x = 1")), "the exercise in cell 8 has no check"),
    (rules.exercises_are_complete, replace(11, code("x = 1")), "the exercise in cell 8 has no solution"),
    (rules.exercises_are_complete, replace(11, NO_FOLD), "solution in cell 11 is not folded"),
]


BROKEN_IDS = [f"{rule.__name__}: {message}" for rule, _, message in BROKEN]


@pytest.mark.usefixtures("rewritten")
@pytest.mark.parametrize(("rule", "change", "message"), BROKEN, ids=BROKEN_IDS)
def test_a_broken_rule_is_noticed(rule, change, message):
    raw = good_raw()
    change(raw)
    problems = list(rule(Notebook("07_sums.ipynb", json.dumps(raw))))
    assert any(message in problem for problem in problems), problems


@pytest.mark.parametrize("output", [MEAN, display(text_html='<img alt="ends at 0.98" src="a.png">')])
def test_a_measured_output_keeps_every_rule(output):
    raw = good_raw()
    replace(1, code("print(mean)", "approx:0.02", outputs=(output,)))(raw)
    notebook = Notebook("07_sums.ipynb", json.dumps(raw))
    assert [problem for rule in rules.RULES if rule is not rules.normal_form for problem in rule(notebook)] == []


MEANT = [
    "*italic*, **bold**, d_model, `a * b`, $a * b_c * d$, 2 \\* 3",
    "$$x_1 * x_2$$\n\n| weight $\\lVert a \\rVert$ | `x[:, None]` |\n|---|---|\n| $|x|$ | _a_ |",
    "```\na * b\n| not a table |\n```",
    "<details><summary>Hint</summary>\n\n*A hint.* <code>a * b</code>\n\n</details>",
]


@pytest.mark.parametrize("text", MEANT)
def test_markdown_that_is_meant_so_is_left_alone(text):
    assert list(rendering_problems(text)) == []


def test_optional_cells_are_counted_apart():
    cells = [markdown("word " * 150), code("x = 1\n" * 12), markdown("### Exercise 07.1 · Add (9 minutes, ★☆☆)")]
    assert measure(spine(cells)).minutes() == pytest.approx(0.75 + 12 * 7 / 60 + 9, abs=0.05)
    for cell in cells[1:]:
        cell["metadata"]["tags"] = ["optional"]
    assert (measure(spine(cells)).minutes(), measure(spine(cells)).lines) == (0.75, 0)


def test_hints_formulas_exercises_and_quizzes_are_not_read():
    inner = "<details><summary>Hint 2</summary>\n\nTwo.\n\n</details>"
    hint = f"<details><summary>Hint 1</summary>\n\nOne.\n\n{inner}</details>"
    cells = [
        markdown(f"Four words are here. $a + b + c$\n\n{hint}"),
        code("x = 1", "exercise"),
        code("quiz(1)", "quiz"),
    ]
    assert (measure(cells).words, measure(cells).lines) == (5, 0)  # a formula counts as one


def test_minutes_count_what_is_read_printed_and_asked():
    cells = [
        markdown("word " * 198 + "Predict it."),
        code("print(1)", outputs=(stream("1\n" * 20),)),
        guard("assert True"),
        code("quiz(1)", "quiz"),
        code("panel()", "widget"),
    ]
    assert measure(cells).minutes() == pytest.approx(1 + 2 * 7 / 60 + 1 + 1.5 + 3 + 0.5)


def test_the_third_edition_names_notebooks_that_there_are():
    assert set(rules.THIRD_EDITION) <= {path.name.partition("_")[0] for path in NOTEBOOKS}


BAD_NAMES = ["sums.ipynb", "7_sums.ipynb", "07_Sums.ipynb", "07-sums.ipynb", "C_sums.ipynb"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_bad_file_name_is_noticed(name):
    assert list(rules.file_name(Notebook(name, "{}")))


def test_front_matter_needs_no_terms_but_a_lesson_does():
    raw = build([markdown("# Where do I begin?")])
    assert list(rules.anatomy(Notebook("00_start_here.ipynb", json.dumps(raw)))) == []
    assert len(list(rules.anatomy(Notebook("01_start.ipynb", json.dumps(raw))))) == 6


def test_every_rule_has_an_example_that_breaks_it():
    assert {rule for rule, _, _ in BROKEN} | {rules.file_name} == set(rules.RULES)
