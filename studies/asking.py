"""Which words ask for which in a trained translator, and what the answer carries? Five translators (notebook 03)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from transformer_lib.course.lab import asking as lab
from transformer_lib.course.lab.sense_vectors import lexicon
from transformer_lib.decoding.translator import Translator

from .engine import Steps, Study, rounded
from .translators import each_training

Change = Callable[[Translator, lab.Frame, lab.Twins], AbstractContextManager]


def _from_twin(*roles: str, sense: str = "other") -> Change:
    """Return what gives the cue these roles of the cue in a sentence with the other sense, or with the same."""

    def change(translator: Translator, frame: lab.Frame, group: lab.Twins) -> AbstractContextManager:
        return lab.exchanged(translator, roles, lambda part: part[getattr(group, sense)], frame.cue)

    return change


CHANGES: dict[str, Change] = {
    "nothing": lambda translator, frame, group: nullcontext(),
    "value of a cue with the same sense": _from_twin("value", sense="same"),
    "key of the other cue": _from_twin("key"),
    "value of the other cue": _from_twin("value"),
    "key and value of the other cue": _from_twin("key", "value"),
}


def counts(translator: Translator) -> dict[str, dict[str, list[int]]]:
    """Return {what is changed: {noun: [translations with the right sense, with that of the twin, of how many]}}."""
    found: dict[str, dict[str, list[int]]] = {}
    for name, change in CHANGES.items():
        for word in lexicon():
            total = torch.zeros(3, dtype=torch.long)
            for frame in lab.FRAMES:
                group = lab.twins(word, frame)
                with change(translator, frame, group):
                    right = lab.right_and_turned(translator, word, group)
                total += torch.tensor([*right, len(group.texts)])
            found.setdefault(name, {})[word] = total.tolist()
    return found


def measure(translator: Translator) -> dict[str, Any]:
    """Return all that is stored about one translator."""
    with torch.no_grad():
        return {
            "weights": rounded(lab.mean_weights(translator)),
            "changed": counts(translator),
        }


def steps(seeds: Sequence[int]) -> Steps:
    """Measure the course's translator, and those of the seeds."""
    return each_training(measure, seeds)


STUDY = Study("asking", __doc__, steps, seeds=(1, 2, 3, 4), by_seed=True, indent=1)


if __name__ == "__main__":
    STUDY.command()
