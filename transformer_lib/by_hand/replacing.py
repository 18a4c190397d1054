"""Other functions in place of the package's own: a slip to study, or a backward pass that you wrote yourself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from . import blocks, model, parts, training

_MODULES: tuple[ModuleType, ...] = (parts, blocks, model, training)
# Nothing in these modules calls them, so that replacing them would change nothing: those with which one begins, and
# `softmax`, which `attention` has from `numpy_reference`.
_CALLED_BY_NONE = frozenset({"Sizes", "cosine_rate", "greedy", "new_parameters", "softmax", "train"})


@contextmanager
def replaced(**functions: Callable[..., Any]) -> Iterator[None]:
    """Compute with these functions inside the `with` block, wherever the package calls those of the same names.

    Args:
        functions: by the name of the function that each replaces, with its arguments and results.

    Raises:
        ValueError: the package calls no function of this name.

    >>> with replaced(relu_backward=lambda g_y, saved: g_y):  # lets everything through
    ...     parts.relu_backward(-1.0, (False,))
    -1.0
    """
    before: list[tuple[ModuleType, str, Any]] = []
    for name in functions:
        places = [(module, name, getattr(module, name)) for module in _MODULES if name in _OWN[module]]
        if not places:
            raise ValueError(f"functions must be named like those of by_hand, got {name!r}")
        if name in _CALLED_BY_NONE:
            raise ValueError(f"functions must be called by others of by_hand, and none of them calls {name!r}")
        before += places
    try:
        for module, name, _ in before:
            setattr(module, name, functions[name])
        yield
    finally:
        for module, name, function in before:
            setattr(module, name, function)


def _own_names(module: ModuleType) -> frozenset[str]:
    """Return how the package's functions and classes are named in a module, without what Python's library gives it."""
    own = {name for name, value in vars(module).items() if callable(value) and not name.startswith("_")}
    return frozenset(name for name in own if str(vars(module)[name].__module__).startswith(str(__package__)))


# Now, before anything has been replaced.
_OWN = {module: _own_names(module) for module in _MODULES}
