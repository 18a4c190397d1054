"""The state of a training run in a file: weights, optimizer, average, history, and random numbers of every process."""

from __future__ import annotations

import os
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.optim.swa_utils import AveragedModel

from ..model.base import TranslationModel
from .checkpoint import load_weights, plain_name, read_checkpoint, save_checkpoint
from .distributed import gather, rank
from .finite import check_finite
from .options import History
from .same_run import DESCRIPTION, check_same_run

_ADAM = ("step", "exp_avg", "exp_avg_sq")


def write_run(
    path: str | os.PathLike[str],
    model: TranslationModel,
    optimizer: torch.optim.Optimizer,
    average: AveragedModel | None,
    history: History,
    description: dict[str, Any],
) -> None:
    """Write the run's state to `path`. Every process calls it; process 0 writes, for all have the same weights.

    Args:
        description: of the run, by `describe_run`.

    Raises:
        FloatingPointError: a number in it is not finite: the file there, if any, is better and stays.
        OSError: it cannot be written; the file there stays.
    """
    random = gather(random_state(next(model.parameters()).device))
    state = {_of_rank(name, number): value for number, own in enumerate(random) for name, value in own.items()}
    for name, parameter in model.named_parameters():
        state |= {f"{key}.{plain_name(name)}": value for key, value in optimizer.state[parameter].items()}
    if average is not None:
        state |= {f"average.{name}": value for name, value in _average_state(average).items()}
    step = history.steps[-1] if history.steps else 0
    check_finite({**dict(model.named_parameters()), **state}, f"step {step}: checkpoint {path} is not overwritten")
    if rank() > 0:
        return  # having raised where process 0 would, too
    extra = {"step": step, "history": asdict(history), DESCRIPTION: description}
    try:
        save_checkpoint(path, model, state=state, extra=extra)
    except OSError as error:
        problem = f"{error.strerror or error}; step {step} is not saved, and {path} is as it was"
        raise OSError(error.errno, problem) from error


def read_run(
    path: str | os.PathLike[str],
    model: TranslationModel,
    optimizer: torch.optim.Optimizer,
    average: AveragedModel | None,
    description: dict[str, Any],
) -> History:
    """Put the state in `path` into model, optimizer and average, and return the history; a new one without a file.

    Args:
        description: of the run that is to go on, by `describe_run`.

    Raises:
        ValueError: the file is of another model or another run, or no run's; or not every process sees the same file.
    """
    history = _read_own(path, model, optimizer, average, description) if Path(path).exists() else History()
    steps = gather(len(history.steps))  # also a barrier: nobody writes the file before all have read it
    if len(set(steps)) > 1:
        raise ValueError(f"checkpoint {path} must be the same file for every process, got the steps {steps} in it")
    return history


def _read_own(
    path: str | os.PathLike[str],
    model: TranslationModel,
    optimizer: torch.optim.Optimizer,
    average: AveragedModel | None,
    description: dict[str, Any],
) -> History:
    _, config, weights, state, extra = read_checkpoint(path)
    if config != model.config:
        raise ValueError(f"checkpoint {path} must be of this model, got config {config}")
    if "rng" not in state:
        raise ValueError(f"checkpoint {path} must be one that `train` wrote, got one without an optimizer")
    if (average is None) == ("average.n_averaged" in state):
        wanted, got = ("without", "one with") if average is None else ("with", "one without")
        raise ValueError(f"checkpoint {path} must be of a run {wanted} an average, got {got}")
    history = _history(extra["history"], path)
    check_same_run(str(path), extra.get(DESCRIPTION), description)
    load_weights(model, weights, str(path))
    for name, parameter in ((plain_name(name), parameter) for name, parameter in model.named_parameters()):
        if f"step.{name}" in state:  # absent for a frozen parameter
            optimizer.state[parameter] = {key: state[f"{key}.{name}"].to(parameter.device) for key in _ADAM}
    if average is not None:
        with torch.no_grad():
            for name, value in _average_state(average).items():
                value.copy_(state[f"average.{name}"])
    random = {name: state[key] for name in ("rng", "rng.cuda") if (key := _of_rank(name, rank())) in state}
    set_random_state(random, next(model.parameters()).device)
    return history


def _history(stored: dict[str, Any], path: str | os.PathLike[str]) -> History:
    known = {entry.name for entry in fields(History)}
    if not stored.keys() <= known:
        unknown = ", ".join(sorted(stored.keys() - known))
        raise ValueError(f"checkpoint {path} must be of this version, got a history with {unknown}")
    return History(**stored)


def _of_rank(name: str, number: int) -> str:
    return f"{name}.{number}" if number else name


def _average_state(average: AveragedModel) -> dict[str, Tensor]:
    weights = {plain_name(name): value for name, value in average.module.named_parameters()}
    return {"n_averaged": average.n_averaged, **weights}


def random_state(device: torch.device) -> dict[str, Tensor]:
    """Return this process's random states: dropout draws from that of its device."""
    state = {"rng": torch.get_rng_state()}
    return state | {"rng.cuda": torch.cuda.get_rng_state(device)} if device.type == "cuda" else state


def set_random_state(state: dict[str, Tensor], device: torch.device) -> None:
    """Go on with these random numbers. A process that the file does not know keeps its own."""
    if "rng" in state:
        torch.set_rng_state(state["rng"])
    if "rng.cuda" in state and device.type == "cuda":
        torch.cuda.set_rng_state(state["rng.cuda"], device)
