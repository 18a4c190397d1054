"""Which processor this is, as far as the system tells, and what its memory manager is told."""

from __future__ import annotations

import ctypes
import platform
from functools import lru_cache
from pathlib import Path

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h


def processor() -> str:
    """Return the processor's name."""
    named = [value for name, value in _told() if name == "model name"]
    return named[0] if named else platform.processor() or platform.machine()


@lru_cache(maxsize=1)
def made_by_intel() -> bool:
    """Return whether it is known to be one of Intel's."""
    makers = [value for name, value in _told() if name == "vendor_id"] or [platform.processor()]
    return "GenuineIntel" in makers[0]


def keep_freed_memory() -> None:
    """Have this process keep up to 1 GiB of the memory it frees for its next tensors; only with the GNU C library.

    That library otherwise gives memory back to the system after one training step and gets it anew in the next, page by
    page and filled with zeros.
    """
    if platform.libc_ver()[0] == "glibc":
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_THRESHOLD, 32 * 2**20)  # the largest value it takes: below, memory comes from one heap
        library.mallopt(_TRIM_THRESHOLD, 2**30)  # free bytes at the heap's end that it keeps


def _told() -> list[tuple[str, str]]:
    """Return what Linux says of its processors, as (name, value); elsewhere nothing."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    pairs = [line.partition(":") for line in lines]
    return [(name.strip(), value.strip()) for name, _, value in pairs]
