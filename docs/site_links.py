"""Links of notebooks as links of the site."""

from __future__ import annotations

import re

HREF = re.compile(r'href="((?:\d\d|A)_\w+)\.ipynb(?:#cell-id=([\w-]+))?"')


def linked_html(text: str) -> str:
    """Turn links to another notebook, or to a cell of it, into links to its page, or to the place there."""
    return HREF.sub(lambda found: f'href="{found[1]}.html' + (f'#cell-{found[2]}"' if found[2] else '"'), text)
