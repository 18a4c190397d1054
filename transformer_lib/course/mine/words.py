"""What is said where a sentence has words that a translator has never met."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from ...data.tokenizers import SPECIAL_TOKENS, WordTokenizer

_SHOWN = 8  # words, of those that are known


class UnknownWords(ValueError):
    """Raised for a text with words that a translator does not know. In a notebook its message is shown alone."""

    def _render_traceback_(self) -> list[str]:
        return str(self).splitlines()


def check_known(text: str, tokenizer: object) -> None:
    """Raise UnknownWords for a text with words that a tokenizer of whole words does not know."""
    if not isinstance(tokenizer, WordTokenizer):
        return
    known = tokenizer.words[len(SPECIAL_TOKENS) :]
    strange = [word for word in dict.fromkeys(tokenizer.tokenize(text)) if word not in set(known)]
    if strange:
        raise UnknownWords(_told(text, strange, [word for word in known if word.isalpha()]))


def _told(text: str, strange: Sequence[str], known: Sequence[str]) -> str:
    near = dict.fromkeys(close for word in strange for close in difflib.get_close_matches(word, known, cutoff=0.8))
    long = [word for word in known if len(word) > 3]
    others = long[:: max(1, len(long) // _SHOWN)]
    names = ", ".join(word if word in text else word.capitalize() for word in strange)
    lines = [
        f"This little translator has never met {names}, so it translates nothing of “{text.strip()}”",
        f"All it knows is {len(known)} words. Some of them: {', '.join(others[:_SHOWN])}.",
    ]
    return "\n".join([*lines, *([f"Did you mean one of these? {', '.join(near)}."] if near else [])])
