"""Rules by which a byte-level tokenizer splits a text into words before it joins their bytes.

A rule is one or more regular expressions. The first cuts the text, and each other one cuts every piece anew; what lies
between two matches is a piece, too, so that no character is lost.
"""

from __future__ import annotations

from collections.abc import Sequence

import regex

GPT2_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
SINGLE_DIGITS = r"\p{N}|\P{N}+"
LLAMA3_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
QWEN2_WORDS = LLAMA3_WORDS.replace(r"\p{N}{1,3}", r"\p{N}")

SPLITTING = {
    "gpt2": (GPT2_WORDS,),  # letters, digits, or other characters, each with the space before them
    "smollm": (SINGLE_DIGITS, GPT2_WORDS),  # digits one by one, then as GPT-2
    "llama3": (LLAMA3_WORDS,),  # at most three digits; line breaks stay together
    "qwen2": (QWEN2_WORDS,),  # as Llama 3, but digits one by one
}


class Splitter:
    """Splits texts into words by a rule.

    Args:
        rule: a name of SPLITTING, or regular expressions of the package `regex`, without groups that capture.

    Raises:
        TypeError, ValueError: the rule is unknown, or an expression is none.
    """

    def __init__(self, rule: str | Sequence[str]) -> None:
        if isinstance(rule, str) and rule not in SPLITTING:
            known = ", ".join(map(repr, SPLITTING))
            raise ValueError(f"splitting must be one of {known}, or a list of expressions, got {rule!r}")
        self.patterns = tuple(SPLITTING[rule] if isinstance(rule, str) else rule)
        self._compiled = [_compiled(pattern) for pattern in self.patterns]

    def split(self, text: str) -> list[str]:
        """Return the words of a text, in order; joined they are the text."""
        words = [text] if text else []
        for pattern in self._compiled:
            # a pattern in one group: `split` returns the text between its matches, and the matches
            words = [piece for word in words for piece in pattern.split(word) if piece]
        return words


def _compiled(pattern: str) -> regex.Pattern[str]:
    if not isinstance(pattern, str):
        raise TypeError(f"splitting must be a name or regular expressions, got {pattern!r}")
    try:
        groups, compiled = regex.compile(pattern).groups, regex.compile(f"({pattern})")
    except regex.error as error:
        raise ValueError(f"splitting must hold regular expressions, got {pattern!r}: {error}") from None
    if groups:
        raise ValueError(f"splitting must hold expressions without groups that capture, such as (?:…), got {pattern!r}")
    return compiled
