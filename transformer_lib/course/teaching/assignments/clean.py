"""Takes out of a page everything that acts or loads: what remains is text, tables, formulas and stored pictures."""

from __future__ import annotations

import re

from bleach.css_sanitizer import CSSSanitizer
from bleach.sanitizer import Cleaner

TEXT = """
a abbr b blockquote br caption code col colgroup dd del details div dl dt em figcaption figure h1 h2 h3 h4 h5 h6 hr i
img ins kbd li mark ol p pre s samp small span strong sub summary sup table tbody td tfoot th thead tr u ul
"""
FORMULAS = """
math menclose mfenced mfrac mi mmultiscripts mn mo mover mpadded mphantom mroot mrow ms mspace msqrt mstyle msub msubsup
msup mtable mtd mtext mtr munder munderover
"""
ATTRIBUTES = """
align alt aria-current aria-hidden aria-label class colspan display fence form height id lspace mathvariant name open
role rowspan rspace scope separator start stretchy style title type width xmlns
"""
STYLES = """
background background-color border border-bottom border-collapse border-left border-radius border-right border-top color
font-family font-size font-style font-weight height line-height list-style-type margin max-width min-height opacity
padding padding-left text-align vertical-align white-space width
"""
PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp|svg\+xml)[;,]")  # no script runs in a picture
LINK = re.compile(r"#|https?://|mailto:")
UNSEEN = re.compile(r"<(script|style|template|title)\b.*?</\1\s*>", flags=re.IGNORECASE | re.DOTALL)


def without_scripts(html: str) -> str:
    """Return part of a page without scripts, event handlers, styles for the whole page, frames, forms and addresses
    that are loaded; what is no HTML is escaped, and what was left open is closed.

    Args:
        html: what stands in the body of a page, or a part of it.
    """
    cleaner = Cleaner(
        tags={*TEXT.split(), *FORMULAS.split()},
        attributes=_is_allowed,
        protocols={"http", "https", "mailto", "data"},
        strip=True,
        css_sanitizer=CSSSanitizer(
            allowed_css_properties=frozenset(STYLES.split()), allowed_svg_properties=frozenset()
        ),
    )
    return str(cleaner.clean(UNSEEN.sub("", html)))


def _is_allowed(tag: str, name: str, value: str) -> bool:
    if name == "src":
        return tag == "img" and PICTURE.match(value) is not None
    if name == "href":
        return tag == "a" and LINK.match(value) is not None
    if name == "style" and ("url(" in value.lower() or "\\" in value):  # an escape could spell it, too
        return False
    return name in ATTRIBUTES.split()
