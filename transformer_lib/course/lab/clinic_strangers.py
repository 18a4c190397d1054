"""What the clinic's instruments say of faults that are not in its catalogue (notebook 17).

`python -m studies.clinic_strangers` measured what `load_results` reads.
"""

from __future__ import annotations

from pathlib import Path

from ..._files import DATA
from . import stored

RESULTS = DATA / "clinic_strangers.json"


def load_results(path: Path = RESULTS) -> dict:
    """Return what the command of this module wrote: command, date, seeds, found."""
    return stored.read(path)
