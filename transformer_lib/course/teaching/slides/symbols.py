"""Letters with an index, which notebooks write as in code outside formulas, set as a reader expects: d_k with a low k.

Headings, quizzes and captions of figures have them, where a notebook shows no formula.
"""

from __future__ import annotations

import re

KEPT = re.compile(r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|<code>.*?</code>|<[^>]*>|\]\([^)]*\)", re.DOTALL)
"""What stays as it is: code, formulas, tags of HTML, and where a link leads."""
WRITTEN = re.compile(
    r"(?P<root>√?)(?<![\w\\.])(?P<letter>[^\W\d_])_(?P<index>[A-Za-z\d]|model|ff)(?![A-Za-z\d_])"
    r"|\b(?P<base>\d+)\^\((?P<power>[−-]?[\d/]+)\)"
    r"|(?<![\w\\.])(?P<name>(?:[A-Za-z]+\.)*[A-Za-z]\w*_\w*[A-Za-z\d])(?![A-Za-z\d_])"
)
"""A letter with its index, a number to a power, or a name of the library."""


def typeset(text: str) -> str:
    """Return Markdown or HTML with letters and their indices as symbols, powers raised, and names as code."""
    parts, end = [], 0
    for kept in KEPT.finditer(text):
        parts += [WRITTEN.sub(_symbol, text[end : kept.start()]), kept[0]]
        end = kept.end()
    return "".join([*parts, WRITTEN.sub(_symbol, text[end:])])


def _symbol(found: re.Match[str]) -> str:
    if found["name"]:
        return f"<code>{found['name']}</code>"
    if found["base"]:
        return f"{found['base']}<sup>{found['power']}</sup>"
    letter = f"<i>{found['letter']}</i><sub>{found['index']}</sub>"
    return f'√<span class="root">{letter}</span>' if found["root"] else letter
