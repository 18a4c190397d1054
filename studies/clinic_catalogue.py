"""What each instrument of the clinic finds in models with each fault, over several seeds (notebook 17).

Three of the models are also trained by other recipes, and each learns 16 rows by heart.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F

from transformer_lib.course.clinic import instruments, patients, task
from transformer_lib.course.clinic import recipe as training
from transformer_lib.course.clinic.faults import BY_NAME, FAULTS, HEALTHY
from transformer_lib.decoding.sampling import greedy_decode

from .engine import Step, Steps, Study

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


def of_seeds(measure: Callable[..., dict[str, float]], name: str, seeds: Sequence[int]) -> dict[str, list[float]]:
    """Return {key: its numbers, one for each seed} of what `measure` returns for the named fault."""
    each = [measure(name, seed) for seed in seeds]
    return {key: [one[key] for one in each] for key in each[0]}


def by_recipe(recipe: str, name: str, seeds: Sequence[int]) -> list[float]:
    """Return the share of rows reversed for each seed, trained by one of RECIPES."""
    return [retrain(name, seed, **RECIPES[recipe]) for seed in seeds]


def steps(seeds: Sequence[int]) -> Steps:
    """Take every measurement, with other recipes and with few rows from the first three seeds only."""
    for name in NAMES:
        yield Step(("found", name), of_seeds, measure, name, seeds)
    for recipe, name in itertools.product(RECIPES, CHANGES):
        yield Step(("recipes", recipe, name), by_recipe, recipe, name, seeds[:3])
    for name in NAMES:
        yield Step(("one batch", name), of_seeds, overfit, name, seeds[:3])


STUDY = Study("clinic_catalogue", __doc__, steps, "clinic.json", seeds=SEEDS)


if __name__ == "__main__":
    STUDY.command()
