"""How does a translator bring the sense of a noun from its cue to the noun? Five trainings (notebook 10)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from transformer_lib.course.lab import carrying as lab
from transformer_lib.data.corpora import load_corpus
from transformer_lib.decoding.translator import Translator

from .engine import Steps, Study
from .translators import each_training, trained


def translator_of(seed: int, weights: Path | None = None) -> Translator:
    """Return the translator trained from this seed, read from the folder `weights` if it is there as seedN."""
    file = weights and weights / f"seed{seed}.safetensors"
    return Translator.load(file) if file and file.exists() else trained(load_corpus("context"), seed)


def steps(seeds: Sequence[int], weights: Path | None = None) -> Steps:
    """Measure the course's translator, and those of the seeds."""
    return each_training(lab.measure, seeds, lambda seed: translator_of(seed, weights))


STUDY = Study(
    "carrying",
    __doc__,
    steps,
    seeds=(1, 2, 3, 4),
    by_seed=True,
    options={
        "weights": {"type": Path, "default": None, "help": "a folder with trained translators, seed1.safetensors …"}
    },
    indent=1,
)


if __name__ == "__main__":
    STUDY.command()
