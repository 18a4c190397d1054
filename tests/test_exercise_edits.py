"""After a cell that did not run, a check does not judge the function from before it in silence."""

from __future__ import annotations

import subprocess
import sys

import pytest
from IPython.core.interactiveshell import InteractiveShell
from jupyter_client.manager import start_new_kernel

from small_exercises import use
from transformer_lib.course.exercises import check, check_solution, edits

pytestmark = pytest.mark.fast

STUB = "def scaled_scores(query, key):\n    raise NotImplementedError\n"
UNSCALED = "def scaled_scores(query, key):\n    return query @ key.mT\n"
RIGHT = "def scaled_scores(query, key):\n    return query @ key.mT / query.shape[-1] ** 0.5\n"
NO_COLON = "def scaled_scores(query, key)\n    return query @ key.mT / 2\n"


@pytest.fixture
def run(monkeypatch, capsys):
    """Run cells as IPython does, and return what `check("04.1", …)` then says of a name; "" leaves out the check."""
    use(monkeypatch)
    monkeypatch.setattr(edits, "_failed", {})
    monkeypatch.setattr(edits, "_defined", {})
    shell = InteractiveShell()
    shell.user_ns["check"] = check
    edits.listen(shell)
    edits.listen(shell)  # a second time changes nothing

    def said(*cells: str, name: str = "scaled_scores", by=check) -> str:
        for cell in cells:
            shell.run_cell(cell, store_history=True)
        capsys.readouterr()
        by("04.1", shell.user_ns[name])
        return capsys.readouterr().out

    said.shell = shell
    yield said
    shell.history_manager.end_session()


def test_the_edit_that_did_not_run_is_said_with_its_line_and_how_to_go_on(run):
    assert run(UNSCALED, "\n\n" + NO_COLON) == (
        "✗ 04.1 Scaled scores: not checked, because your last edit of scaled_scores did not run.\n"
        "  Line 3 of that cell: a colon is missing at its end (SyntaxError: expected ':').\n"
        "      def scaled_scores(query, key)\n"
        "  So scaled_scores is still the version before that edit, and a check would tell you nothing of your new"
        " one.\n"
        "  Mend it, run that cell again, and then this one. (To go back, run the cell of the earlier version again.)\n"
    )


@pytest.mark.parametrize("before", [STUB, UNSCALED, RIGHT])
def test_no_version_before_it_is_judged_until_the_cell_has_run(run, before):
    assert "not checked" in run(before, NO_COLON)
    assert "not checked" in run("x = 1", "1 / 0")  # cells about something else change nothing
    assert run(RIGHT).startswith("✓ 04.1")


def test_going_back_to_the_earlier_version_is_possible(run):
    assert "not checked" in run(UNSCALED, NO_COLON)
    assert "not scaled" in run(UNSCALED)
    assert "not checked" in run("first = scaled_scores", NO_COLON)
    assert "not scaled" in run("scaled_scores = first")


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        (
            "def scaled_scores(query, key):\nreturn query\n",
            "Line 2 of that cell: what belongs to the line above must be",
        ),
        ("def scaled_scores(query, key):\n    x = 1\n      y = 2\n", "Line 3 of that cell: it is indented further"),
        ("def scaled_scores(query, key):\n    x = 1\n  y = 2\n", "Line 3 of that cell: it is indented like no line"),
        ("def scaled_scores(query, key):\n    return (query\n\nx = 1", "Line 2 of that cell: its ( is never closed"),
        ("def scaled_scores(query, key):\n    return (query\n", "Line 2 of that cell: the cell ends too early"),
        (
            "dfe scaled_scores(query, key):\n    return query\n",
            "Line 1 of that cell: Python cannot read it (SyntaxError",
        ),
        (
            "def scaled_scores(query, key, n=torhc):\n    return n\n",
            "Line 1 of that cell: NameError: name 'torhc' is not",
        ),
        ("@nothing\ndef scaled_scores(query, key):\n    return 1\n", "Line 1 of that cell: NameError: name 'nothing'"),
        ("scaled_scores = lambda q, k: q)\n", "Line 1 of that cell: its ) closes nothing"),
        ("scaled_scores = anything\n", "Line 1 of that cell: NameError: name 'anything'"),
        ("  def scaled_scores(query, key)\n      return 1\n", "Line 1 of that cell: a colon is missing"),
        ("%%time\ndef scaled_scores(query, key):\n    x = 1\n  y = 2\n", "Line 4 of that cell: it is indented like no"),
        ("class scaled_scores\n    pass\n", "Line 1 of that cell: a colon is missing"),
    ],
)
def test_every_way_not_to_be_defined_is_explained(run, cell, reason):
    assert reason in run(UNSCALED, cell)


