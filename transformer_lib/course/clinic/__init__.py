"""The bug clinic of notebook 17: small trained models with one fault each, instruments, and a judge.

>>> import transformer_lib as tl
>>> patient = tl.clinic.admit("A")
>>> verdict = tl.clinic.diagnose("A")
○ A: no diagnosis yet

`faults` holds every wrong line beside the right one; `studies.clinic_catalogue` measures all of them over several
seeds.
"""

from __future__ import annotations

from .diagnosis import CATALOGUE, SIGNS, Verdict, diagnose
from .instruments import INSTRUMENTS, changes, read
from .patients import LETTERS, Patient, admit
from .recipe import Log
from .task import held_out, words

__all__ = [
    "CATALOGUE",
    "INSTRUMENTS",
    "LETTERS",
    "SIGNS",
    "Log",
    "Patient",
    "Verdict",
    "admit",
    "changes",
    "diagnose",
    "held_out",
    "read",
    "words",
]
