"""What can attention without weights point at, and what can it answer? Models of a ring of symbols (notebook 02).

`load_results()["found"]["similarity"]["3000"]["right"]` has a number for each seed.
"""

from __future__ import annotations

from . import stored

load_results = stored.loader("ring.json")
KINDS = {  # length of the first vectors, as a multiple of that of normal numbers
    "even": 0.2,  # every weight is 1/8, whatever the scores
    "long vectors": 1.0,  # the scores are X Xᵀ
    "similarity": 0.2,  # the same, and the vectors start a fifth as long
    "others only": 0.2,  # as "similarity", and no token may read itself
    "others only, long": 1.0,  # the same with long vectors
    "two matrices": 0.2,  # the scores are (X W_Q) (X W_K)ᵀ
}
