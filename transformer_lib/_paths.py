"""The two ways to compute the same numbers: the model's own code, or its arrangement for speed in `fast`."""

from __future__ import annotations

from typing import Literal, get_args

PathName = Literal["readable", "fast"]
PATHS: tuple[str, ...] = get_args(PathName)
