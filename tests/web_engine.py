"""The engine of docs/web asked from Python, in the Node that Playwright brings along."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent


def node() -> str:
    """Return the path of a Node; skip without one."""
    driver = pytest.importorskip("playwright._impl._driver", reason="Playwright is not installed")
    return driver.compute_driver_executable()[0]


def ask(file: Path | None, *questions: dict[str, Any]) -> list[Any]:
    """Return the engine's answers to questions such as {"kind": "texts", "texts": […]}, one each."""
    given = json.dumps({"file": file and str(file), "questions": questions})
    command = [node(), "--no-warnings", str(TESTS / "web" / "answer.mjs")]
    done = subprocess.run(command, input=given, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
