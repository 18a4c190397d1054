"""Batches that wait for their longest sentence, and batches that are joined: steps counted (notebook 22)."""

from __future__ import annotations

from . import stored

load_results = stored.loader("rounds.json")
SENTENCES, DRAWN = "held-out sentences", "drawn lengths"
