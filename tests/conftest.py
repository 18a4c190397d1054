"""What every test here starts from."""

from __future__ import annotations

import re

import pytest


def pytest_addoption(parser):
    parser.addoption("--notebook", metavar="NN", help="only the tests that name this notebook or its exercises")


def pytest_collection_modifyitems(config, items):
    """Keep what has the notebook's number in its id, such as [03.2-unscaled] or [03_queries_keys_values]."""
    wanted = config.getoption("--notebook")
    if not wanted:
        return
    number = re.compile(rf"(?<![\w.]){re.escape(wanted)}(?=[._\]-])|nb{re.escape(wanted)}\b")
    kept = [item for item in items if number.search(item.nodeid.partition("::")[2])]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


@pytest.fixture(autouse=True)
def own_progress(tmp_path, monkeypatch):
    """A progress file and a folder `mine` of the test's own, not there yet; no outputs are made to be stored."""
    chosen = tmp_path / "learner" / "progress.json"
    monkeypatch.setenv("TRANSFORMER_COURSE_PROGRESS", str(chosen))
    monkeypatch.setenv("TRANSFORMER_COURSE_MINE", str(tmp_path / "learner" / "mine"))
    monkeypatch.delenv("TRANSFORMER_COURSE_STATIC", raising=False)
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    return chosen
