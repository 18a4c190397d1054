"""What does a translator lose with weights in eight bits, or fewer? (notebook 22)

`load_results()["runs"]` has the "splits" and the "fewer" bits of each seed.
"""

from __future__ import annotations

from . import stored

load_results = stored.loader("eight_bits.json")
