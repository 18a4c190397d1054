"""Execute notebooks top to bottom in fresh kernels and store them in one normal form.

    python tests/refresh.py [--check] [notebooks/04_….ipynb …]

Two runs give the same bytes, so a diff shows only what the author changed. With --check nothing is written:
the exit status says whether a refresh would change a file. A notebook that fails is left as it was.

A cell tagged `approx:…` keeps its stored outputs while all new ones are within that tolerance and the bytes of its
pictures are the same. To store new ones all the same, clear the cell's outputs first.
"""

from __future__ import annotations

import argparse
import copy
import difflib
import hashlib
import json
import os
import sys
import time
from pathlib import Path

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from approximate import Tolerance, settle_outputs, tolerance_of
from nbval_cells import CURRENT_ENV_KERNEL_NAME, NbvalKernelspecManager
from notebook_kernel import COURSE_KEY, kernel_environment, tags
from transformer_lib._streams import run_command

ROOT = Path(__file__).resolve().parents[1]
KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}
CELL_METADATA = ("tags", "jupyter", "slideshow", "nbgrader")
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
SECONDS_PER_CELL = 300  # as in pyproject.toml for the tests
DIFF_LINES = 40


class NotebookFailed(Exception):
    """A cell raised, or its tags cannot be read; the message names the notebook."""


def normalise(notebook: dict) -> NotebookNode:
    """Return a copy with constant metadata, unique cell ids, and no view of a widget that is gone."""
    notebook = json.loads(json.dumps(notebook))
    course = notebook["metadata"].get(COURSE_KEY)
    notebook["metadata"] = {"kernelspec": KERNELSPEC, "language_info": {"name": "python"}}
    if course:
        notebook["metadata"][COURSE_KEY] = course
    notebook["nbformat"], notebook["nbformat_minor"] = 4, 5
    seen: set[str] = set()
    for index, cell in enumerate(notebook["cells"]):
        cell["metadata"] = {key: cell["metadata"][key] for key in CELL_METADATA if cell["metadata"].get(key)}
        cell["id"] = _unique_id(cell, index, seen)
        for output in cell.get("outputs", []):
            _drop_widget_view(output)
    return nbformat.reads(json.dumps(notebook), as_version=4)


def _unique_id(cell: dict, index: int, seen: set[str]) -> str:
    """Keep the cell's id; where it is missing or taken, derive one from the content."""
    name = cell.get("id", "")
    while not name or name in seen:
        name = hashlib.sha256(f"{name}{index}{''.join(cell['source'])}".encode()).hexdigest()[:8]
    seen.add(name)
    return name


def _drop_widget_view(output: dict) -> None:
    """Leave the picture or text: a view names a model of the kernel that has ended, by a random id."""
    data = output.get("data", {})
    if len(data) > 1:
        data.pop(WIDGET_VIEW, None)


def to_text(notebook: dict) -> str:
    """Return the normal form as the text of a file: LF, indented by one, one newline at the end."""
    return nbformat.writes(normalise(notebook)).rstrip("\n") + "\n"


def execute(path: Path) -> str:
    """Run the notebook in a fresh kernel of this Python and return its new text."""
    stored = normalise(json.loads(path.read_text(encoding="utf-8")))
    tolerances = _tolerances(stored, path.name)
    notebook = copy.deepcopy(stored)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    running = 0

    def remember(cell: NotebookNode, cell_index: int) -> None:
        nonlocal running
        running = cell_index

    manager = AsyncKernelManager(kernel_name=CURRENT_ENV_KERNEL_NAME, kernel_spec_manager=NbvalKernelspecManager())
    client = NotebookClient(
        notebook,
        km=manager,
        resources={"metadata": {"path": str(path.parent)}},
        timeout=SECONDS_PER_CELL,
        record_timing=False,
        coalesce_streams=True,
        store_widget_state=False,
        on_cell_start=remember,
        extra_arguments=["--log-level=ERROR"],
    )
    try:
        client.execute(env=os.environ | kernel_environment(notebook), cleanup_kc=True)
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        raise NotebookFailed(f"{path.name}, cell {running} (counted from 0): {error}") from error
    new = normalise(notebook)
    for old_cell, cell, tolerance in zip(stored.cells, new.cells, tolerances, strict=True):
        if tolerance and cell.cell_type == "code":
            _keep_tolerated(old_cell, cell, tolerance)
    return to_text(new)


def _tolerances(notebook: NotebookNode, name: str) -> list[Tolerance | None]:
    """Return the tolerance of each cell; say which notebook has a tag that cannot be read."""
    try:
        return [tolerance_of(tags(cell)) for cell in notebook.cells]
    except ValueError as error:
        raise NotebookFailed(f"{name}: {error}") from error


def _keep_tolerated(old_cell: NotebookNode, cell: NotebookNode, tolerance: Tolerance) -> None:
    """Give the cell its stored outputs again if all that differs is tolerated."""
    settled, _ = settle_outputs(old_cell.outputs, cell.outputs, tolerance)
    if list(map(_uncounted, settled)) == list(map(_uncounted, old_cell.outputs)):
        cell.outputs = settled


def _uncounted(output: NotebookNode) -> dict:
    """Return the output without the execution count, which is the position of the cell."""
    return {key: value for key, value in output.items() if key != "execution_count"}


def write_atomically(path: Path, text: str) -> None:
    """Replace the file in one step, so that an interrupted run never leaves half a notebook."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8", newline="\n")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def difference(path: Path, old: str, new: str) -> str:
    """Return the first lines of a unified diff, long lines cut."""
    lines = difflib.unified_diff(
        old.splitlines(), new.splitlines(), f"{path.name} (stored)", f"{path.name} (new)", "", "", 1, ""
    )
    cut = [line if len(line) <= 160 else line[:160] + " …" for line in lines]
    more = [f"… and {len(cut) - DIFF_LINES} more lines"] if len(cut) > DIFF_LINES else []
    return "\n".join(cut[:DIFF_LINES] + more)


def refresh(path: Path, *, check: bool) -> bool:
    """Execute one notebook, store it unless only checking, and return whether it differs from the file."""
    started = time.perf_counter()
    new = execute(path)
    old = path.read_bytes().decode("utf-8")
    changed = new != old
    if changed and not check:
        write_atomically(path, new)
    verdict = "same" if not changed else "would change" if check else "changed"
    print(f"{time.perf_counter() - started:7.1f} s  {verdict:12}  {path.name}", flush=True)
    if changed and check:
        print(difference(path, old, new), flush=True)
    return changed


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Re-execute and normalise notebooks.")
    parser.add_argument("notebooks", nargs="*", type=Path, help="default: every notebook in notebooks/")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file would change")
    options = parser.parse_args(argv)
    paths = [path.resolve() for path in options.notebooks] or sorted((ROOT / "notebooks").glob("*.ipynb"))
    changed, failed = [], []
    for path in paths:
        try:
            if refresh(path, check=options.check):
                changed.append(path.name)
        except NotebookFailed as error:
            failed.append(path.name)
            print(f"  FAILED  {error}", file=sys.stderr, flush=True)
    print(f"{len(paths)} notebooks, {len(changed)} changed, {len(failed)} failed")
    return 1 if failed or (options.check and changed) else 0


if __name__ == "__main__":
    run_command(main)
