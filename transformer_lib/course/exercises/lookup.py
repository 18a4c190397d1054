"""Finds an exercise or its variant by id: "01.2" is as it was published, "01.2b" has one thing changed."""

from __future__ import annotations

from .model import Exercise, stub_text
from .registry import published
from .variants import all_variants


def get(exercise_id: str) -> Exercise:
    """Return the exercise with this id, such as "01.2", or "01.2b" for its variant.

    Raises:
        ValueError: if there is none; the message lists the ids of that notebook.
    """
    if str(exercise_id).endswith("b"):
        for variant in all_variants().values():
            if variant.exercise.id == exercise_id:
                return variant.exercise
    return published(exercise_id)


def stub(exercise_id: str) -> str:
    """Return the source of an exercise's stub, to print or paste.

    Raises:
        ValueError: if there is no such exercise.
    """
    return stub_text(get(exercise_id))
