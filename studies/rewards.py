"""What does a reward teach? Notebook 19's writer, rewarded for grammatical German, and its rivals (notebook 25).

Each arm begins with the same writer of its seed. Reinforcement (GRPO, 128 texts a step) is measured after 20 to 150
steps. Two of its rivals are not trained: a lower temperature, or the first grammatical text of four. The third takes as
many steps, of ordinary training, on those of as many texts of its own that are grammatical.
"""

from __future__ import annotations

import copy
import functools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from transformer_lib.course.lab import one_stack
from transformer_lib.course.lab import rewards as lab
from transformer_lib.model import modern

from .engine import Step, Steps, Study, rounded

BUDGETS = (20, 40, 60, 90, 120, 150)
TESTED = 400  # texts that are measured
UNTRAINED = {"temperature 1": 1.0, "temperature 0.5": 0.5, "temperature 0.3": 0.3}
BEST_OF = 4
KEPT, KEPT_STEPS = "own good ones", 60
REINFORCED = {"KL 0": 0.0, "KL 0.05": 0.05}  # the weight of the KL term
ARMS = (*UNTRAINED, f"best of {BEST_OF}", KEPT, *REINFORCED)


@dataclass(frozen=True)
class Setup:
    """One run: a name of ARMS, and the seed of the writer and of what it draws."""

    arm: str
    seed: int


@functools.lru_cache(maxsize=1)
def writer(seed: int) -> modern.LanguageModel:
    """Return the writer that all arms of a seed begin with."""
    return lab.new_writer(seed)


def run_setup(setup: Setup) -> dict[str, Any]:
    """Return what is measured of one arm: by the number of steps, where it is trained."""
    start = writer(setup.seed)
    if setup.arm in UNTRAINED:
        return {"steps": {"0": measured(start, UNTRAINED[setup.arm])}}
    if setup.arm == f"best of {BEST_OF}":
        return {"steps": {"0": of_texts(best_of(start, BEST_OF))}}
    model, found = copy.deepcopy(start), {}
    if setup.arm == KEPT:
        lab.learn_from_own(model, KEPT_STEPS, setup.seed + 1)
        return {"steps": {str(KEPT_STEPS): measured(model)}}
    for step, _ in enumerate(lab.reinforce(model, BUDGETS[-1], setup.seed + 1, beta=REINFORCED[setup.arm]), start=1):
        if step in BUDGETS:
            found[str(step)] = measured(model)
    return {"steps": found}


def measured(model: modern.LanguageModel, temperature: float = 1.0) -> dict[str, Any]:
    """Return what is said of texts drawn at this temperature, and the perplexity of held-out sentences at it."""
    said = lab.texts(lab.write(model, TESTED, torch.Generator().manual_seed(99), temperature))
    return of_texts(said) | {"perplexity": rounded(perplexity(model, temperature), 2)}


@torch.no_grad()
def perplexity(model: modern.LanguageModel, temperature: float) -> float:
    """Return the perplexity of the held-out sentences, the logits divided by the temperature."""
    ids = one_stack.heldout()
    logits = model(ids[:, :-1]).mT / temperature  # [sentences, vocab_size, longest − 1]
    return math.exp(torch.nn.functional.cross_entropy(logits, ids[:, 1:], ignore_index=0).item())


def best_of(model: modern.LanguageModel, number: int) -> list[str]:
    """Return TESTED texts, each the first grammatical one of `number` drawn, or the first of all."""
    generator = torch.Generator().manual_seed(98)
    drawn = [lab.texts(lab.write(model, TESTED, generator)) for _ in range(number)]
    return [
        next((text for text in tried if lab.grammatical([text])[0]), tried[0]) for tried in zip(*drawn, strict=True)
    ]


def of_texts(said: list[str]) -> dict[str, Any]:
    """Return the shares of texts that are grammatical and distinct, their mean length, and the commonest one."""
    text, times = Counter(said).most_common(1)[0]
    shares = {"grammatical": sum(lab.grammatical(said)), "distinct": len(set(said)), "commonest": times}
    words = sum(len(one.split()) for one in said) / len(said)
    return {name: rounded(share / len(said)) for name, share in shares.items()} | {
        "words": rounded(words, 2),
        "text": text,
    }


def steps(seeds: Sequence[int]) -> Steps:
    """Measure every arm, one seed after the other."""
    for seed in seeds:
        for arm in ARMS:
            yield Step(("runs", Setup(arm, seed)), run_setup, Setup(arm, seed))


STUDY = Study(
    "rewards",
    __doc__,
    steps,
    by_seed=True,
    constants={"threads": 1, "texts": TESTED, "budgets": BUDGETS},
)


if __name__ == "__main__":
    STUDY.command()
