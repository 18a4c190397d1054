"""The trained translator in CTranslate2: does it say the same, and what do eight bits cost there? (notebook 22)"""

from __future__ import annotations

from . import stored

load_results = stored.loader("exported.json")
