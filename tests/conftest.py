"""What every test here starts from."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def own_progress(tmp_path, monkeypatch):
    """A progress file and a folder `mine` of the test's own, not there yet; no outputs are made to be stored."""
    chosen = tmp_path / "learner" / "progress.json"
    monkeypatch.setenv("TRANSFORMER_COURSE_PROGRESS", str(chosen))
    monkeypatch.setenv("TRANSFORMER_COURSE_MINE", str(tmp_path / "learner" / "mine"))
    monkeypatch.delenv("TRANSFORMER_COURSE_STATIC", raising=False)
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    return chosen
