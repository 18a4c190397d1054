"""What does a translator lose with weights in eight bits, or fewer? (notebook 22)

`python -m studies.eight_bits` measured what `load_results` reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..._files import DATA
from . import stored

RESULTS = DATA / "eight_bits.json"


def load_results(path: Path = RESULTS) -> dict[str, Any]:
    """Return what the command wrote: "bytes", and in "runs" the "splits" and "fewer" bits of each seed."""
    return stored.read(path)
