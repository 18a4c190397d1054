"""The course around the library: what the notebooks need, and what is made of them.

`notebooks` lists them. `exercises` holds each exercise with its check, `quiz` the questions, `progress` what a learner
has passed, `mine` what they have written; `figures` draws (`plotting` static pictures, `svg` and `widgets` interactive
ones); `clinic`, `claims` and `studies` hold what particular notebooks examine; `teaching` makes slides and assignments.
`reading` has the glossary and the references; its functions `glossary`, `cite` and `references` are those of
`tl.course`, and so is `ladder` of `rungs`, with which a notebook shows what its part bought.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from .notebooks import NOTEBOOKS

if TYPE_CHECKING:
    from .reading import cite, glossary, references
    from .rungs import ladder

__all__ = ["NOTEBOOKS", "cite", "glossary", "ladder", "references"]

_MODULES = {"cite": ".reading", "glossary": ".reading", "ladder": ".rungs", "references": ".reading"}


def __getattr__(name: str) -> object:
    """Load the glossary, the references and the ladder when they are first asked for."""
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
