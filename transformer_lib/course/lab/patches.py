"""Can a Transformer read an image? Patches of handwritten digits as tokens, beside plain rivals (notebook 19)."""

from __future__ import annotations

from . import stored

load_results = stored.loader("patches.json")
EPOCHS = (15, 75)
VERSIONS = ("positions", "no positions", "positions, another order")
