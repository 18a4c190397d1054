"""What an assignment asks when a variant stands in the place of an exercise: another stub, and a sentence."""

from __future__ import annotations

import ast
import inspect

from ...cells import source_of
from ...exercises import get
from ...exercises.variants import Variant, all_variants


def variant_of(exercise_id: str) -> Variant:
    """Return the variant of an exercise.

    Raises:
        ValueError: if it has none.
    """
    known = all_variants()
    if exercise_id not in known:
        raise ValueError(f"variant must be of {', '.join(known)}, got {exercise_id!r}")
    return known[exercise_id]


def told(cell: dict, variant: Variant) -> dict:
    """Return the cell that states an exercise, with what is different this time."""
    original = get(variant.exercise.original)
    text = f"{source_of(cell)}\n\n**This time it is changed, as {variant.exercise.id}.** {variant.sentence}"
    if original.part:
        text += " (So it becomes no part of your own Transformer.)"
    return cell | {"source": text}


def stub_and_body(variant: Variant) -> tuple[str, str]:
    """Return the signature with the docstring, and the lines of the solution."""
    lines = inspect.getsource(variant.exercise.reference).splitlines()
    [function] = ast.parse("\n".join(lines)).body
    docstring, first, *_ = function.body
    return "\n".join(lines[: docstring.end_lineno]), "\n".join(lines[first.lineno - 1 :])
