"""Find what somebody means by a name that is written in another way, or nearly right."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

Found = TypeVar("Found")


def folded(name: str) -> str:
    """Return what all ways to write a name have in common: no capitals, accents, spaces, signs, no plural, no -ize.

    >>> folded("Layer-Norms"), folded("optimizer") == folded("Optimisers")
    ('layernorm', True)
    """
    plain = unicodedata.normalize("NFKD", name).casefold()
    plain = re.sub(r"i[sz](?=e|ing|ation)", "is", plain)  # -ise, -ize, -isation, -ization
    words = re.findall(r"[a-z0-9]+", "".join(sign for sign in plain if not unicodedata.combining(sign)))
    return "".join(_singular(word) for word in words)


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def find(argument: str, name: str, names: Mapping[str, Found], *, place: str) -> Found:
    """Return what a name stands for.

    Args:
        argument: what the caller calls the name, for the message.
        name: what was asked for, in any way that `folded` makes equal.
        names: every name, as one would type it, with what it stands for.
        place: where it was looked for, for the message.

    Raises:
        TypeError: if the name is not a string.
        ValueError: if there is nothing with this name; the message has the names nearest to it.
    """
    if not isinstance(name, str):
        raise TypeError(f"{argument} must be a string, got {name!r} of type {type(name).__name__}")
    for each, found in names.items():
        if folded(each) == folded(name):
            return found
    near = " or ".join(map(repr, nearest(name, names)))
    raise ValueError(f"{argument} must be in {place}, got {name!r}{near and f'; did you mean {near}?'}")


def nearest(name: str, names: Iterable[str], count: int = 3) -> list[str]:
    """Return the names most like this one: those that are spelt alike or contain it, at most `count`."""
    asked, spelt = folded(name), {folded(each): each for each in names}
    inside = [key for key in spelt if asked and asked in key]
    alike = get_close_matches(asked, spelt, n=count, cutoff=0.6)
    return [spelt[key] for key in dict.fromkeys([*alike, *sorted(inside, key=len)])][:count]
