"""`refresh.py` stores what a fresh kernel prints, in one normal form, or leaves the file as it was."""

from __future__ import annotations

import json

import nbformat
import pytest

from notebook_kernel import kernel_environment
from refresh import main, normalise, to_text, write_atomically


def notebook(*sources: str, **metadata) -> dict:
    cells = [
        {
            "cell_type": "code",
            "id": f"cell-{index}",
            "metadata": {},
            "execution_count": None,
            "outputs": [],
            "source": source,
        }
        for index, source in enumerate(sources)
    ]
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


@pytest.fixture
def store(tmp_path):
    def write(*sources: str, **metadata):
        path = tmp_path / "07_toy.ipynb"
        path.write_text(json.dumps(notebook(*sources, **metadata)), encoding="utf-8")
        return path

    return write


def outputs(path) -> list[str]:
    found = [out for cell in json.loads(path.read_bytes())["cells"] for out in cell["outputs"]]
    return ["".join(out.get("text", out.get("data", {}).get("text/plain", ""))) for out in found]


ENVIRONMENT = "import os\nfor name in ['OMP_NUM_THREADS', 'PYTHONHASHSEED', 'CUDA_VISIBLE_DEVICES']:\n    "
ENVIRONMENT += "print(repr(os.environ[name]))"


def test_two_refreshes_give_the_same_bytes_and_check_agrees(store, capsys):
    slider = "import ipywidgets\nipywidgets.IntSlider(3)"
    path = store("print('a')\nprint('b')", ENVIRONMENT, slider, "{'x', 'y'}")
    assert main([str(path)]) == 0
    first = path.read_bytes()
    assert main([str(path), "--check"]) == 0
    assert main([str(path)]) == 0
    assert path.read_bytes() == first
    assert first.endswith(b"}\n") and b"\r" not in first and first.startswith(b'{\n "cells"')
    assert outputs(path)[:2] == ["a\nb\n", "'1'\n'0'\n''\n"]
    assert outputs(path)[2].startswith("IntSlider(value=3") and b"widget-view" not in first
    assert [cell["execution_count"] for cell in json.loads(first)["cells"]] == [1, 2, 3, 4]
    assert json.loads(first)["metadata"]["language_info"] == {"name": "python"}
    printed = capsys.readouterr().out
    assert printed.count("07_toy.ipynb") == 3 and "1 notebooks, 0 changed, 0 failed" in printed


def test_the_notebook_chooses_its_threads(store):
    path = store(ENVIRONMENT, transformer_course={"threads": 2})
    assert main([str(path)]) == 0
    assert outputs(path) == ["'2'\n'0'\n''\n"]
    assert json.loads(path.read_bytes())["metadata"]["transformer_course"] == {"threads": 2}


def test_a_failing_cell_is_named_and_the_file_left_alone(store, capsys):
    path = store("x = 1", "x / 0", "print(x)")
    before = path.read_bytes()
    assert main([str(path)]) == 1
    errors = capsys.readouterr().err
    assert "07_toy.ipynb, cell 1" in errors and "ZeroDivisionError" in errors
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["07_toy.ipynb"]


def test_check_shows_what_would_change_and_writes_nothing(store, capsys):
    path = store("print('new')")
    before = path.read_bytes()
    assert main([str(path), "--check"]) == 1
    printed = capsys.readouterr().out
    assert "would change" in printed and "+++ 07_toy.ipynb (new)" in printed
    assert path.read_bytes() == before


def test_normal_form_strips_what_varies_and_keeps_what_the_author_wrote():
    raw = notebook("1", "2", kernelspec={"name": "mine"}, widgets={"state": {}})
    raw["cells"][0]["metadata"] = {"execution": {"x": 1}, "tags": ["check"], "scrolled": False, "jupyter": {}}
    raw["cells"][1]["id"] = "cell-0"
    again = json.loads(to_text(raw))
    assert again["metadata"] == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    assert again["cells"][0]["metadata"] == {"tags": ["check"]}
    assert again["cells"][0]["id"] == "cell-0" != again["cells"][1]["id"]
    assert to_text(again) == to_text(raw)


def test_a_cell_without_id_gets_the_same_one_each_time():
    raw = notebook("1", "1")
    for cell in raw["cells"]:
        del cell["id"]
    raw["nbformat_minor"] = 4
    ids = [cell["id"] for cell in normalise(raw)["cells"]]
    assert ids == [cell["id"] for cell in normalise(raw)["cells"]]
    assert len(set(ids)) == 2
    nbformat.validate(normalise(raw))


