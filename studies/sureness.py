"""How sure is a translator of its words while it learns 256 sentences by heart? (notebook 13)

The runs are those of the study `overfitting` on its smallest set.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from transformer_lib.course.lab import translators
from transformer_lib.course.lab.sureness import LOOKS, PAIRS, STEPS, answers
from transformer_lib.data.corpora import Corpus, load_corpus

from .engine import Step, Steps, Study
from .overfitting import chosen

MEASURED = ("right", "right, p", "wrong, p", "right, loss", "wrong, loss", "loss")


def run(corpus: Corpus, seed: int, *, pairs: int = PAIRS, looks: Sequence[int] = LOOKS) -> dict[str, Any]:
    """Train on a few pairs and return, for each look at the validation split, the means of MEASURED.

    "right" is the share of right words; p is the probability of the model's own word where it is right or wrong.
    "always wrong, p" is p at the labels that are wrong at every look from the second on, the same ones at each look.
    """
    some = chosen(corpus, pairs, seed)
    translator, validation = translators.new_translator(corpus["train"], seed=seed), corpus["validation"][::4]
    curve: dict[str, list[float]] = {name: [] for name in MEASURED}
    certain: list[tuple[Tensor, Tensor]] = []  # at each look: which are right, and p

    def look(step: int, _loss: float) -> None:
        if step in looks:
            right, sure, loss = answers(translator, validation)
            found = (right.float(), sure[right], sure[~right], loss[right], loss[~right], loss)
            for name, values in zip(MEASURED, found, strict=True):
                curve[name].append(round(values.mean().item(), 4))
            certain.append((right, sure))
        if step == looks[-1]:
            raise KeyboardInterrupt  # `train` ends and keeps the model

    epochs = -(-STEPS // -(-pairs // translators.BATCH_SIZE))
    recipe = {"warmup_steps": 100, "label_smoothing": 0.0, "progress": False}
    translators.train_translator(translator, some, seed=seed, epochs=epochs, on_step=look, **recipe)
    always = ~torch.stack([right for right, _ in certain[1:]]).any(dim=0)
    curve["always wrong, p"] = [round(sure[always].mean().item(), 4) for _, sure in certain]
    return curve


def steps(seeds: Sequence[int]) -> Steps:
    """Train with each seed."""
    corpus = load_corpus("context")
    for seed in seeds:
        yield Step(("runs", {"seed": seed}), run, corpus, seed)


STUDY = Study("sureness", __doc__, steps, by_seed=True, constants={"threads": 1, "pairs": PAIRS, "steps": list(LOOKS)})


if __name__ == "__main__":
    STUDY.command()