def test_a_cell_that_stops_before_the_definition_says_so(run):
    said = run(UNSCALED, f"x = 1\nx / 0\n{RIGHT}")
    assert "  Line 2 of that cell: ZeroDivisionError: division by zero.\n      x / 0\n" in said
    assert "It stopped there, before it came to scaled_scores." in said
    assert "before it came to" not in run(NO_COLON)


@pytest.mark.parametrize(
    "cell", [f"{RIGHT}1 / 0", f"%%time\n{RIGHT}1 / 0", f"if True:\n    pass\n{RIGHT}raise SystemExit", f"{RIGHT}x = y"]
)
def test_a_definition_that_ran_is_judged_although_its_cell_failed_later(run, cell):
    assert run(UNSCALED, cell).startswith("✓ 04.1")
    assert run(NO_COLON, cell).startswith("✓ 04.1")


def test_a_check_in_the_cell_that_mends_the_function_judges_the_new_one(run, capsys):
    run(UNSCALED, NO_COLON)
    run.shell.run_cell(f'{RIGHT}check("04.1", scaled_scores)')
    assert "✓ 04.1" in capsys.readouterr().out


def test_a_function_of_another_name_and_two_in_one_cell(run):
    mine = UNSCALED.replace("scaled_scores", "mine")
    assert "not scaled" in run(mine, NO_COLON, name="mine")  # the failed edit is of another function
    assert "edit of mine did not run" in run(mine, NO_COLON.replace("scaled_scores", "mine"), name="mine")
    assert "edit of mine did not run" in run("other = mine", name="other")  # the same function
    both = f"{RIGHT}\n\n{NO_COLON.replace('scaled_scores', 'mine')}"
    assert "Line 5" in run(UNSCALED, mine, both, name="mine") and "Line 5" in run()


def test_a_call_that_fails_is_no_edit(run):
    for cell in (
        "scaled_scores(1, 2)",
        "scores = scaled_scores(1, 2)",
        "x = [scaled_scores\n",
        "scaled_scores.y = 1 / 0",
    ):
        assert "not scaled" in run(UNSCALED, cell)
    method = "class Other:\n    def scaled_scores(self)\n        pass\n"
    assert "not scaled" in run(UNSCALED, method)


def test_the_solutions_check_speaks_of_the_solution_alone(run):
    solution = RIGHT.replace("scaled_scores", "scaled_scores_solution")
    assert "(The notebook's solution.)" in run(
        STUB, solution, NO_COLON, name="scaled_scores_solution", by=check_solution
    )
    broken = solution.replace(":", "")
    assert "not checked" in run(broken, name="scaled_scores_solution", by=check_solution)


@pytest.mark.slow
def test_in_a_notebooks_kernel(tmp_path):
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(tmp_path))
    printed: list[str] = []

    def hook(message):
        content = message["content"]
        printed.append(content.get("text") or content.get("data", {}).get("text/plain", ""))

    try:
        for cell in (
            "from transformer_lib.course.exercises import check",
            "def similarity(query, key):\n    return query @ key\n",
            "def similarity(query, key)\n    return query @ key.mT\n",
            'check("02.1", similarity)',
            "def similarity(query, key):\n    return query @ key.mT\n",
            'check("02.1", similarity)',
        ):
            client.execute_interactive(cell, timeout=120, output_hook=hook, allow_stdin=False)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    verdicts = [text for text in printed if "02.1" in text]
    assert len(verdicts) == 2 and "a colon is missing" in verdicts[0] and verdicts[1].startswith("✓ 02.1")


@pytest.mark.slow
def test_outside_ipython_nothing_is_loaded_or_drawn():
    code = (
        "import random, sys, numpy, torch, transformer_lib\n"
        "before = (random.getstate(), numpy.random.get_state()[1].tolist(), torch.get_rng_state().tolist())\n"
        "import transformer_lib.course.exercises\n"
        "assert before == (random.getstate(), numpy.random.get_state()[1].tolist(), torch.get_rng_state().tolist())\n"
        "assert 'IPython' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
