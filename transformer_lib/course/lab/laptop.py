"""How many people one processor can translate for, and how long they wait (notebook 22)."""

from __future__ import annotations

from . import stored

load_results = stored.loader("laptop.json")
