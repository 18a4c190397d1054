"""The course around the library: what the notebooks need, and what is made of them.

`notebooks` lists them. `exercises` holds each exercise with its check, `quiz` the questions, `progress` what a learner
has passed, `mine` what they have written; `figures` draws (`plotting` static pictures, `svg` and `widgets` interactive
ones); `clinic` and `lab` hold what particular notebooks examine; `teaching` makes slides and assignments.
`copies` makes the learner's own copy of the notebooks; its `bring_back` makes an exercise a stub again. `reading` has
the glossary and the references: `glossary`, `cite` and `references`; `rungs` has `ladder`, with which a notebook shows
what its part bought, and `ladder_model`; `again` measures a stored result once more. These seven functions are those of
`tl.course`; `tl.course.real` is the real language model of Part III, for whoever has fetched it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from .notebooks import NOTEBOOKS

if TYPE_CHECKING:
    from . import real
    from .copies import bring_back
    from .lab.stored import again
    from .reading import cite, glossary, references
    from .rungs import ladder, ladder_model

__all__ = ["NOTEBOOKS", "again", "bring_back", "cite", "glossary", "ladder", "ladder_model", "real", "references"]

_MODULES = {
    "again": ".lab.stored",
    "bring_back": ".copies",
    "cite": ".reading",
    "glossary": ".reading",
    "ladder": ".rungs",
    "ladder_model": ".rungs",
    "references": ".reading",
}


def __getattr__(name: str) -> object:
    """Load a function, or `real`, when it is first asked for."""
    if name == "real":
        return importlib.import_module(".real", __name__)
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
