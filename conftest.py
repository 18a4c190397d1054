"""How pytest runs the notebooks. At the root, so that it also holds for `pytest notebooks/04_….ipynb`."""

from __future__ import annotations

import functools
import os
from collections import Counter
from unittest.mock import patch

import pytest

from approximate import tolerance_of
from nbval_cells import IPyNbCell, compare_within
from notebook_kernel import has_gpu_cell, kernel_environment, tags

# Before any test imports torch: several workers share the cores, and sums must not depend on their number.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@functools.cache
def cuda_available() -> bool:
    import torch

    return torch.cuda.is_available()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item):
    """Start the kernel in the course's environment; without CUDA, skip a `gpu` cell before it starts.

    A cell tagged `approx:…` is compared within that tolerance.
    """
    if not isinstance(item, IPyNbCell):
        return (yield)
    if "gpu" in tags(item.cell):
        if cuda_available():
            item.options["check"] = False  # the cell asserts; its stored output is that of a CPU
        else:
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))
    notebook = item.parent.nb
    hide_cuda = not (has_gpu_cell(notebook) and cuda_available())
    with patch.dict(os.environ, kernel_environment(notebook, hide_cuda=hide_cuda)):
        done = yield
    if tolerance := tolerance_of(tags(item.cell)):
        compare_within(item, tolerance)
    return done


def pytest_terminal_summary(terminalreporter):
    """Print the seconds each notebook took. Works under xdist: the controller has every worker's reports."""
    seconds, cells = Counter(), Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and ".ipynb::" in report.nodeid:
                name = report.nodeid.split("::")[0]
                seconds[name] += report.duration
                cells[name] += report.when == "call"
    if not seconds:
        return
    terminalreporter.section("seconds per notebook, slowest first")
    for name, spent in seconds.most_common():
        terminalreporter.write_line(f"{spent:7.1f} s  {cells[name]:3d} cells run  {name}")
    terminalreporter.write_line(f"{seconds.total():7.1f} s  {cells.total():3d} cells run  in all")
