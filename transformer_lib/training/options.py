"""What a training run is told, and what it measured."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field

from .._validate import check_choice, check_fraction, check_int

PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """Everything `train` can be told; see there."""

    epochs: int | None = None
    time_limit: float | None = None
    learning_rate: float = 1e-3
    schedule: str = "cosine"
    warmup_steps: int = 100
    label_smoothing: float = 0.1
    clip_norm: float | None = 1.0
    accumulate: int = 1
    precision: str = "float32"
    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_every: int = 100
    progress: bool = True

    def __post_init__(self) -> None:
        for name in ("checkpoint_every", "accumulate"):
            check_int(name, getattr(self, name))
        if self.epochs is not None:
            check_int("epochs", self.epochs)
        check_fraction("label_smoothing", self.label_smoothing)
        check_choice("precision", self.precision, PRECISIONS)
        for name in ("clip_norm", "time_limit"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be positive, got {value}")

    @property
    def last_epoch(self) -> float:
        """How many epochs at most: one by default, or as many as the time allows."""
        if self.epochs is not None:
            return self.epochs
        return 1 if self.time_limit is None else math.inf


@dataclass
class History:
    """What a training run measured, one entry per step (and per epoch in `epochs`)."""

    steps: list[int] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)  # smoothed cross-entropy per target token, in nats
    rate: list[float] = field(default_factory=list)  # learning rate
    epochs: list[dict[str, float]] = field(default_factory=list)  # what `on_epoch` returned
    interrupted: bool = False  # by the keyboard (JupyterLab's stop button)
    seconds: float = field(default=0.0, compare=False)  # spent in `train`, evaluations included; no two runs agree
