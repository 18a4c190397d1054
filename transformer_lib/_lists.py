"""Checks of lists of texts or of ids, which may come from a generator. They need no PyTorch."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast


def check_items(name: str, items: object, kind: str, *, ordered: bool = True) -> list[Any]:
    """Return what `items` holds as a list; a generator, which can be read only once, will do. See `iterate`."""
    return list(iterate(name, items, kind, ordered=ordered))


def iterate(name: str, items: object, kind: str, *, ordered: bool = True) -> Iterator[Any]:
    """Return an iterator over `items`, if these are several things of a kind.

    A text is not taken for the list of its letters, nor a dictionary for that of its keys. A set has no order, so that
    what belongs to its members could not be matched by position; `ordered` is False where that does not matter.
    """
    if not isinstance(items, (str, bytes, bytearray, Mapping, *((set, frozenset) if ordered else ()))):
        try:
            return iter(cast(Iterable[Any], items))
        except TypeError:
            pass  # refused below
    raise TypeError(f"{name} must be a list of {kind}, got {items!r}")


def check_texts(name: str, texts: object) -> list[str]:
    """Return `texts` as a list if these are strings; see `check_items`."""
    return list(iterate_texts(name, texts))


def iterate_texts(name: str, texts: object, *, ordered: bool = True) -> Iterator[str]:
    """Yield `texts` one by one if these are strings; see `iterate`."""
    for i, text in enumerate(iterate(name, texts, "strings", ordered=ordered)):
        if not isinstance(text, str):
            raise TypeError(f"{name} must be a list of strings, got {text!r} at index {i}")
        yield text


def check_rows(name: str, rows: object, *, fewest: int = 0) -> list[list[int]]:
    """Return `rows`, the ids of each sentence, as lists of ints, `fewest` or more; each may be a tensor, too."""
    checked = [_check_row(name, i, row) for i, row in enumerate(iterate(name, rows, "lists of ids"))]
    for i, row in enumerate(checked):
        if len(row) < fewest:
            ids = "an id" if fewest == 1 else f"at least {fewest} ids"
            raise ValueError(f"{name} must have {ids} in every sentence, got {row} in sentence {i}")
    return checked


def _check_row(name: str, i: int, row: object) -> list[int]:
    if type(row) is not list:
        row = list(iterate(f"{name}[{i}]", row.tolist() if hasattr(row, "tolist") else row, "ids"))
    kinds = set(map(type, row))
    if kinds <= {int}:
        return row
    try:
        if bool not in kinds:
            return [operator.index(each) for each in row]  # NumPy's integers, or tensors of a single one
    except TypeError:
        pass  # refused below
    raise TypeError(f"{name}[{i}] must hold integer ids, got {row}")
