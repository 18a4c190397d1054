"""How a verdict looks in a notebook: a coloured edge beside its words; elsewhere, and in stored outputs, plain text."""

from __future__ import annotations

import os
from html import escape

from .. import progress

EDGES = {"✓": "success", "✗": "error", "○": "info"}


def html(text: str) -> str:
    """Return a verdict as HTML: an edge in its mark's colour, the first line in bold, the rest as it is laid out."""
    first, _, rest = text.partition("\n")
    edge = EDGES.get(text[:1], "info")
    look = f"border-left:4px solid var(--jp-{edge}-color1,#888);padding:2px 0 2px 10px;margin:2px 0"
    more = f"<pre>{escape(rest)}</pre>" if rest else ""
    return f'<div role="status" style="{look}"><b>{escape(first)}</b>{more}</div>'


def say(text: str) -> None:
    """Show a verdict: in colour in a notebook that somebody works in, else printed."""
    if progress.static() or os.environ.get("NBGRADER_EXECUTION") or not progress.in_kernel():
        print(text)
        return
    from IPython.display import display

    display({"text/html": html(text), "text/plain": text}, raw=True)
