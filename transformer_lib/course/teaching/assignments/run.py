"""Executes one submission and writes what came out, whatever it does: `python run.py FILE`.

This is the only place where a student's code runs. It needs no nbgrader, no gradebook and no network, so it can
be put into a container of its own; `grading` calls it and reads the file afterwards.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode

MIME = "application/vnd.transformer-course.answers+json"  # the answers to hidden cases, as a cell shows them
# Checks raise; the grader's own progress stays out of it; hidden tests are told that this program runs them.
ENVIRONMENT = {
    "NBGRADER_EXECUTION": "autograde",
    "TRANSFORMER_COURSE_STATIC": "1",
    "TRANSFORMER_COURSE_GRADER": "apart",
}
FIRST_SECONDS = 300  # for the kernel and the first code cell: they load the libraries, slowly on a busy machine
PR_SET_CHILD_SUBREAPER = 36  # of linux/prctl.h
LONGEST = 20_000  # characters of a text that a cell prints or shows; what is between its ends is left out
TIMED_OUT = {
    "ename": "CellTimeout",
    "evalue": "the cell took too long and was interrupted",
    "traceback": ["CellTimeout: the cell took too long and was interrupted"],
}


def run(file: Path, *, cell_seconds: int, notebook_seconds: int) -> None:
    """Execute a notebook in its folder and write it back with outputs.

    A cell that runs too long is interrupted, and the next one is tried; when the kernel dies, or the time for the whole
    notebook is over, the remaining cells say that they were not run.
    """
    notebook = nbformat.read(file, as_version=4)
    file.unlink()  # its checks hold the seed of the hidden cases
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    end, why = _execute(notebook, file.parent, cell_seconds, time.monotonic() + notebook_seconds)
    for cell in notebook.cells[end:]:
        if cell.cell_type == "code":
            cell.outputs = [*cell.outputs, not_run(why)]
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=file.parent, delete=False) as written:
        nbformat.write(notebook, written)
    os.replace(written.name, file)  # whatever the submission has put there: a link would lead elsewhere


def not_run(why: str) -> NotebookNode:
    """Return the output of a cell that was not executed, or not to its end."""
    return nbformat.v4.new_output("error", ename="NotRun", evalue=why, traceback=[f"NotRun: {why}"])


def tidy(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Return the outputs of a cell, one for each stream, with texts of at most `LONGEST` characters.

    A line that was overwritten by a carriage return, as a progress bar's, is left out. (nbclient joins streams itself,
    but by a pattern that takes minutes for a line of a few hundred thousand characters.)
    """
    parts: dict[str, list[str]] = {}
    kept = []
    for output in outputs:
        if output.output_type == "stream":
            if output.name not in parts:
                kept.append(output)
            parts.setdefault(output.name, []).append(output.text)
        else:
            data = output.get("data", {})
            if "text/plain" in data:
                data["text/plain"] = shortened(data["text/plain"])
            kept.append(output)
    for output in kept:
        if output.output_type == "stream":
            lines = "".join(parts[output.name]).replace("\r\n", "\n").split("\n")
            output.text = shortened("\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines))
    return kept


def shortened(text: str) -> str:
    """Return the two ends of a text that is too long to be read; a shorter one as it is."""
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"


def show_error(cell: NotebookNode, cell_index: int, execute_reply: dict) -> None:
    """Add the error of a cell that was interrupted: nbclient only passes it on."""
    reply = execute_reply["content"]
    if reply["status"] == "error" and reply["ename"] not in [output.get("ename") for output in cell.outputs]:
        names = {name: reply[name] for name in ("ename", "evalue", "traceback")}
        cell.outputs.append(nbformat.v4.new_output("error", **names))


def _execute(notebook: NotebookNode, folder: Path, cell_seconds: int, deadline: float) -> tuple[int, str]:
    """Execute cell by cell; the first cell that did not come to its end, and why."""
    first = next((cell for cell in notebook.cells if cell.cell_type == "code"), None)

    def seconds_left(cell: NotebookNode) -> int:
        allowed = max(cell_seconds, FIRST_SECONDS) if cell is first else cell_seconds
        return max(1, min(allowed, int(deadline - time.monotonic())))

    client = NotebookClient(
        notebook,
        timeout_func=seconds_left,
        interrupt_on_timeout=True,
        error_on_timeout=TIMED_OUT,
        allow_errors=True,
        record_timing=False,
        shutdown_kernel="immediate",
        startup_timeout=FIRST_SECONDS,
        resources={"metadata": {"path": str(folder)}},
        on_cell_executed=show_error,
    )
    place = 0
    try:
        with client.setup_kernel(env=os.environ | ENVIRONMENT):
            for place, cell in enumerate(notebook.cells):
                if time.monotonic() > deadline:
                    return place, "the time for the whole notebook was over before this cell"
                client.execute_cell(cell, place)
                if cell.cell_type == "code":
                    cell.outputs = tidy(cell.outputs)
    except DeadKernelError:
        return place, "the kernel had died: a cell above ended the process, or used too much memory"
    except Exception as error:  # a kernel can answer with anything, and what it did before still counts
        return place, f"the notebook could not be executed to its end ({type(error).__name__})"
    return len(notebook.cells), ""


def adopt_orphans() -> None:
    """Become the parent of each process whose own has ended, whatever its session; Linux alone can do it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_children(seconds: float = 10.0) -> None:
    """End the children of this process, then those that it adopts by that, until there are none or the time is over."""
    deadline = time.monotonic() + seconds
    while (left := children()) and time.monotonic() < deadline:
        for child in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(child, os.WNOHANG)
        time.sleep(0.02)


def children() -> list[int]:
    """Return the children of this process, as Linux lists them in /proc; elsewhere none."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            parent = file.read_bytes().rpartition(b")")[2].split()[1]
            found += [int(file.parent.name)] if int(parent) == os.getpid() else []
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="python run.py", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--cell-seconds", type=int, default=120)
    parser.add_argument("--notebook-seconds", type=int, default=1200)
    given = parser.parse_args(arguments)
    adopt_orphans()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    try:
        run(given.file, cell_seconds=given.cell_seconds, notebook_seconds=given.notebook_seconds)
    finally:
        end_children()


if __name__ == "__main__":
    sys.exit(main())
