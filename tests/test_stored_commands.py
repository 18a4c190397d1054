"""Every command that a file of the course names can be run: its module is where the command says."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.fast

ROOT = Path(__file__).parents[1]
NAMING = sorted(
    path
    for folder in ("data", "docs", "notebooks", "studies", "transformer_lib")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".json", ".md", ".ipynb", ".py", ".safetensors"} and "_build" not in path.parts
)


def commands(path: Path) -> set[str]:
    """Modules of the library that the file tells a reader to run; of `studies.NAME`, any study, the package."""
    found = re.findall(rb"python -m ((?:transformer_lib|studies)(?:\.[a-z]\w*)*+)(?!\.\{)", path.read_bytes())
    return {name.decode() for name in found}


@pytest.mark.parametrize("path", [*filter(commands, NAMING), ROOT / "README.md"], ids=lambda path: path.name)
def test_a_module_to_run_is_there(path):
    assert [name for name in commands(path) if name != "studies" and not runs(name)] == []


def runs(name: str) -> bool:
    """Whether `python -m NAME` does something: a module that asks whether it is the program, or a package with one."""
    spec = importlib.util.find_spec(name)
    if spec and spec.submodule_search_locations:
        return importlib.util.find_spec(f"{name}.__main__") is not None
    return bool(spec and spec.origin and 'if __name__ == "__main__":' in Path(spec.origin).read_text(encoding="utf-8"))


def test_results_name_the_command_that_made_them():
    stored = [*ROOT.glob("data/*.safetensors"), *ROOT.glob("data/context/*.safetensors")]
    assert len(stored) >= 2
    assert all(map(commands, stored))
