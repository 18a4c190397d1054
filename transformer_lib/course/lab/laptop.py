"""How many people one processor can translate for, and how long they wait (notebook 22).

`load_results()` returns what `python -m studies.laptop` measured.
"""

from __future__ import annotations

from . import stored

load_results = stored.loader("laptop.json")
