"""Can a Transformer read an image? Patches of handwritten digits as tokens, beside plain rivals (notebook 19).

`python -m studies.patches` measured what `load_results` reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..._files import DATA
from . import stored

RESULTS = DATA / "patches.json"
EPOCHS = (15, 75)
VERSIONS = ("positions", "no positions", "positions, another order")


def load_results(path: Path = RESULTS) -> dict[str, Any]:
    """Return what the command wrote: the rivals' shares for each seed, and a record for each set-up."""
    return stored.read(path)
