"""What each instrument of the clinic finds in models with each fault, over several seeds (notebook 17)."""

from __future__ import annotations

from . import stored

load_results = stored.loader("clinic.json")
