"""Finds the published exercises: every module here named nb… holds a tuple `EXERCISES`."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from .model import Exercise


@cache
def all_exercises() -> tuple[Exercise, ...]:
    """Return every exercise of the course, in order of its id."""
    package = importlib.import_module(__package__)
    names = [found.name for found in pkgutil.iter_modules(package.__path__)]
    modules = [importlib.import_module(f"{__package__}.{name}") for name in names if name.startswith("nb")]
    found = [exercise for module in modules for exercise in module.EXERCISES]
    return tuple(sorted(found, key=lambda exercise: exercise.id))


def published(exercise_id: str) -> Exercise:
    """Return the exercise with this id, such as "01.2".

    Raises:
        ValueError: if there is none; the message lists the ids of that notebook.
    """
    known = {exercise.id: exercise for exercise in all_exercises()}
    if exercise_id not in known:
        near = [name for name in known if name[:2] == str(exercise_id)[:2]] or list(known)
        raise ValueError(f"exercise_id must be one of {', '.join(near)}, got {exercise_id!r}")
    return known[exercise_id]
