"""How well can one guess the sense in an English sentence whose deciding word is blanked out? (the corpus's tests)"""

from __future__ import annotations

from ...data.corpora import Pair
from ...data.tokenizers import WordTokenizer

BLANK = "___"


def blanked(pair: Pair) -> tuple[str, ...]:
    """Return the English tokens with a blank for the deciding word."""
    tokens = WordTokenizer.tokenize(pair.src)
    place = tokens.index(pair.word) + pair.gap
    assert tokens[place] == pair.cue, f"{pair.cue} is not at {place}: {pair.src}"
    return (*tokens[:place], BLANK, *tokens[place + 1 :])
