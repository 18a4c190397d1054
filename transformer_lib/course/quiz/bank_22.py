"""The questions of notebook 22."""

from __future__ import annotations

from .model import Question

NOTEBOOK_22: tuple[Question, ...] = ()
