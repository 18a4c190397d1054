"""How much dropout? The course's translator with none to a fifth, judged by the validation split (notebook 13)."""

from __future__ import annotations

from . import stored

load_results = stored.loader("dropout.json")
