"""What the clinic's instruments say of faults that are not in its catalogue (notebook 17)."""

from __future__ import annotations

from . import stored

load_results = stored.loader("clinic_strangers.json")
