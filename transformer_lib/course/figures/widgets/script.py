"""What a page without a kernel needs where the settings of a panel are too many to be carried as pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Script:
    """A script of the reading site, of docs/web/panels, that works out what some controls of a panel do.

    Args:
        name: of the script. controls: names of the controls whose effect it works out; pictures are carried with the
            first value of each.
        data: what it needs; "texts" among it are parts of pictures, which are compressed with the pictures, and
            "longest" is a result about as long as they get, for which a page keeps room.
    """

    name: str
    controls: tuple[str, ...]
    data: Callable[[], Mapping[str, Any]]
