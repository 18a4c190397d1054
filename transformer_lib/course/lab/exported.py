"""The trained translator in CTranslate2: does it say the same, and what do eight bits cost there? (notebook 22)

`python -m studies.exported` measured what `load_results` reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..._files import DATA
from . import stored

RESULTS = DATA / "exported.json"


def load_results(path: Path = RESULTS) -> dict[str, Any]:
    """Return what `measure` found, with the command and the date."""
    return stored.read(path)
