"""The settings of a training run, and what it measured."""

from __future__ import annotations

import inspect
import math
import os
import textwrap
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, TypeVar

from .._paths import PATHS, PathName
from .._validate import check_choice, check_flag, check_fraction, check_int, check_positive
from .precision import PRECISIONS, Chosen, Precision
from .schedules import SCHEDULES, ScheduleName

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])
AnyOptions = TypeVar("AnyOptions", "TrainingOptions", "FineTuningOptions")


def option(default: Any, meaning: str, *, may_change: bool = False) -> Any:
    """Return a dataclass field with its meaning, which `help(train)` and `transformer-lib train --help` show.

    Args:
        may_change: whether a run may go on with another value: one that says how long it lasts, where it is kept or
            what is shown, or that changes rounding and dropout's draws alone.
    """
    return field(default=default, metadata={"help": meaning, "may_change": may_change})


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """The settings of `train`; each is described in `help(tl.train)`."""

    epochs: int | None = option(None, "passes over the batches; 1 if there is no time_limit either", may_change=True)
    time_limit: float | None = option(
        None,
        "seconds after which the run ends and is evaluated, counting evaluations and the earlier parts of a resumed "
        "run; the schedule then ends by the clock",
        may_change=True,
    )
    learning_rate: float = option(1e-3, "peak of the learning rate; with schedule 'paper' a factor")
    schedule: ScheduleName = option("cosine", "of the learning rate: 'cosine', 'paper' or 'constant', after a warm-up")
    warmup_steps: int = option(100, "steps until the learning rate reaches its peak")
    label_smoothing: float = option(0.1, "ε of the loss, in [0, 1)")
    clip_norm: float | None = option(1.0, "the gradient is clipped to this norm; None leaves it as it is")
    accumulate: int = option(
        1,
        "parts into which a batch is cut, one after the other: less memory, the same step, apart from dropout",
        may_change=True,
    )
    precision: Precision = option(
        "float32",
        "'bfloat16' computes the forward pass in 16 bits where autocast finds that safe; 'auto' does so where the "
        "device has units for it, and history.precision says what it chose",
    )
    path: PathName = option(
        "readable",
        "'fast' runs a faster implementation of a plain Transformer: same loss, different dropout",
        may_change=True,
    )
    checkpoint: str | os.PathLike[str] | None = option(
        None, "file to resume from if it exists, and to save to", may_change=True
    )
    checkpoint_every: int = option(100, "steps between checkpoints", may_change=True)
    progress: bool = option(True, "show a progress bar", may_change=True)

    def __post_init__(self) -> None:
        if self.epochs is not None:
            check_int("epochs", self.epochs)
        check_fraction("label_smoothing", self.label_smoothing)
        check_choice("path", self.path, PATHS)
        if self.time_limit is not None:
            check_positive("time_limit", self.time_limit)
        _check_run(self)

    @property
    def most_epochs(self) -> float:
        """How many epochs at most: one by default, or as many as the time allows."""
        if self.epochs is not None:
            return self.epochs
        return 1 if self.time_limit is None else math.inf


@dataclass(frozen=True, kw_only=True)
class FineTuningOptions:
    """The settings of `fine_tune`; each is described in `help(tl.fine_tune)`."""

    steps: int | None = option(None, "how many; by default those of one pass over the examples", may_change=True)
    learning_rate: float = option(1e-3, "peak of the learning rate; with schedule 'paper' a factor")
    schedule: ScheduleName = option("cosine", "of the learning rate: 'cosine', 'paper' or 'constant', after a warm-up")
    warmup_steps: int = option(5, "steps until the learning rate reaches its peak")
    clip_norm: float | None = option(1.0, "the gradient is clipped to this norm; None leaves it as it is")
    accumulate: int = option(
        1, "parts into which a batch is cut, one after the other: less memory, the same step", may_change=True
    )
    precision: Precision = option(
        "float32", "'bfloat16' computes the forward pass in 16 bits; 'auto' does so where the device has units for it"
    )
    checkpoint: str | os.PathLike[str] | None = option(
        None, "file to resume from if it exists, and to save to: what is trained, not what is frozen", may_change=True
    )
    checkpoint_every: int = option(100, "steps between checkpoints", may_change=True)
    progress: bool = option(True, "show a progress bar", may_change=True)

    def __post_init__(self) -> None:
        if self.steps is not None:
            check_int("steps", self.steps)
        _check_run(self)


