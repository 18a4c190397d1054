"""The learner's copy: made, brought up to date, and brought back, and an edited notebook never touched."""

from __future__ import annotations

import errno
import json
import os
import re
import runpy
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from urllib.request import Request, urlopen

import pytest

from transformer_lib.course import copies, notebooks, progress
from transformer_lib.course.cells import for_readers, is_telling, source_of
from transformer_lib.course.copies import __main__ as command
from transformer_lib.course.copies import lab, restoring, updating
from transformer_lib.course.copies.clearing import for_learner, language_info

pytestmark = pytest.mark.fast

STUB = "def double(x):\n    raise NotImplementedError\n"


def code(source, *tags, name, output="seen"):
    outputs = [{"output_type": "stream", "name": "stdout", "text": [output]}] if output else []
    cell = {"cell_type": "code", "execution_count": 1, "id": name, "metadata": {}, "outputs": outputs}
    return cell | {"source": source.splitlines(keepends=True)} | ({"metadata": {"tags": [*tags]}} if tags else {})


def prose(source, name, *tags):
    metadata = {"tags": [*tags]} if tags else {}
    return {"cell_type": "markdown", "id": name, "metadata": metadata, "source": source.splitlines(keepends=True)}


def small_notebook(text="Some text."):
    cells = [
        prose(f"# Title\n\n{text}", "m1"),
        code("1 + 1", name="c1"),
        code("assert 1 + 1 == 2", "guard", name="g1", output=""),
        prose("It is 2.", "m2", "telling"),
        code(STUB, "exercise", name="e1", output=""),
        code('check("01.2", double)', "check", name="k1"),
    ]
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


@pytest.fixture
def course(tmp_path):
    """A course of one notebook, of which `course.edition(text)` writes another version."""
    folder = tmp_path / "course"
    folder.mkdir()

    class Course:
        path = folder / "01_small.ipynb"

        def edition(self, text):
            self.path.write_text(json.dumps(small_notebook(text)), encoding="utf-8")

    Course().edition("Some text.")
    return Course()


@pytest.fixture
def place(tmp_path):
    return tmp_path / "mine"


def cell_in(path, name):
    return next(cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["id"] == name)


def edit(path, name, source):
    """Change a cell as JupyterLab would: other text, another output, a cell below the last."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["id"] == name:
            cell["source"] = source
    path.write_text(json.dumps(notebook), encoding="utf-8")


def run_all(path):
    """What running it in JupyterLab leaves: counts, outputs, an empty cell at the end."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"][1:]:
        cell |= {"execution_count": 7, "outputs": [{"output_type": "stream", "name": "stdout", "text": "new"}]}
    notebook["cells"].append(code("", name="new", output=""))
    path.write_text(json.dumps(notebook), encoding="utf-8")


# What is cleared


