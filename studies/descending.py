"""How the studies of notebook 21 train: Adam, a new batch at each step, and somebody who may watch."""

from __future__ import annotations

"""Called with the number of steps done, from 0, and the model, before each step and after the last."""
