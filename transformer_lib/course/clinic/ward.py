"""The ward: one seed of every patient, trained once and stored, so that all readers examine the same numbers.

`studies.clinic_ward` writes the file.
"""

from __future__ import annotations

import copy
from functools import cache

import torch
from safetensors.torch import load_file
from torch import Tensor

from ..._files import DATA
from ...model.transformer import Transformer
from .faults import BY_NAME, FAULTS, HEALTHY
from .recipe import Log
from .task import CONFIG

WARD = DATA / "ward.safetensors"
NUMBERS = {(fault.name, 0): number for number, fault in enumerate((HEALTHY, *FAULTS)) if not fault.late}
NUMBERS[HEALTHY.name, 7] = len(FAULTS) + 1
"""Number of each model in the file, by the name of its fault and its seed."""


@cache
def _stored() -> dict[str, Tensor]:
    return load_file(WARD)


def load(name: str, seed: int = 0) -> tuple[Transformer, Log]:
    """Return the stored model with the named fault and the seed, in evaluation mode, and its log.

    Raises:
        FileNotFoundError: the ward is missing.
    """
    case = BY_NAME[name]
    if case.late:
        model, log = load(HEALTHY.name)
        case.change(model)
        return model, copy.deepcopy(log)
    with torch.random.fork_rng(devices=[]):
        model = Transformer(CONFIG)
    case.change(model)
    prefix = f"{NUMBERS[name, seed]}."
    own = {key.removeprefix(prefix): value for key, value in _stored().items() if key.startswith(prefix)}
    loss, accuracy = own.pop("log").tolist()
    model.load_state_dict(own)
    return model.eval(), Log(loss, accuracy)