def outputs_of(*cells):
    notebook = for_learner({"cells": [*cells], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    return {cell["id"]: bool(cell["outputs"]) for cell in notebook["cells"] if cell["cell_type"] == "code"}


def test_a_predicted_output_is_cleared_up_to_the_next_heading():
    cells = [code("0", name="before"), prose("**Predict** first.", "m1"), code("1", name="asked")]
    cells += [
        prose("And then:", "m2"),
        code("2", name="after"),
        prose("## Next\n\nText.", "m3"),
        code("3", name="next"),
    ]
    assert outputs_of(*cells) == {"before": True, "asked": False, "after": False, "next": True}


def test_a_heading_after_the_question_closes_it_and_one_before_it_does_not():
    assert outputs_of(prose("Predict it.\n\n## New\n\nText.", "m"), code("1", name="c")) == {"c": True}
    assert outputs_of(prose("## New\n\nWhat do you predict?", "m"), code("1", name="c")) == {"c": False}
    assert outputs_of(prose("Unpredictable.", "m"), code("1", name="c")) == {"c": True}


def test_a_question_hides_the_results_that_would_answer_it():
    cells = [code("0", name="before"), code('quiz("01.q1")', "quiz", name="q"), code("1", name="answer")]
    cells += [prose("It is so, since …", "m1"), code("2", name="after"), prose("## Next", "m2"), code("3", name="next")]
    assert outputs_of(*cells) == {"before": True, "q": True, "answer": False, "after": False, "next": True}


@pytest.mark.parametrize(
    "source",
    ['progress.banner("01")', "tl.progress.course_map()", "tl.mine.map()", "with tl.mine.by_hand() as whose:\n    1"],
)
def test_what_tells_of_a_learners_own_work_is_not_told_before(source):
    assert outputs_of(code(source, name="c"), code("tl.mine.assembled()", name="d")) == {"c": False, "d": True}


@pytest.mark.parametrize("tag", ["check", "exercise", "solution"])
def test_what_a_learner_does_is_not_done_already(tag):
    assert outputs_of(code("1", tag, name="c"), code("2", name="d")) == {"c": False, "d": True}


@pytest.mark.parametrize(
    ("source", "tags", "words"),
    [
        ("panel", ["widget"], "to get the controls."),
        ('quiz("17.q1")', ["quiz"], "to answer."),
        ('print(1)\nquiz("17.q3")', [], "to answer."),
    ],
)
def test_controls_say_how_to_wake_them(source, tags, words):
    [cell] = for_learner({"cells": [code(source, *tags, name="c")], "metadata": {}})["cells"]
    assert cell["outputs"][0]["data"]["text/plain"] == f"▶ Run this cell (Shift+Enter) {words}"
    assert "seen" not in json.dumps(cell["outputs"])


def test_no_cell_counts_as_run_and_the_pristine_notebook_stays():
    notebook = small_notebook()
    before = json.dumps(notebook)
    assert all(cell.get("execution_count") is None for cell in for_learner(notebook)["cells"])
    assert json.dumps(notebook) == before


def test_the_copy_names_the_kernel_as_the_kernel_names_itself():
    from ipykernel.ipkernel import IPythonKernel
    from ipykernel.kernelspec import get_kernel_dict

    metadata = for_learner(small_notebook())["metadata"]
    assert metadata["language_info"] == language_info() == IPythonKernel.language_info
    assert metadata["kernelspec"]["display_name"] == get_kernel_dict()["display_name"]


def test_guards_are_left_out_and_tellings_open_with_a_click():
    cells = [
        prose("**Predict** it.", "m1"),
        code("print(5)", name="c1"),
        code("assert 5", "guard", name="g1"),
        prose("It is $5$.\n\n- Not 6.", "m2", "telling"),
        code("print(7)", name="c2"),
        prose("A telling predicts nothing.", "m3", "telling"),
    ]
    copied = for_learner({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})["cells"]
    assert [cell["id"] for cell in copied] == ["m1", "c1", "m2", "c2", "m3"]
    assert [cell["outputs"] for cell in copied if cell["cell_type"] == "code"] == [[], []]
    folded = "<details><summary><b>What happened</b></summary>\n\nIt is $5$.\n\n- Not 6.\n\n</details>"
    assert source_of(copied[2]) == folded


@pytest.mark.parametrize("entry", notebooks.NOTEBOOKS, ids=lambda entry: entry.id)
def test_each_notebook_keeps_its_cells_and_loses_what_would_spoil_it(entry):
    pristine = json.loads((copies.course_folder() / entry.filename).read_text(encoding="utf-8"))
    cells = for_learner(pristine)["cells"]
    kept = for_readers(pristine["cells"])
    assert [cell["id"] for cell in cells] == [cell["id"] for cell in kept]
    for cell, original in zip(cells, kept, strict=True):
        assert source_of(original) in source_of(cell)
        assert (source_of(original) == source_of(cell)) != is_telling(original)
    for cell in cells:
        tags = set(cell["metadata"].get("tags", ()))
        if tags & {"check", "exercise", "solution"}:
            assert cell["outputs"] == []
        if tags & {"quiz", "predict", "widget"}:
            assert wakes(cell)
    for cell in after_questions(cells):
        assert wakes(cell) or cell["outputs"] == [], f"{cell['id']} answers a question above it"


def wakes(cell):
    return "▶ Run this cell" in json.dumps(cell["outputs"], ensure_ascii=False)


def after_questions(cells):
    """The code cells below a question of the quiz, up to the next heading."""
    found, below = [], False
    for cell in cells:
        if cell["cell_type"] == "markdown" and any(line.startswith("#") for line in source_of(cell).splitlines()):
            below = False
        elif cell["cell_type"] == "code":
            below = below or 'quiz("' in source_of(cell)
            found += [cell] * below
    return found


# Updates


def test_the_first_update_copies_and_the_second_changes_nothing(course, place):
    assert updating.update(course.path.parent, place) == []
    first = {path.name: path.read_bytes() for path in place.iterdir()}
    assert set(first) >= {"01_small.ipynb", ".copies.json"}
    assert updating.update(course.path.parent, place) == []
    assert {path.name: path.read_bytes() for path in place.iterdir()} == first


def test_a_new_version_replaces_a_copy_that_was_only_run(course, place):
    updating.update(course.path.parent, place)
    run_all(place / "01_small.ipynb")
    course.edition("Better text.")
    assert updating.update(course.path.parent, place) == []
    assert "Better text." in source_of(cell_in(place / "01_small.ipynb", "m1"))


def test_a_new_version_leaves_an_edited_notebook_byte_for_byte_and_says_so_each_time(course, place):
    updating.update(course.path.parent, place)
    edit(place / "01_small.ipynb", "e1", "def double(x):\n    return 2 * x\n")
    course.edition("Better text.")
    before = (place / "01_small.ipynb").read_bytes()
    for _ in range(2):
        [line] = updating.update(course.path.parent, place)
        assert line.startswith("01_small.ipynb: you have edited yours, so it stays.")
        assert line.endswith("copies beside 01")
        assert (place / "01_small.ipynb").read_bytes() == before


def test_the_new_one_comes_beside_on_request_and_is_not_mentioned_again(course, place):
    updating.update(course.path.parent, place)
    edit(place / "01_small.ipynb", "m1", "My own words.")
    course.edition("Better text.")
    said = restoring.beside(course.path, place)
    assert said == "01_small.new_1.ipynb is the course's, beside yours."
    assert "Better text." in source_of(cell_in(place / "01_small.new_1.ipynb", "m1"))
    assert "My own words." in source_of(cell_in(place / "01_small.ipynb", "m1"))
    assert updating.update(course.path.parent, place) == []
    course.edition("The best text.")
    assert len(updating.update(course.path.parent, place)) == 1
    assert "My own words." in source_of(cell_in(place / "01_small.ipynb", "m1"))


def test_an_update_of_the_whole_course_keeps_what_was_edited_and_replaces_the_rest(tmp_path, place):
    """Every other notebook of an earlier course is edited, the others are only run."""
    earlier, now = tmp_path / "earlier", copies.course_folder()
    earlier.mkdir()
    for source in now.glob("*.ipynb"):
        (earlier / source.name).write_bytes(source.read_bytes())
        edit(earlier / source.name, cells_named(source)[0], "# An earlier title")
    assert updating.update(earlier, place) == []
    names = [entry.filename for entry in notebooks.NOTEBOOKS]
    edited = {}
    for number, name in enumerate(names):
        run_all(place / name)
        if number % 2:
            edit(place / name, cells_named(place / name)[-2], "My own words.")
            edited[name] = (place / name).read_bytes()
    (place / "my_transformer.py").write_text("# mine")
    said = updating.update(now, place)
    assert [line.split(":")[0] for line in said] == list(edited)
    for name in names:
        assert name not in edited or (place / name).read_bytes() == edited[name]
        shown = place / name
        if name in edited:
            shown = place / restoring.beside(now / name, place).split()[0]
        assert shown.read_bytes() == updating.as_bytes(for_learner(json.loads((now / name).read_bytes())))
    assert updating.update(now, place) == []
    assert (place / "my_transformer.py").read_text() == "# mine"


def cells_named(path):
    return [cell["id"] for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]


@pytest.mark.parametrize("damage", ["", "{", '{"notebooks": 3}', None])
def test_without_the_record_an_edited_notebook_is_still_not_touched(course, place, damage):
    updating.update(course.path.parent, place)
    (place / ".copies.json").unlink() if damage is None else (place / ".copies.json").write_text(damage)
    assert updating.update(course.path.parent, place) == []
    (place / ".copies.json").unlink()
    edit(place / "01_small.ipynb", "m1", "My own words.")
    assert len(updating.update(course.path.parent, place)) == 1
    assert "My own words." in source_of(cell_in(place / "01_small.ipynb", "m1"))


def test_a_file_that_is_no_notebook_is_the_learners_too(course, place):
    place.mkdir()
    (place / "01_small.ipynb").write_text("half a note")
    assert len(updating.update(course.path.parent, place)) == 1
    assert (place / "01_small.ipynb").read_text() == "half a note"


def test_a_deleted_copy_comes_back_and_a_new_notebook_is_added(course, place):
    updating.update(course.path.parent, place)
    (place / "01_small.ipynb").unlink()
    (course.path.parent / "02_new.ipynb").write_text(json.dumps(small_notebook()))
    assert updating.update(course.path.parent, place) == []
    assert {path.name for path in place.glob("*.ipynb")} == {"01_small.ipynb", "02_new.ipynb"}


def test_a_write_that_fails_leaves_the_old_notebook(course, place, monkeypatch):
    updating.update(course.path.parent, place)
    before = (place / "01_small.ipynb").read_bytes()
    course.edition("Better text.")

    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no space left"):
        updating.update(course.path.parent, place)
    assert (place / "01_small.ipynb").read_bytes() == before
    assert not list(place.glob("*.part"))
    monkeypatch.undo()
    assert updating.update(course.path.parent, place) == []
    assert "Better text." in source_of(cell_in(place / "01_small.ipynb", "m1"))


def test_an_empty_course_is_refused(tmp_path, place):
    with pytest.raises(FileNotFoundError, match="course must be the folder of the notebooks, but there are none in"):
        updating.update(tmp_path, place)
    assert not place.exists()


# Bringing back


def test_an_exercise_comes_back_as_its_stub_and_the_answer_is_kept(course, place):
    updating.update(course.path.parent, place)
    target = place / "01_small.ipynb"
    for number, answer in enumerate(("def double(x):\n    return 3 * x", "def double(x):\n    return x * x"), start=1):
        edit(target, "e1", answer)
        edit(target, "m1", "My own words.")
        said = restoring.exercise(course.path, place, "01.2")
        assert said == f"01.2 is a stub again; what you had written is in mine/earlier/01.2_{number}.py."
        assert source_of(cell_in(target, "e1")) == STUB
        assert (place / "earlier" / f"01.2_{number}.py").read_text(encoding="utf-8") == answer + "\n"
    assert source_of(cell_in(target, "m1")) == "My own words."
    assert restoring.exercise(course.path, place, "01.2") == "01.2 is as the course has it."


def test_what_cannot_be_brought_back_is_named(course, place):
    with pytest.raises(ValueError, match=r"exercise_id must be that of an exercise in 01_small.ipynb, .* got '01.9'"):
        restoring.stub(course.path, "01.9")
    updating.update(course.path.parent, place)
    notebook = json.loads((place / "01_small.ipynb").read_text())
    notebook["cells"] = [cell for cell in notebook["cells"] if cell["id"] != "e1"]
    (place / "01_small.ipynb").write_text(json.dumps(notebook))
    with pytest.raises(ValueError, match="01_small.ipynb has lost the cell of exercise 01.2: bring the notebook back"):
        restoring.exercise(course.path, place, "01.2")


def test_a_whole_notebook_comes_back_and_the_learners_is_kept_beside_it(course, place):
    updating.update(course.path.parent, place)
    edit(place / "01_small.ipynb", "m1", "My own words.")
    before = (place / "01_small.ipynb").read_bytes()
    said = restoring.notebook(course.path, place)
    assert said == "01_small.ipynb is as the course has it; yours is now 01_small.yours_1.ipynb."
    assert (place / "01_small.yours_1.ipynb").read_bytes() == before
    assert "Some text." in source_of(cell_in(place / "01_small.ipynb", "m1"))
    assert updating.update(course.path.parent, place) == []


@pytest.mark.parametrize("entry", notebooks.NOTEBOOKS, ids=lambda entry: entry.id)
def test_every_exercise_of_a_notebook_comes_back_and_nothing_else_changes(entry, place):
    source, target = copies.course_folder() / entry.filename, place / entry.filename
    restoring.notebook(source, place)
    names = [name for kind, name in entry.parts if kind == "exercise"]
    stubs = {restoring.stub_cell(source, name)["id"]: name for name in names}
    assert len(stubs) == entry.exercises
    notebook = json.loads(target.read_text(encoding="utf-8"))
    given = {cell["id"]: source_of(cell) for cell in notebook["cells"]}
    for cell in notebook["cells"]:
        cell["source"] = f"My words in {cell['id']}."
    target.write_text(json.dumps(notebook), encoding="utf-8")
    for name in names:
        assert restoring.exercise(source, place, name).startswith(f"{name} is a stub again")
    for cell in json.loads(target.read_text(encoding="utf-8"))["cells"]:
        identifier, now = cell["id"], source_of(cell)
        assert now == (given[identifier] if identifier in stubs else f"My words in {identifier}.")
        assert identifier not in stubs or "raise NotImplementedError" in now
    for identifier, name in stubs.items():
        kept = place / "earlier" / f"{name}_1.py"
        assert kept.read_text(encoding="utf-8") == f"My words in {identifier}.\n"


@pytest.mark.parametrize("wrong", ["99.1", "01.q1", "B.1", "01.77", "01", 1.2])
def test_an_exercise_that_there_is_not_is_refused_by_its_name(wrong):
    with pytest.raises(ValueError, match=rf"exercise_id must be that of an exercise, such as '01.2', got {wrong!r}"):
        copies.bring_back(wrong)


def test_in_a_notebook_the_cell_itself_becomes_the_stub(monkeypatch, capsys):
    asked = []

    class Shell:
        kernel = True

        def set_next_input(self, text, replace):
            asked.append((text, replace))

    monkeypatch.setattr("IPython.get_ipython", Shell)
    copies.bring_back("01.1")
    assert asked == [(restoring.stub(copies.course_folder() / "01_attention_is_a_lookup.ipynb", "01.1"), True)]
    assert "def nearest_key_lookup" in asked[0][0]
    assert "Undo" in capsys.readouterr().out


# The command


def test_the_command_updates_and_brings_back(capsys):
    assert command.main(["update"]) == 0
    assert len(list(copies.folder().glob("*.ipynb"))) == len(notebooks.NOTEBOOKS)
    assert capsys.readouterr().out == f"Your notebooks are in {copies.folder()}.\n"
    assert command.main(["exercise", "01.1"]) == 0
    assert command.main(["notebook", "02"]) == 0
    assert command.main(["beside", "03"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in said] == [
        "01.1",
        "02_similarity_without_weights.ipynb",
        "03_queries_keys_values.new_1.ipynb",
    ]
    assert command.main(["exercise", "01.77"]) == 1
    assert "exercise_id must be" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command.main(["update", "--ip=0.0.0.0"])


def opened(place, root):
    words = lab.command(place, root, ["--no-browser"])
    assert words[:3] == [sys.executable, "-m", "jupyterlab"]
    assert words[-1] == "--no-browser"
    return {word.split("=")[0]: word.split("=")[1] for word in words[3:-1]}


def test_jupyterlab_opens_where_one_left(tmp_path):
    root, place = tmp_path, tmp_path / "mine"
    place.mkdir()
    for name in ("00_start_here.ipynb", "01_attention_is_a_lookup.ipynb"):
        (place / name).touch()
    first = {"--ServerApp.root_dir": str(root.resolve()), "--LabApp.default_url": "/lab/tree/mine/00_start_here.ipynb"}
    assert opened(place, root) == first
    progress.mark("exercise", "01.1")
    assert opened(place, root)["--LabApp.default_url"] == "/lab/tree/mine/01_attention_is_a_lookup.ipynb"
    progress.mark("widget", "W15")  # a panel stands in several notebooks
    assert opened(place, root)["--LabApp.default_url"] == "/lab/tree/mine/01_attention_is_a_lookup.ipynb"
    progress.mark("quiz", "02.q1")
    assert opened(place, root) == first  # whose copy is gone


def test_jupyterlab_opens_whichever_notebook_was_the_last(tmp_path):
    for entry in notebooks.NOTEBOOKS:
        (tmp_path / entry.filename).touch()
    for entry in notebooks.NOTEBOOKS:
        progress.banner(entry.id)
        assert opened(tmp_path, tmp_path)["--LabApp.default_url"] == f"/lab/tree/{entry.filename}"


def test_a_folder_elsewhere_is_shown_itself(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    words = opened(tmp_path / "elsewhere", tmp_path / "course")
    assert words["--ServerApp.root_dir"] == str(tmp_path.resolve())
    assert words["--LabApp.default_url"] == "/lab/tree/elsewhere/00_start_here.ipynb"


def test_the_courses_settings_come_beside_the_users():
    assert lab.environment({})["JUPYTER_CONFIG_PATH"] == str(lab.SETTINGS)
    both = lab.environment({"JUPYTER_CONFIG_PATH": "own/jupyter", "A": "b"})
    assert both["JUPYTER_CONFIG_PATH"] == f"{lab.SETTINGS}{os.pathsep}own/jupyter"
    assert both["A"] == "b"


def test_side_bars_are_closed_at_first_and_a_layout_is_kept(tmp_path, monkeypatch):
    monkeypatch.delenv("JUPYTERLAB_WORKSPACES_DIR", raising=False)
    assert lab.layout(tmp_path) == [f"--LabApp.workspaces_dir={tmp_path.resolve() / lab.WORKSPACES}"]
    [file] = (tmp_path / lab.WORKSPACES).iterdir()
    sides = json.loads(file.read_text())["data"]["layout-restorer:data"]
    assert sides["left"]["collapsed"] and sides["right"]["collapsed"]
    file.write_text("as it was left")
    lab.layout(tmp_path)
    assert file.read_text() == "as it was left"


def test_a_layout_is_jupyterlabs_own_where_one_is_named_or_nothing_can_be_written(tmp_path, monkeypatch):
    monkeypatch.delenv("JUPYTERLAB_WORKSPACES_DIR", raising=False)
    (tmp_path / "file").touch()
    assert lab.layout(tmp_path / "file") == []
    monkeypatch.setenv("JUPYTERLAB_WORKSPACES_DIR", str(tmp_path))
    assert lab.layout(tmp_path) == []


VIEW = "application/vnd.jupyter.widget-view+json"


def with_widgets():
    outputs = [{"data": {VIEW: {}, "text/html": "picture"}}, {"data": {VIEW: {}}}, {"name": "stdout", "text": "a"}]
    return {"type": "notebook", "content": {"cells": [{"outputs": outputs}, {"source": "text"}]}}


def test_saving_leaves_the_picture_of_a_widget_and_not_the_view_of_a_model_that_ends():
    drop = runpy.run_path(str(lab.SETTINGS / "transformer_course_saving.py"))["drop_widget_views"]
    model = with_widgets()
    drop(model=model, path="a.ipynb", contents_manager=None)
    assert model["content"]["cells"][0]["outputs"] == [
        {"data": {"text/html": "picture"}},
        {"data": {VIEW: {}}},
        {"name": "stdout", "text": "a"},
    ]
    for other in ({"type": "file", "content": "text"}, {"type": "notebook"}):
        before = dict(other)
        drop(model=other, path="a.txt", contents_manager=None)
        assert other == before


@pytest.fixture
def server(tmp_path):
    """A JupyterLab as `lab` starts it, with a user's own hook for saving: its address, and what it has logged."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "jupyter_server_config.py").write_text(OWN_HOOK)
    log, token = tmp_path / "log.txt", "secret"
    words = [sys.executable, "-m", "transformer_lib.course.copies", "lab", "--no-browser", "--allow-root"]
    words += ["--ServerApp.port=0", f"--IdentityProvider.token={token}"]
    folders = {f"JUPYTER_{name}_DIR": str(tmp_path / name) for name in ("RUNTIME", "DATA")}
    environment = os.environ | folders | {"JUPYTER_CONFIG_DIR": str(own)}
    with log.open("wb") as output:
        process = subprocess.Popen(words, env=environment, stdout=output, stderr=subprocess.STDOUT)
    try:
        yield SimpleNamespace(address=address_in(log, process), token=token, log=log)
    finally:
        process.terminate()
        process.wait(60)


OWN_HOOK = """
c = get_config()


def sign(model, **kwargs):
    if model["type"] == "notebook":
        model["content"]["metadata"]["signed"] = True

c.FileContentsManager.pre_save_hook = sign
"""


def address_in(log, process):
    """Return where a server listens, once its log says so and its extensions are loaded."""
    while True:
        said = log.read_text(encoding="utf-8", errors="replace")
        found = re.search(r"(http://localhost:\d+)/", said)
        if found:
            return found[1]
        assert process.poll() is None, said
        time.sleep(0.1)


@pytest.mark.slow
def test_jupyterlab_keeps_pictures_beside_a_users_own_hook_and_warns_of_nothing_of_ours(server, tmp_path):
    notebook = small_notebook() | {"metadata": {}}
    notebook["cells"][1]["outputs"] = [
        {"output_type": "display_data", "metadata": {}, "data": {VIEW: {}, "text/html": "picture"}}
    ]
    body = json.dumps({"type": "notebook", "format": "json", "content": notebook}).encode()
    headers = {"Authorization": f"token {server.token}"}
    where = f"{server.address}/api/contents/mine/saved.ipynb"
    urlopen(Request(where, data=body, headers=headers, method="PUT"), timeout=60).close()
    saved = json.loads((copies.folder() / "saved.ipynb").read_text(encoding="utf-8"))
    assert [*saved["cells"][1]["outputs"][0]["data"]] == ["text/html"]
    assert saved["metadata"]["signed"]
    assert "drop_widget_views" not in server.log.read_text(encoding="utf-8", errors="replace")


def test_a_course_without_notebooks_says_so(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(copies, "__file__", str(tmp_path / "a" / "b" / "c" / "__init__.py"))
    assert command.main(["update"]) == 1
    assert "there are no notebooks beside transformer_lib" in capsys.readouterr().err
    assert not Path(copies.folder()).exists()


# A folder that cannot be written

CURE = "To use another, which is made if need be, set the environment variable TRANSFORMER_COURSE_MINE to its path."


@pytest.mark.parametrize("task", [["update"], ["lab"], ["notebook", "01"], ["beside", "01"], ["exercise", "01.1"]])
def test_a_folder_that_is_a_file_is_named_with_the_cure(task, capsys):
    copies.folder().parent.mkdir(parents=True)
    copies.folder().touch()
    assert command.main(task) == 1
    assert capsys.readouterr().err == f"Your folder {copies.folder()} is a file and must be a folder. {CURE}\n"


@pytest.mark.parametrize("missing", ["file/mine", "file/a/mine"])
def test_a_folder_that_cannot_be_made_is_named_with_the_cure(missing, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").touch()
    monkeypatch.setenv("TRANSFORMER_COURSE_MINE", str(tmp_path / missing))
    assert command.main(["update"]) == 1
    assert f"Your folder {tmp_path / missing} cannot be written (Not a directory). {CURE}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("function", "number", "reason"),
    [("replace", errno.EROFS, "Read-only file system"), ("fsync", errno.ENOSPC, "No space left on device")],
)
def test_a_disk_that_takes_nothing_is_named_with_the_cure(function, number, reason, monkeypatch, capsys):
    def refuse(*paths):
        raise OSError(number, os.strerror(number), *map(str, paths if function == "replace" else ()))

    monkeypatch.setattr(os, function, refuse)
    assert command.main(["update"]) == 1
    assert f"Your folder {copies.folder()} cannot be written ({reason}). {CURE}" in capsys.readouterr().err


def test_what_another_folder_lacks_is_not_blamed_on_the_learners(monkeypatch, capsys, tmp_path):
    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "notebooks" / "01.ipynb"))

    monkeypatch.setattr(command, "update", refuse)
    assert command.main(["update"]) == 1
    assert CURE not in (said := capsys.readouterr().err) and "Permission denied" in said


def test_an_exercise_before_the_first_update_says_what_comes_first(capsys):
    assert command.main(["exercise", "01.1"]) == 1
    assert "make your notebooks first (python -m transformer_lib.course.copies update)" in capsys.readouterr().err
