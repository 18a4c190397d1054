"""The state of a training run in a file: weights, optimizer, average, history, and random numbers of every process."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

import torch
from torch import Tensor
from torch.optim.swa_utils import AveragedModel

from ..model.base import TranslationModel
from .checkpoint import load_weights, read_checkpoint, save_checkpoint
from .distributed import gather, rank
from .options import History

_ADAM = ("step", "exp_avg", "exp_avg_sq")


def write_run(
    path: str | os.PathLike[str],
    model: TranslationModel,
    optimizer: torch.optim.Optimizer,
    average: AveragedModel | None,
    history: History,
) -> None:
    """Write the run's state to `path`. Every process calls it; process 0 writes, for all have the same weights."""
    random = gather(_random_state(next(model.parameters()).device))
    if rank() > 0:
        return
    state = {_of_rank(name, number): value for number, own in enumerate(random) for name, value in own.items()}
    for name, parameter in model.named_parameters():
        state |= {f"{key}.{name}": value for key, value in optimizer.state[parameter].items()}
    if average is not None:
        state |= {f"average.{name}": value for name, value in _average_state(average).items()}
    extra = {"step": history.steps[-1] if history.steps else 0, "history": asdict(history)}
    save_checkpoint(path, model, state=state, extra=extra)


def read_run(
    path: str | os.PathLike[str],
    model: TranslationModel,
    optimizer: torch.optim.Optimizer,
    average: AveragedModel | None,
) -> History:
    """Put the state in `path` into model, optimizer and average, and return the history; a new one without a file.

    Raises:
        ValueError: the file is of another model, or no run's; or not every process sees the same file.
    """
    history = _read_own(path, model, optimizer, average) if Path(path).exists() else History()
    steps = gather(len(history.steps))  # also a barrier: nobody writes the file before all have read it
    if len(set(steps)) > 1:
        raise ValueError(f"checkpoint {path} must be the same file for every process, got the steps {steps} in it")
    return history


def _read_own(
    path: str | os.PathLike[str],
    model: TranslationModel,
    optimizer: torch.optim.Optimizer,
    average: AveragedModel | None,
) -> History:
    config, weights, state, extra = read_checkpoint(path)
    if config != model.config:
        raise ValueError(f"checkpoint {path} must be of this model, got config {config}")
    if "rng" not in state:
        raise ValueError(f"checkpoint {path} must be one that `train` wrote, got one without an optimizer")
    if (average is None) == ("average.n_averaged" in state):
        wanted, got = ("without", "one with") if average is None else ("with", "one without")
        raise ValueError(f"checkpoint {path} must be of a run {wanted} an average, got {got}")
    load_weights(model, weights, str(path))
    for name, parameter in model.named_parameters():
        if f"step.{name}" in state:  # absent for a frozen parameter
            optimizer.state[parameter] = {key: state[f"{key}.{name}"].to(parameter.device) for key in _ADAM}
    if average is not None:
        with torch.no_grad():
            for name, value in _average_state(average).items():
                value.copy_(state[f"average.{name}"])
    random = {name: state[key] for name in ("rng", "rng.cuda") if (key := _of_rank(name, rank())) in state}
    _set_random_state(random, next(model.parameters()).device)
    return History(**extra["history"])


def _of_rank(name: str, number: int) -> str:
    return f"{name}.{number}" if number else name


def _average_state(average: AveragedModel) -> dict[str, Tensor]:
    return {"n_averaged": average.n_averaged, **dict(average.module.named_parameters())}


def _random_state(device: torch.device) -> dict[str, Tensor]:
    """Return this process's random states: dropout draws from that of its device."""
    state = {"rng": torch.get_rng_state()}
    return state | {"rng.cuda": torch.cuda.get_rng_state(device)} if device.type == "cuda" else state


def _set_random_state(state: dict[str, Tensor], device: torch.device) -> None:
    """Go on with these random numbers. A process that the file does not know keeps its own."""
    if "rng" in state:
        torch.set_rng_state(state["rng"])
    if "rng.cuda" in state and device.type == "cuda":
        torch.cuda.set_rng_state(state["rng.cuda"], device)
