"""Whether a call of `train` goes on with the run that a checkpoint holds, or would begin another one.

A run is described by what its result depends on: the options, the model, what is averaged, and the data in their order.
"""

from __future__ import annotations

import hashlib
import json
import random
import warnings
from collections.abc import Mapping
from dataclasses import MISSING, fields
from types import BuiltinFunctionType, FunctionType
from typing import Any

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

from ..data.batches import Batches
from ..fast.eligibility import plain_attributes
from .checkpoint import kind_of, plain_name
from .epochs import epoch_of
from .options import Options, TrainingOptions

DESCRIPTION = "run"  # of a run, in the JSON data of its checkpoint
_UNKNOWN = "nothing (this version has no such option)"
_PLANS = ("batch_size", "max_tokens", "seed")  # attributes of `Batches`: they say more than a digest that differs


def describe_run(
    model: nn.Module,
    batches: Batches,
    options: Options,
    average: AveragedModel | None = None,
) -> dict[str, Any]:
    """Return, as JSON data, what has to stay the same when a run goes on."""
    kept = {entry.name: getattr(options, entry.name) for entry in fields(options) if not entry.metadata["may_change"]}
    description = {
        "options": kept,
        "model": {
            "kind": kind_of(model),
            "frozen": [plain_name(name) for name, weight in model.named_parameters() if not weight.requires_grad],
            **{f"{plain_name(name)}.dtype": str(weight.dtype) for name, weight in model.named_parameters()},
            **_settings(model),
        },
        "average": None if average is None else _averaging(average),
        "batches": {**{name: getattr(batches, name, None) for name in _PLANS}, **_fingerprint(batches)},
    }
    stored: dict[str, Any] = as_json("batches", description)
    return stored


def as_json(name: str, value: Any) -> Any:
    """Return a value as it will be read from a file: tuples are lists, and numbers of torch and NumPy Python's.

    Raises:
        TypeError: it holds something that JSON does not have.
    """
    try:
        return json.loads(json.dumps(value, default=lambda number: number.item()))
    except (TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise TypeError(f"{name} must be JSON data, got {value!r}") from error


def check_same_run(source: str, stored: Mapping[str, Any] | None, wanted: Mapping[str, Any]) -> None:
    """Raise ValueError unless the run stored in `source` is the one wanted, naming the first difference.

    An option that `stored` lacks, being of an earlier version, counts as given with its default. A checkpoint from
    before descriptions were stored (version 1.0) cannot be compared, and a warning says so. Asked for the precision
    "auto", a run goes on in the one that it began with. (Code is not compared: a hook, or a method of a subclass.)
    """
    if stored is None:
        warnings.warn(f"checkpoint {source} does not hold the options and data of its run to compare", stacklevel=2)
        return
    if wanted["options"]["precision"] == "auto":
        wanted = {**wanted, "options": {**wanted["options"], "precision": stored["options"]["precision"]}}
    for part in ("options", "model", "batches"):
        defaults = option_defaults() if part == "options" else wanted[part]  # of what an earlier version did not store
        difference = first_difference(stored[part], wanted[part], defaults)
        if difference is not None:
            name, old, new = difference
            what = f"{name if part == 'options' else f'{part}.{name}'} = {old!r}, got {new!r}"
            raise ValueError(f"checkpoint {source} was begun with {what}; give the same, or another checkpoint")
    if stored["average"] != wanted["average"]:
        raise ValueError(f"checkpoint {source} was begun with an average of another rule; give the same rule")


def first_difference(
    stored: Mapping[str, Any], wanted: Mapping[str, Any], defaults: Mapping[str, Any]
) -> tuple[str, Any, Any] | None:
    """Return (name, stored value, wanted value) of the first entry in which they differ, or None.

    Args:
        defaults: of entries that `stored` may lack, as it was written before they existed.
    """
    for name in [*wanted, *sorted(stored.keys() - wanted.keys())]:
        old = stored.get(name, defaults.get(name))
        new = wanted.get(name, _UNKNOWN)
        if old != new:
            return name, old, new
    return None


def option_defaults() -> dict[str, Any]:
    """Return the default of every option of `train`."""
    return {entry.name: entry.default for entry in fields(TrainingOptions) if entry.default is not MISSING}


def _fingerprint(batches: Batches) -> dict[str, Any]:
    """Return the counts and the SHA-256 of the first epoch: of every id, and of the order of rows and batches."""
    digest, sentences, state = hashlib.sha256(), 0, random.getstate()
    with torch.random.fork_rng(devices=[]):  # a loader that draws from them must not change the run
        for pair in epoch_of(batches, 0):
            for ids in pair:
                digest.update(f"{tuple(ids.shape)}".encode())
                digest.update(ids.contiguous().cpu().numpy().data)
            sentences += len(pair[0])
    random.setstate(state)
    return {"per_epoch": len(batches), "sentences": sentences, "sha256": digest.hexdigest()}


def _settings(model: nn.Module) -> dict[str, Any]:
    """Return what each part was made with: numbers, texts and flags, and the names of functions."""
    all_settings: dict[str, Any] = {}
    for path, part in model.named_modules():
        if hasattr(part, "_orig_mod"):
            continue  # compiled: what was compiled comes next
        settings: dict[str, Any] = dict(plain_attributes(part))
        for name, value in vars(part).items():
            if not name.startswith("_") and isinstance(value, FunctionType | BuiltinFunctionType):
                settings[name] = value.__name__
        all_settings |= {plain_name(f"{path}.{name}").lstrip("."): value for name, value in settings.items()}
    return all_settings


def _averaging(average: AveragedModel) -> list[float]:
    """Return what the average's rule makes of a 1 that follows zeros, after several numbers of updates.

    A rule is a function and cannot be compared; what it computes can.
    """
    count = len(list(average.module.parameters()))  # a rule may treat each in its own way
    zero, one = (nn.ParameterList(torch.tensor([x], dtype=torch.float64) for _ in range(count)) for x in (0.0, 1.0))
    averages = []
    for updates in (1, 10, 100, 1000, 10000):
        probe = AveragedModel(zero, avg_fn=average.avg_fn, multi_avg_fn=average.multi_avg_fn)
        probe.n_averaged.fill_(updates)
        probe.update_parameters(one)
        averages += [parameter.item() for parameter in probe.parameters()]
    return averages
