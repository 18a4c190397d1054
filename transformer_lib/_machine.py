"""Which processor this is, as far as the system tells."""

from __future__ import annotations

import platform
from functools import lru_cache
from pathlib import Path


def processor() -> str:
    """Return the processor's name."""
    named = [value for name, value in _told() if name == "model name"]
    return named[0] if named else platform.processor() or platform.machine()


@lru_cache(maxsize=1)
def made_by_intel() -> bool:
    """Return whether it is known to be one of Intel's."""
    makers = [value for name, value in _told() if name == "vendor_id"] or [platform.processor()]
    return "GenuineIntel" in makers[0]


def _told() -> list[tuple[str, str]]:
    """Return what Linux says of its processors, as (name, value); elsewhere nothing."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    pairs = [line.partition(":") for line in lines]
    return [(name.strip(), value.strip()) for name, _, value in pairs]
