"""The table of real sentences follows from the stored runs, and runs that cannot be compared are refused."""

from __future__ import annotations

import json

import pytest

from transformer_lib.course.studies import multi30k

SCORES = {
    "command": "python -m transformer_lib train --out x",
    "pairs": {"train": 29, "validation": 7, "test": 1013},
    "steps": 2311,
    "epochs": 5.25,
    "minutes": 22.01,
    "threads": 2,
    "scores": {
        "val, greedy": {"BLEU": [1, 1, 1], "BLEU, lower-cased": [1, 1, 1], "chrF": [1, 1, 1]},
        "test_2016_flickr, beam 5": {
            "BLEU": [37.25, 36.1, 38.4],
            "BLEU, lower-cased": [38, 37, 39],
            "chrF": [61, 60, 62],
        },
    },
}


def folder(path, model, **changes):
    path.mkdir()
    (path / "config.json").write_text(json.dumps({"model": model, "minutes": 22.0, "dropout": 0.1} | changes))
    (path / "scores.json").write_text(json.dumps(SCORES))
    return path


def test_the_stored_runs_differ_in_their_model_alone():
    ours, theirs = multi30k.load_results()["runs"]
    assert (ours["model"], theirs["model"]) == ("ours", "torch")
    assert ours["options"] == theirs["options"]
    assert ours["minutes"] < 22.5 and theirs["minutes"] < 22.5  # an update that was begun in time is ended


def test_folders_become_a_table(tmp_path):
    readme, page, results = (tmp_path / name for name in ("README.md", "docs/multi30k.md", "multi30k.json"))
    page.parent.mkdir()
    for file in (readme, page):
        file.write_text("before\n<!-- multi30k: begin -->\nold\n<!-- multi30k: end -->\nafter\n")
    folders = [str(folder(tmp_path / model, model)) for model in ("ours", "torch")]
    multi30k.main([*folders, "--results", str(results), "--root", str(tmp_path)])
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    assert "BLEU **37.2** (36.1–38.4) by `tl.Transformer` and" in readme.read_text(encoding="utf-8")
    scores = "**37.2** (36.1–38.4) | **38.0** (37.0–39.0) | **61.0** (60.0–62.0)"
    assert f"| `tl.Transformer`, beam 5 | 2,311 | 5.2 | {scores} |" in text
    assert "greedy" not in text  # of the validation set
    assert "1,013 test sentences" in text
    assert multi30k.load_results(results)["runs"][1]["model"] == "torch"


def test_runs_with_other_options_are_refused(tmp_path):
    folders = [folder(tmp_path / "a", "ours"), folder(tmp_path / "b", "torch", dropout=0.3, minutes=23.0)]
    with pytest.raises(ValueError, match=r"differ in their model alone, got other \['dropout', 'minutes'\]"):
        multi30k.collect(folders)


@pytest.mark.parametrize("condition", multi30k.CONDITIONS)
def test_runs_in_other_conditions_are_refused(tmp_path, condition):
    folders = [folder(tmp_path / "a", "ours"), folder(tmp_path / "b", "torch")]
    (folders[1] / "scores.json").write_text(json.dumps(SCORES | {condition: "other"}))
    with pytest.raises(ValueError, match=rf"got other \['{condition}'\]"):
        multi30k.collect(folders)
    assert condition in multi30k.load_results()["runs"][0]


def test_an_option_of_one_run_alone_is_seen(tmp_path):
    folders = [folder(tmp_path / "a", "ours", new=1), folder(tmp_path / "b", "torch")]
    with pytest.raises(ValueError, match=r"got other \['new'\]"):
        multi30k.collect(folders)
