"""The engine of the studies, and the command of each: what it runs, what it does not run again, what it writes."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import pkgutil
import shutil
from datetime import date

import pytest
import torch

import studies
from read_once import CORPUS
from studies import engine
from studies.engine import Step, Study, at_once, rounded

MODULES = [importlib.import_module(f"studies.{found.name}") for found in pkgutil.iter_modules(studies.__path__)]
STUDIES = [module.STUDY for module in MODULES if hasattr(module, "STUDY")]
each_study = pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)


def written(path):
    return json.loads(path.read_text(encoding="utf-8"))


def run(study, path, *more):
    study.main([*more, "--results", str(path)])
    return written(path)


def in_any_order(content):
    """The same with records sorted: one file has those of a set-up that was added later at the end."""
    return content | {"runs": sorted(map(json.dumps, content["runs"]))} if "runs" in content else content


@pytest.fixture
def ran(monkeypatch) -> list:
    """The steps that are run, by where their results go; nothing is measured, and the corpus is read once."""
    found = []
    for module in MODULES:
        if hasattr(module, "load_corpus"):
            monkeypatch.setattr(module, "load_corpus", lambda name: CORPUS)

    def run_nothing(step):
        inspect.signature(step.measure).bind(*step.given)
        found.append(step.where)
        wanted_is_a_table = not step.where or not isinstance(step.where[-1], (int, str))
        return {"measured": 1.0} if wanted_is_a_table else 1.0

    monkeypatch.setattr(Step, "run", run_nothing)
    return found


@each_study
def test_the_command_runs_what_is_missing(study, ran, tmp_path, capsys):
    path, seven = tmp_path / "results.json", ["--seeds", "7"]
    content, first = run(study, path, *seven), list(ran)
    assert first and all(ran.count(where) == 1 for where in first)
    assert content["command"] == f"python -m studies.{study.name} --seeds 7"
    assert content["date"] == date.today().isoformat()
    assert content.get("seeds", [7]) == [7]
    assert run(study, path, *seven) == content and ran == first
    if study.by_seed:
        more = run(study, path, *seven, "11")
        added = ran[len(first) :]
        assert added and not [where for where in added if where in first]
        assert more == run(study, tmp_path / "at_once.json", *seven, "11"), "in the same order, too"
    else:
        with pytest.raises(SystemExit):
            run(study, path, *seven, "11")
        assert "has the seeds 7: give the same" in capsys.readouterr().err
        assert (ran, written(path)) == (first, content)


@each_study
def test_the_stored_file_is_complete(study, ran, tmp_path):
    """It has everything that its command measures today, made by that command with its seeds."""
    path = tmp_path / "results.json"
    shutil.copy(study.path, path)
    content = run(study, path)
    assert ran == []
    assert in_any_order(content | {"date": ""}) == in_any_order(written(study.path) | {"date": ""})
    assert len(path.read_bytes()) == len(study.path.read_bytes()), "not laid out as before"


def toy(*, by_seed: bool = True, **fields) -> Study:
    """A study with every kind of place; the square of each seed is measured."""

    def steps(seeds, power=2):
        total = yield Step("total", sum, seeds)
        for position, seed in enumerate(seeds):
            yield Step(("table", "inner", str(seed)), pow, seed, power)
            yield Step(("table", "list", position), pow, seed, power)
            record = yield Step(("runs", {"seed": seed, "rate": 0.1}), lambda: {"found": total})
            assert record == {"seed": seed, "rate": 0.1, "found": total}

    return Study("toy", "What is shown by --help.", steps, by_seed=by_seed, **fields)


def test_results_are_at_their_places(tmp_path):
    content = run(toy(constants={"limit": 5}), tmp_path / "toy.json", "--seeds", "3", "5")
    assert list(content) == ["command", "date", "seeds", "limit", "total", "table", "runs"]
    assert (content["seeds"], content["limit"], content["total"]) == ([3, 5], 5, 8)
    assert content["table"] == {"inner": {"3": 9, "5": 25}, "list": [9, 25]}
    assert content["runs"] == [{"seed": seed, "rate": 0.1, "found": 8} for seed in (3, 5)]


def test_a_stop_loses_no_finished_step(tmp_path):
    path, tried = tmp_path / "toy.json", []

    def steps(seeds):
        for seed in seeds:
            yield Step(("runs", {"seed": seed}), measure, seed)

    def measure(seed):
        tried.append(seed)
        if tried == [2, 3]:
            raise KeyboardInterrupt
        return {"found": 10 * seed}

    study = Study("toy", None, steps, by_seed=True)
    with pytest.raises(KeyboardInterrupt):
        run(study, path, "--seeds", "2", "3", "5")
    assert written(path)["runs"] == [{"seed": 2, "found": 20}]
    assert [one["found"] for one in run(study, path, "--seeds", "2", "3", "5")["runs"]] == [20, 30, 50]
    assert tried == [2, 3, 3, 5]


def test_records_come_into_the_order_of_the_steps_and_others_are_kept(tmp_path):
    path, names = tmp_path / "toy.json", ["b", "d"]

    def steps(seeds):
        for name in names:
            yield Step(("runs", {"name": name}), dict)

    study = Study("toy", None, steps)
    run(study, path)
    names[:] = ["a", "b", "c"]
    assert [one["name"] for one in run(study, path)["runs"]] == ["a", "b", "c", "d"]


def test_a_study_of_one_measurement(tmp_path):
    calls = []
    study = Study("toy", None, at_once(lambda seeds, rounds: calls.append(rounds) or {"sum": sum(seeds) * rounds}))
    study = dataclasses.replace(study, options={"rounds": {"type": int, "default": 2}})
    path = tmp_path / "toy.json"
    assert run(study, path, "--seeds", "3", "4")["sum"] == 14
    assert run(study, path, "--seeds", "3", "4", "--rounds", "5")["sum"] == 14 and calls == [2]


def test_seeds_of_the_file_come_first(tmp_path, capsys):
    path = tmp_path / "toy.json"
    run(toy(), path, "--seeds", "3", "5")
    for seeds in (["3"], ["5", "3"], ["7"]):
        with pytest.raises(SystemExit):
            run(toy(), path, "--seeds", *seeds)
        assert f"{path} has the seeds 3 5: begin with these, or name another file" in capsys.readouterr().err
    assert run(toy(), path, "--seeds", "3", "5", "7")["table"]["list"] == [9, 25, 49]


def test_single_results_are_measured_again_beside_the_stored_ones(tmp_path, capsys):
    path = tmp_path / "toy.json"
    run(toy(), path, "--seeds", "3", "5")
    before = path.read_bytes()
    capsys.readouterr()
    for words, places in {
        ("inner", "5"): ["table inner 5"],
        ("seed=5",): ["table list seed=5", "runs seed=5 rate=0.1"],
        ("runs", "0.1", "3"): ["runs seed=3 rate=0.1"],
        ("total",): ["total"],
    }.items():
        toy().main(["--results", str(path), "--again", *words])
        said = capsys.readouterr().out.splitlines()
        assert said[::3] == places
        now, stored = (line.partition(": ")[2].strip() for line in said[-2:])
        assert now in (stored, '{"found": 8}')
        assert path.read_bytes() == before
    toy().main(["--results", str(path), "--again"])
    assert capsys.readouterr().out.splitlines()[:3] == ["total", "table inner 3", "table list seed=3"]


def test_results_of_all_seeds_are_measured_again_for_fewer(tmp_path, capsys):
    def steps(seeds):
        yield Step("squares", lambda: [seed**2 for seed in seeds])

    study, path = Study("toy", None, steps, seeds=(2, 3)), tmp_path / "toy.json"
    run(study, path)
    capsys.readouterr()
    study.main(["--results", str(path), "--seeds", "3", "--again", "squares"])
    assert capsys.readouterr().out.splitlines() == ["squares", "  now:    [9]", "  stored: [4, 9]"]


@pytest.mark.parametrize(
    "more, said",
    [
        (["--again", "nothing"], "toy.json has no result with the words nothing: --again alone lists all"),
        (
            ["--again", "total", "--seeds", "3"],
            'seeds must not be given for toy: a word picks the seed, such as "seed=3"',
        ),
    ],
)
def test_what_cannot_be_measured_again(more, said, tmp_path, capsys):
    run(toy(), tmp_path / "toy.json", "--seeds", "3")
    with pytest.raises(SystemExit):
        toy().main(["--results", str(tmp_path / "toy.json"), *more])
    assert said in capsys.readouterr().err


def test_what_is_printed(tmp_path, capsys):
    path = tmp_path / "toy.json"
    run(toy(), path, "--seeds", "3")
    assert capsys.readouterr().out.splitlines() == [
        "total 3",
        "table inner 3 9",
        "table list 0 9",
        "runs {'seed': 3, 'rate': 0.1} {'seed': 3, 'rate': 0.1, 'found': 3}",
    ]
    run(toy(), path, "--seeds", "3")
    assert capsys.readouterr().out == ""


def test_pages_are_written_from_the_default_file_only(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(engine, "DATA", tmp_path)
    study = toy(write_pages=seen.append, says_seeds=False, indent=1)
    run(study, tmp_path / "other.json", "--seeds", "3")
    assert seen == []
    study.main(["--seeds", "3"])
    assert seen == [written(tmp_path / "toy.json")] and "seeds" not in seen[0]
    assert (tmp_path / "toy.json").read_text(encoding="utf-8").startswith('{\n "command"')


def test_help_says_what_the_study_is_about(capsys):
    with pytest.raises(SystemExit):
        toy(options={"weights": {"default": "w"}}).main(["--help"])
    said = capsys.readouterr().out
    assert "What is shown by --help." in said and "--seeds" in said and "--results" in said and "--weights" in said


def test_numbers_are_rounded_wherever_they_are():
    inside = {"list": [1 / 3, [2 / 3]], "tensor": torch.tensor([1 / 3, 2.0]), "number": 5}
    assert rounded(inside, 2) == {"list": [0.33, [0.67]], "tensor": [0.33, 2.0], "number": 5}
    assert rounded(1 / 3) == 0.3333
