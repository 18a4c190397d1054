"""The course around the library: what the notebooks need, and what is made of them.

`notebooks` lists them. `exercises` holds each exercise with its check, `quiz` the questions, `progress` what a learner
has passed, `mine` what they have written; `figures` draws (`plotting` static pictures, `svg` and `widgets` interactive
ones); `clinic`, `claims` and `studies` hold what particular notebooks examine; `teaching` makes slides and assignments.
`reading` has the glossary and the references; its functions `glossary`, `cite` and `references` are those of
`tl.course`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from .notebooks import NOTEBOOKS

if TYPE_CHECKING:
    from .reading import cite, glossary, references

__all__ = ["NOTEBOOKS", "cite", "glossary", "references"]


def __getattr__(name: str) -> object:
    """Load the glossary and the references when they are first asked for."""
    if name in __all__:
        return getattr(importlib.import_module(".reading", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
