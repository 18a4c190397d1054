"""Finds the exercises: every module here named nb… holds a tuple `EXERCISES`, and `variants` a tuple `VARIANTS`."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import TYPE_CHECKING

from .model import Exercise, stub_text

if TYPE_CHECKING:
    from .variants import Variant


@cache
def all_exercises() -> tuple[Exercise, ...]:
    """Return every exercise of the course, in order of its id."""
    package = importlib.import_module(__package__)
    names = [found.name for found in pkgutil.iter_modules(package.__path__)]
    modules = [importlib.import_module(f"{__package__}.{name}") for name in names if name.startswith("nb")]
    found = [exercise for module in modules for exercise in module.EXERCISES]
    return tuple(sorted(found, key=lambda exercise: exercise.id))


@cache
def all_variants() -> dict[str, Variant]:
    """Return the variants, {id of the exercise that is changed: variant}."""
    module = importlib.import_module(f"{__package__}.variants")
    return {variant.exercise.original: variant for variant in module.VARIANTS}


def get(exercise_id: str) -> Exercise:
    """Return the exercise with this id, such as "01.2", or "01.2b" for its variant.

    Raises:
        ValueError: if there is none; the message lists the ids of that notebook.
    """
    known = {exercise.id: exercise for exercise in all_exercises()}
    if exercise_id not in known:
        for variant in all_variants().values() if str(exercise_id).endswith("b") else ():
            if variant.exercise.id == exercise_id:
                return variant.exercise
        near = [name for name in known if name[:2] == str(exercise_id)[:2]] or list(known)
        raise ValueError(f"exercise_id must be one of {', '.join(near)}, got {exercise_id!r}")
    return known[exercise_id]


def stub(exercise_id: str) -> str:
    """Return the source of an exercise's stub, to print or paste.

    Raises:
        ValueError: if there is no such exercise.
    """
    return stub_text(get(exercise_id))
