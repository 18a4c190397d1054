"""Formulas of a Markdown text as MathML: a browser shows them without a script, so without a network."""

from __future__ import annotations

import re

from latex2mathml.converter import convert

CODE = re.compile(r"(^```.*?^```|`[^`\n]+`|<code>.*?</code>|<pre>.*?</pre>)", flags=re.MULTILINE | re.DOTALL)
UNKNOWN = {r"\arg": r"\operatorname{arg}"}  # to latex2mathml
MARKDOWN = str.maketrans(
    {"|": "&#x7C;", "*": "&#x2A;", "_": "&#x5F;", "\n": " "}
)  # characters that Markdown would interpret
FORMULA = re.compile(
    r"\$\$(?P<block>.+?)\$\$|(?<![\\$\w])\$(?P<inline>[^\s$](?:[^$]*?[^\s$\\])?)\$(?!\d)", flags=re.DOTALL
)


def mathml(markdown: str) -> str:
    """Replace $…$ and $$…$$ in the text by <math> elements; code stays, and so does what is no TeX."""
    parts = CODE.split(markdown)
    return "".join(part if index % 2 else FORMULA.sub(_replace, part) for index, part in enumerate(parts))


def _replace(found: re.Match) -> str:
    tex, display = (found["block"], "block") if found["block"] else (found["inline"], "inline")
    for name, known in UNKNOWN.items():
        tex = re.sub(rf"{re.escape(name)}(?![a-zA-Z])", lambda _, known=known: known, tex)
    try:
        return convert(tex.strip(), display=display).translate(MARKDOWN)
    except Exception:  # a formula that only a browser's TeX knows stays as it was written
        return found[0]
