"""Puts a wrapper around parts of a model for a while: to count how often each runs, or to spoil one."""

from __future__ import annotations

import functools
import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from .folder import FILE
from .library import Function, Parts
from .parts import PARTS

Wrap = Callable[[Function], Function]
_MISSING = object()


@contextmanager
def wrapped(parts: Parts, wraps: Mapping[str, Wrap]) -> Iterator[None]:
    """Replace each named part by what its wrap makes of it, also where the learner's file calls it by its name."""
    with ExitStack() as stack:
        for name, wrap in wraps.items():
            original = getattr(parts, name)
            function = _outermost(original, wrap(original))
            stack.enter_context(_bound(vars(parts), name, function))
            space = getattr(inspect.unwrap(original), "__globals__", {})
            if space.get("__name__") == Path(FILE).stem and space.get(name) is original:
                stack.enter_context(_bound(space, name, function))
        yield


@contextmanager
def _bound(space: dict[str, Any], name: str, value: object) -> Iterator[None]:
    before = space.get(name, _MISSING)
    space[name] = value
    try:
        yield
    finally:
        if before is _MISSING:
            del space[name]
        else:
            space[name] = before


def _outermost(original: Function, replacement: Function) -> Function:
    """Return the replacement, within which the original is called: a function may call itself."""
    inside = False

    @functools.wraps(original)
    def call(*args: Any, **options: Any) -> Any:
        nonlocal inside
        if inside:
            return original(*args, **options)
        inside = True
        try:
            return replacement(*args, **options)
        finally:
            inside = False

    return call


@contextmanager
def counted(parts: Parts) -> Iterator[Counter[str]]:
    """Count the calls of every part of the model inside a `with` block, by its name."""
    calls: Counter[str] = Counter()

    def counting(name: str) -> Wrap:
        def wrap(function: Function) -> Function:
            def count(*args: Any, **options: Any) -> Any:
                calls[name] += 1
                return function(*args, **options)

            return count

        return wrap

    with wrapped(parts, {part.name: counting(part.name) for part in PARTS if part.of_model}):
        yield calls
