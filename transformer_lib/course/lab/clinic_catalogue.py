"""What each instrument of the clinic finds in models with each fault, over several seeds (notebook 17).

`load_results()` returns what `python -m studies.clinic_catalogue` measured: found, recipes, one batch.
"""

from __future__ import annotations

from . import stored

load_results = stored.loader("clinic.json")
