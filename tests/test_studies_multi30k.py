"""The table of real sentences follows from the stored runs, and runs that cannot be compared are refused."""

from __future__ import annotations

import json

import pytest

from studies import multi30k

SCORES = {
    "command": "python -m transformer_lib train --out x",
    "pairs": {"train": 29, "validation": 7, "test": 1013},
    "steps": 2311,
    "epochs": 5.25,
    "minutes": 22.01,
    "threads": 2,
    "processor": "Processor X",
    "scores": {
        "val, greedy": {"BLEU": [1, 1, 1], "BLEU, lower-cased": [1, 1, 1], "chrF": [1, 1, 1]},
        "test_2016_flickr, beam 5": {
            "BLEU": [37.25, 36.1, 38.4],
            "BLEU, lower-cased": [38, 37, 39],
            "chrF": [61, 60, 62],
        },
    },
}


TEXTS = ["Ein Mann, der lacht.", "Zwei „Hunde“ laufen über die Wiese!"]


def folder(path, model, seed=0, bleu=37.25, **changes):
    path.mkdir()
    options = {"corpus": "multi30k", "model": model, "minutes": 22.0, "dropout": 0.1, "seed": seed}
    (path / "config.json").write_text(json.dumps(options | changes))
    scores = json.loads(json.dumps(SCORES))
    scores["scores"]["test_2016_flickr, beam 5"]["BLEU"][0] = bleu
    (path / "scores.json").write_text(json.dumps(scores))
    (path / "test_2016_flickr.beam5.txt").write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def references(monkeypatch):
    monkeypatch.setattr(multi30k, "_references", lambda: TEXTS)


def test_the_stored_runs_can_be_compared():
    runs = multi30k.load_results()["runs"]
    assert {run["model"] for run in runs} == {"ours", "torch"}
    assert all(run["minutes"] < 22.5 for run in runs)  # a step that was begun in time is ended


def test_folders_become_a_table(tmp_path):
    pytest.importorskip("sacremoses")
    readme, page, results = (tmp_path / name for name in ("README.md", "docs/multi30k.md", "multi30k.json"))
    page.parent.mkdir()
    for file in (readme, page):
        file.write_text("before\n<!-- multi30k: begin -->\nold\n<!-- multi30k: end -->\nafter\n")
    kinds = [("ours", 0, 38.25), ("ours", 1, 38.75), ("torch", 0, 37.25), ("torch", 1, 35.25)]
    folders = [str(folder(tmp_path / f"{model}-{seed}", model, seed, bleu)) for model, seed, bleu in kinds]
    multi30k.main([*folders, "--results", str(results), "--root", str(tmp_path)])
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    assert "BLEU **38.5** by `tl.Transformer` and **36.2** by" in readme.read_text(encoding="utf-8")
    scores = "**38.5** (38.2, 38.8) | **100.0** (100.0, 100.0) | **61.0** (61.0, 61.0)"
    assert f"| `tl.Transformer`, beam 5 | 2,311 | 5.2 | {scores} |" in text
    assert "greedy" not in text  # of the validation set
    assert "1,013 test sentences" in text and "on 2 threads of Processor X" in text
    assert [run["model"] for run in multi30k.load_results(results)["runs"]] == ["ours", "ours", "torch", "torch"]


def test_runs_of_one_model_with_other_options_are_refused(tmp_path):
    folders = [folder(tmp_path / "a", "ours"), folder(tmp_path / "b", "ours", seed=1, dropout=0.3)]
    with pytest.raises(ValueError, match=r"the same options of ours, got other \['dropout'\]"):
        multi30k.collect(folders)


def test_another_model_may_learn_with_other_options_but_not_longer(tmp_path):
    folders = [folder(tmp_path / "a", "ours"), folder(tmp_path / "b", "torch", dropout=0.3, minutes=23.0)]
    with pytest.raises(ValueError, match=r"the same conditions, got other \['minutes'\]"):
        multi30k.collect(folders)


@pytest.mark.parametrize("condition", multi30k.CONDITIONS)
def test_runs_in_other_conditions_are_refused(tmp_path, condition):
    folders = [folder(tmp_path / "a", "ours"), folder(tmp_path / "b", "torch")]
    (folders[1] / "scores.json").write_text(json.dumps(SCORES | {condition: "other"}))
    with pytest.raises(ValueError, match=rf"got other \['{condition}'\]"):
        multi30k.collect(folders)
    assert condition in multi30k.load_results()["runs"][0]


def test_tokenised_means_normalised_by_moses_and_in_small_letters():
    pytest.importorskip("sacremoses")
    assert multi30k.tokenised_bleu(["ein mann , der LACHT ."], ["Ein Mann, der lacht."]) == pytest.approx(100)
    assert multi30k.tokenised_bleu(["Ein „Hund“ rennt schnell."], ['Ein "Hund" rennt schnell.']) == pytest.approx(100)
    assert multi30k.tokenised_bleu(["Ein Mann, der lacht."], ["Ein Mann, der weint."]) < 90
