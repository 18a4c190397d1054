"""How many people one processor can translate for, and how long they wait (notebook 22).

`python -m studies.laptop` measured what `load_results` reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..._files import DATA
from . import stored

RESULTS = DATA / "laptop.json"


def load_results(path: Path = RESULTS) -> dict[str, Any]:
    """Return what `measure` found, with the command and the date."""
    return stored.read(path)
