"""The questions of notebook 20."""

from __future__ import annotations

from .model import Question

NOTEBOOK_20: tuple[Question, ...] = ()
