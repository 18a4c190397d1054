"""What five texts claim, checked: every claim with its verdict, what is right, and where a notebook shows it.

>>> import transformer_lib as tl
>>> tl.claims.get("C164").verdict
'false'
>>> tl.claims.show("C164")                                  # in a notebook: the row, with its links
>>> tl.claims.table(tl.claims.find("degrees", text=5))      # all rows that hold a word

The claims are data, in data/claims.json; the links are found in the notebooks, by the tags of their cells.
"""

from .model import COLOURS, KINDS, VERDICTS, Claim, Erratum, Ledger, load
from .search import counts, errata, find, get, shown_in, topics
from .view import Shown, plain, show, table, titles
from .where import Place, places

__all__ = [
    "COLOURS",
    "KINDS",
    "VERDICTS",
    "Claim",
    "Erratum",
    "Ledger",
    "Place",
    "Shown",
    "counts",
    "errata",
    "find",
    "get",
    "load",
    "places",
    "plain",
    "show",
    "shown_in",
    "table",
    "titles",
    "topics",
]
