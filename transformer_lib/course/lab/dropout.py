"""How much dropout? The course's translator with none to a fifth, judged by the validation split (notebook 13).

`python -m studies.dropout` measured what `load_results` reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..._files import DATA
from . import stored

RESULTS = DATA / "dropout.json"


def load_results(path: Path = RESULTS) -> dict[str, Any]:
    """Return what the command of this module wrote: command, date, seeds, runs."""
    return stored.read(path)
