"""Exercises that say what is wrong.

`check("01.2", my_function)` runs a learner's function on seeded cases, compares it with an independent
reference, and explains a wrong answer by the known mistake that behaves in the same way. To add an
exercise to notebook 05, write a reference, its cases and its mistakes in a module `nb05.py` here, with
a tuple `EXERCISES`; it is found by its name.
"""

from .edits import listen
from .lookup import get, stub
from .model import Case, Endless, Exercise, Mistake
from .registry import all_exercises
from .runner import CheckFailed, Verdict, check, check_solution, examine, yours
from .variants import all_variants

__all__ = [
    "Case",
    "CheckFailed",
    "Endless",
    "Exercise",
    "Mistake",
    "Verdict",
    "all_exercises",
    "all_variants",
    "check",
    "check_solution",
    "examine",
    "get",
    "stub",
    "yours",
]

listen()
