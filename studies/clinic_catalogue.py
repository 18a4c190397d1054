"""What each instrument of the clinic finds in models with each fault, over several seeds (notebook 17).

`python -m studies.clinic_catalogue` trains a healthy model and one of each fault per seed, takes every measurement,
repeats three of them with other learning rates and heads, lets each learn 16 rows by heart, and writes
data/clinic.json.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F

from transformer_lib._streams import run_command
from transformer_lib.course.clinic import diagnosis, instruments, patients, task
from transformer_lib.course.clinic import recipe as training
from transformer_lib.course.clinic.faults import BY_NAME, FAULTS, HEALTHY
from transformer_lib.decoding.sampling import greedy_decode

from .engine import Study, at_once

SEEDS = (0, 1, 2, 3, 4)
NAMES = (HEALTHY.name, *(fault.name for fault in FAULTS))
CHANGES = ("healthy", "scores not scaled", "embeddings not scaled")
ONE_BATCH, ONE_BATCH_STEPS = 16, 150
RECIPES = {
    "as in the clinic": {},
    "a third of the rate, twice the steps": {"rate": task.LEARNING_RATE / 3, "steps": 400},
    "one head of width 32": {"n_heads": 1},
    "four heads of width 8": {"n_heads": 4},
}


def measure(name: str, seed: int) -> dict[str, float]:
    """Return every instrument's number for a model trained with the named fault."""
    patient = patients.Patient(name, *training.trained(name, seed), BY_NAME[name], seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)  # one of them is random where it should not be
        return {key: round(one.measure(patient), 4) for key, one in instruments.INSTRUMENTS.items()}


def overfit(name: str, seed: int, steps: int = ONE_BATCH_STEPS) -> dict[str, float]:
    """Train on the same few rows again and again; return the reported loss at the end and the share written right."""
    src, tgt = task.held_out(ONE_BATCH, seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        run = training.Training(BY_NAME[name], seed, training.Recipe(steps=steps))
        for _ in range(steps):
            run.step((src, tgt))
    written = greedy_decode(run.model.eval(), src, max_new_tokens=tgt.shape[1] - 1, use_cache=False)
    wide = F.pad(written, (0, tgt.shape[1] - written.shape[1]), value=task.PAD_ID)
    right = (wide == tgt).all(dim=1).double().mean().item()
    return {"loss": round(run.log.at_the_end()[0], 4), "right": right}


def retrain(
    name: str, seed: int, *, rate: float = task.LEARNING_RATE, steps: int = task.STEPS, n_heads: int = 2
) -> float:
    """Return the share of rows reversed by a model trained with another recipe."""
    recipe = training.Recipe(replace(task.CONFIG, n_heads=n_heads), rate, steps)
    return round(patients.Patient(name, *training.trained(name, seed, recipe), BY_NAME[name]).reverses(), 3)


def measured(seeds: Sequence[int]) -> dict:
    """Return what is stored: numbers by fault and instrument, and shares reversed by recipe and fault."""
    found = {}
    for name in NAMES:
        rows = [measure(name, seed) for seed in seeds]
        found[name] = {key: [row[key] for row in rows] for key in rows[0]}
    recipes = {
        recipe: {name: [retrain(name, seed, **changes) for seed in seeds[:3]] for name in CHANGES}
        for recipe, changes in RECIPES.items()
    }
    one_batch = {}
    for name in NAMES:
        rows = [overfit(name, seed) for seed in seeds[:3]]
        one_batch[name] = {key: [row[key] for row in rows] for key in rows[0]}
    return {"found": found, "recipes": recipes, "one batch": one_batch}


def detected(found: dict[str, dict[str, list[float]]], name: str, instrument: str) -> int:
    """Return in how many seeds of the fault `name` the instrument is abnormal."""
    return sum(map(instruments.INSTRUMENTS[instrument].abnormal, found[name][instrument]))


def higher_loss(found: dict[str, dict[str, list[float]]], name: str) -> bool:
    """Return whether the fault's last loss is above the healthy model's on every seed."""
    pairs = zip(found[name]["last loss"], found[HEALTHY.name]["last loss"], strict=True)
    return all(loss > healthy for loss, healthy in pairs)


def with_sign(found: dict[str, dict[str, list[float]]], name: str) -> list[str]:
    """Return the faults in which the sign of the fault `name` is seen on any seed; it should be that fault alone."""
    sign = diagnosis.SIGNS[name]
    return [other for other in found if any(map(sign.present, found[other][sign.instrument]))]


STUDY = Study("clinic_catalogue", __doc__, at_once(measured), "clinic.json", seeds=SEEDS)


if __name__ == "__main__":
    run_command(STUDY.main)