Options = TrainingOptions | FineTuningOptions


def _check_run(options: Options) -> None:
    """Check what every run is told."""
    for name in ("checkpoint_every", "accumulate", "warmup_steps"):
        check_int(name, getattr(options, name))
    check_choice("precision", options.precision, PRECISIONS)
    check_choice("schedule", options.schedule, SCHEDULES)
    if math.isinf(check_positive("learning_rate", options.learning_rate)):
        raise ValueError(f"learning_rate must be finite, got {options.learning_rate}")
    if not isinstance(options.checkpoint, (str, os.PathLike, type(None))):
        raise TypeError(f"checkpoint must be a path, got {options.checkpoint!r}")
    if options.clip_norm is not None:
        check_positive("clip_norm", options.clip_norm)
    check_flag("progress", options.progress)


def may_change(kind: type[Options] = TrainingOptions) -> tuple[str, ...]:
    """Return the names of the options with which a run may go on otherwise than it began."""
    return tuple(entry.name for entry in fields(kind) if entry.metadata["may_change"])


def read_options(kind: type[AnyOptions], given: dict[str, Any]) -> AnyOptions:
    """Return the options that were given by name.

    Raises:
        TypeError, ValueError: one is unknown, has the wrong type, or is out of range.
    """
    names = [entry.name for entry in fields(kind)]
    if unknown := sorted(given.keys() - set(names)):
        raise TypeError(f"options must be among {', '.join(names)}, got {', '.join(unknown)}")
    return kind(**given)


def takes_options(kind: type[Options]) -> Callable[[AnyFunction], AnyFunction]:
    """Let a function that takes these as **options show each of them in its signature and docstring.

    The line "{options}" in the docstring is replaced by one line for each option, "{may_change}" by the names of those
    with which a run may go on otherwise than it began.
    """

    def described(function: AnyFunction) -> AnyFunction:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        named = [_parameter(entry) for entry in fields(kind)]
        function.__signature__ = signature.replace(parameters=[*own, *named])  # type: ignore[attr-defined]
        # Python removes the indentation of docstrings itself from 3.13 on; so it is the same in all versions.
        text = inspect.cleandoc(function.__doc__ or "")
        text = text.replace("{options}", "\n    ".join(map(_described, fields(kind))))
        function.__doc__ = text.replace("{may_change}", ", ".join(may_change(kind)))
        return function

    return described


def _described(entry: Field[Any]) -> str:
    return textwrap.fill(f"{entry.name}: {entry.metadata['help']}.", 108, subsequent_indent=" " * 8)


def _parameter(entry: Field[Any]) -> inspect.Parameter:
    default = inspect.Parameter.empty if entry.default is MISSING else entry.default
    return inspect.Parameter(entry.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=entry.type)


@dataclass
class History:
    """What a training run measured, one entry per step (and per epoch in `epochs`)."""

    steps: list[int] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)  # smoothed cross-entropy per target token, in nats
    rate: list[float] = field(default_factory=list)  # learning rate
    epochs: list[dict[str, float] | None] = field(default_factory=list)  # what `on_epoch` returned
    precision: Chosen = "float32"  # in which the forward pass was computed
    interrupted: bool = False  # by Ctrl-C, JupyterLab's stop button or SIGTERM, after the last of `steps`
    seconds: float = field(default=0.0, compare=False)  # spent in `train`, evaluations included; no two runs agree
