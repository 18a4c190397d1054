"""The environment in which a notebook's kernel runs: the same for the tests and for the refresh."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

COURSE_KEY = "transformer_course"  # notebook metadata of our own: {"transformer_course": {"threads": 2}}


def tags(cell: Mapping[str, Any]) -> list[str]:
    return cell["metadata"].get("tags", [])


def has_gpu_cell(notebook: Mapping[str, Any]) -> bool:
    return any("gpu" in tags(cell) for cell in notebook["cells"])


def kernel_environment(notebook: Mapping[str, Any], *, hide_cuda: bool = True) -> dict[str, str]:
    """Return what must be fixed for any two runs to agree, on any machine.

    Threads decide the order of sums, the seed that of sets. The others keep out what belongs to one person:
    progress, a local copy of a corpus, grading, an accelerator.
    """
    threads = str(notebook["metadata"].get(COURSE_KEY, {}).get("threads", 1))
    environment = {
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "OMP_WAIT_POLICY": "passive",  # a thread that waits must not keep the core that another worker needs
        "PYTHONHASHSEED": "0",
        "TRANSFORMER_COURSE_STATIC": "1",
        "MULTI30K_DIR": "",
        "NBGRADER_EXECUTION": "",
    }
    if hide_cuda:
        environment["CUDA_VISIBLE_DEVICES"] = ""
    return environment