def test_a_view_is_dropped_only_beside_a_picture_or_text():
    raw = notebook("1")
    view = {"application/vnd.jupyter.widget-view+json": {"model_id": "abc"}}
    raw["cells"][0]["outputs"] = [
        {"output_type": "display_data", "metadata": {}, "data": {**view, "text/plain": "a slider"}},
        {"output_type": "display_data", "metadata": {}, "data": dict(view)},
    ]
    first, second = normalise(raw)["cells"][0]["outputs"]
    assert (first["data"], second["data"]) == ({"text/plain": "a slider"}, view)


def test_an_interrupted_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "07_toy.ipynb"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "new \ud800")
    assert path.read_text(encoding="utf-8") == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["07_toy.ipynb"]


def test_cuda_is_hidden_unless_asked_for():
    raw = notebook("1")
    assert kernel_environment(raw)["CUDA_VISIBLE_DEVICES"] == ""
    assert "CUDA_VISIBLE_DEVICES" not in kernel_environment(raw, hide_cuda=False)


MEASURED = """from IPython.display import HTML
print('mean 0.98')
HTML('<p>1,000 words</p><img alt="ends at 0.98" src="data:image/png;base64,AAAA">')"""


def store_measured(path, *edits: list[tuple[str, str]], tag: str = "approx:0.02") -> bytes:
    """Store what the cells print, each edited as if another processor had come to other numbers."""
    assert main([str(path)]) == 0
    raw = json.loads(path.read_bytes())
    for cell, replacements in zip(raw["cells"], edits, strict=True):
        cell["metadata"]["tags"] = [tag]
        text = json.dumps(cell["outputs"])
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        cell["outputs"] = json.loads(text)
    path.write_text(to_text(raw), encoding="utf-8", newline="\n")
    return path.read_bytes()


def test_stored_numbers_stay_while_they_are_within_the_tolerance(store, capsys):
    path = store(MEASURED)
    before = store_measured(path, [("mean 0.98", "mean 1.00"), ("at 0.98", "at 0.97"), ("1,000 ", "1,000.02 ")])
    assert main([str(path), "--check"]) == 0
    assert main([str(path)]) == 0
    assert path.read_bytes() == before
    assert "0 changed" in capsys.readouterr().out.splitlines()[-1]


LEAVES = [
    [("mean 0.98", "mean 1.01")],
    [("mean 0.98", "mean 0.99"), ("words", "tokens")],  # of two outputs, one: both are stored anew
    [("mean 0.98", "mean 0.99"), ("AAAA", "BBBB")],  # the picture is another one
    [("mean 0.98", "mean 0.98 1")],
    [("<p>", "<b>"), ("</p>", "</b>")],
]


def test_all_outputs_of_a_cell_are_stored_anew_when_something_leaves_it(store):
    path = store(*[MEASURED] * len(LEAVES))
    store_measured(path, *LEAVES)
    assert main([str(path)]) == 0
    text = [json.dumps(cell["outputs"]) for cell in json.loads(path.read_bytes())["cells"]]
    for out, edits in zip(text, LEAVES, strict=True):
        assert [(old, new) for old, new in edits if old not in out or new in out] == []


def test_without_the_tag_the_stored_numbers_are_replaced(store):
    path = store(MEASURED)
    store_measured(path, [("mean 0.98", "mean 0.99")], tag="check")
    assert main([str(path), "--check"]) == 1


def test_stored_numbers_stay_when_the_cell_moves_and_go_when_it_was_cleared(store):
    path = store(MEASURED, MEASURED)
    store_measured(path, [("mean 0.98", "mean 0.99")], [("mean 0.98", "mean 0.99")])
    raw = json.loads(path.read_bytes())
    raw["cells"][1]["outputs"] = []
    raw["cells"].insert(0, notebook("1")["cells"][0] | {"id": "first"})
    path.write_text(to_text(raw), encoding="utf-8", newline="\n")
    assert main([str(path)]) == 0
    moved = json.loads(path.read_bytes())["cells"][1]
    counts = [output["execution_count"] for output in moved["outputs"] if "execution_count" in output]
    assert (moved["execution_count"], counts) == (2, [2])
    assert outputs(path)[1::2] == ["mean 0.99\n", "mean 0.98\n"]


def test_a_tolerance_that_cannot_be_read_is_named_before_anything_runs(store, capsys):
    path = store("1 / 0")
    raw = json.loads(path.read_bytes())
    raw["cells"][0]["metadata"]["tags"] = ["approx:5 %"]
    path.write_text(json.dumps(raw), encoding="utf-8")
    assert main([str(path)]) == 1
    errors = capsys.readouterr().err
    assert "07_toy.ipynb: the tag must be approx:<number>" in errors and "ZeroDivisionError" not in errors
