"""The questions of notebook 21."""

from __future__ import annotations

from .model import Question

NOTEBOOK_21: tuple[Question, ...] = ()
