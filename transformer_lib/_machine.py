"""Which processor this is, as far as the system says, and how this process keeps freed memory."""

from __future__ import annotations

import ctypes
import platform
from functools import lru_cache
from pathlib import Path

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h


def processor() -> str:
    """Return the processor's name."""
    named = [value for name, value in _cpu_facts() if name == "model name"]
    return named[0] if named else platform.processor() or platform.machine()


@lru_cache(maxsize=1)
def made_by_intel() -> bool:
    """Return whether it is known to be one of Intel's."""
    makers = [value for name, value in _cpu_facts() if name == "vendor_id"] or [platform.processor()]
    return "GenuineIntel" in makers[0]


def keep_freed_memory() -> None:
    """Have this process keep up to 1 GiB of freed memory for its next tensors, where the GNU C library provides it.

    That library otherwise gives memory back to the system after one training step and asks for it again in the next,
    page by page and filled with zeros. Overrides `MALLOC_MMAP_THRESHOLD_` and `MALLOC_TRIM_THRESHOLD_` of the
    environment.
    """
    if not uses_glibc():
        return
    library = ctypes.CDLL(None)
    # Smaller blocks come from the heap; every 64-bit version takes this value. The second setting alone would do harm:
    # it turns off the library's own adjustment of the first.
    if library.mallopt(_MMAP_THRESHOLD, 32 * 2**20):
        library.mallopt(_TRIM_THRESHOLD, 2**30)  # free bytes that may stay at the heap's end


def uses_glibc() -> bool:
    """Return whether the GNU C library is this process's own."""
    return platform.system() == "Linux" and platform.libc_ver()[0] == "glibc"


def _cpu_facts() -> list[tuple[str, str]]:
    """Return the entries of Linux's /proc/cpuinfo, as (name, value); elsewhere none."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    pairs = [line.partition(":") for line in lines]
    return [(name.strip(), value.strip()) for name, _, value in pairs]
