"""What can attention without weights point at, and what can it answer? Models of a ring of symbols (notebook 02).

`python -m studies.ring` measured what `load_results` reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..._files import DATA
from . import stored

RESULTS = DATA / "ring.json"
KINDS = {  # length of the first vectors, as a multiple of that of normal numbers
    "even": 0.2,  # every weight is 1/8, whatever the scores
    "long vectors": 1.0,  # the scores are X Xᵀ
    "similarity": 0.2,  # likewise, and the vectors start a fifth as long
    "others only": 0.2,  # likewise, and no token may read itself
    "others only, long": 1.0,  # likewise, with long vectors
    "two matrices": 0.2,  # the scores are (X W_Q) (X W_K)ᵀ
}


def load_results(path: Path = RESULTS) -> dict[str, Any]:
    """Return what the command wrote; `["found"]["similarity"]["3000"]["right"]` has a number for each seed."""
    return stored.read(path)
