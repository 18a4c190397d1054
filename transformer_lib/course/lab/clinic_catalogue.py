"""What each instrument of the clinic finds in models with each fault, over several seeds (notebook 17).

`python -m studies.clinic_catalogue` measured what `load_results` reads.
"""

from __future__ import annotations

from pathlib import Path

from ..._files import DATA
from . import stored

RESULTS = DATA / "clinic.json"


def load_results(path: Path = RESULTS) -> dict:
    """Return what the command of this module wrote: command, date, seeds, found, recipes, one batch."""
    return stored.read(path)
