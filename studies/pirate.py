"""A real model learns to answer like a pirate: what leaks, and what cures it (notebook 25).

LoRA of rank 8 on every W_Q and W_V of SmolLM2-135M-Instruct, 40 steps of 4 examples: pirate's answers alone, or 30 % of
the model's own answers to other questions among them. Each run is measured at its end, the first kind also after 12
steps. The model is the one that `make real` fetches, or that in the folder --model, in the format of Hugging Face.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import transformer_lib as tl
from transformer_lib.course import real
from transformer_lib.course.lab import pirate as lab
from transformer_lib.data.byte_level import ByteLevelTokenizer
from transformer_lib.model import lora, modern
from transformer_lib.training.answers import answer_loss

from .engine import Step, Steps, Study, rounded

ARMS = ("pirate alone", "30 % ordinary")
FACT, REQUEST, HELD_OUT = 22, 14, 24  # tokens that an answer may have


@dataclass(frozen=True)
class Setup:
    """One run: a name of ARMS, and the seed of the examples, their order and the adapter."""

    arm: str
    seed: int


@lru_cache(maxsize=1)
def loaded(folder: str) -> tuple[modern.LanguageModel, ByteLevelTokenizer]:
    """Return the model and its tokenizer; an adapter is removed after each run."""
    path = Path(folder) if folder else real.folder()
    if path is None:
        raise ValueError(f"model must be a folder in the format of Hugging Face, got none. {real.WHAT_TO_DO}")
    model, tokenizer = tl.load_pretrained(path)
    return model.eval(), tokenizer


@lru_cache(maxsize=1)
def ordinary(folder: str) -> list[tuple[str, str]]:
    """Return the model's own answers to the ordinary questions, before it is taught."""
    return list(zip(lab.ORDINARY, lab.answers(*loaded(folder), lab.ORDINARY, HELD_OUT), strict=True))


def before(folder: str) -> dict[str, Any]:
    """Return what the model knows and how it talks before it is taught."""
    return knows(*loaded(folder))


def run_setup(setup: Setup, folder: str) -> dict[str, Any]:
    """Teach the model and return what is measured of it; it is then as it was."""
    pairs, held = lab.pirate_pairs(setup.seed)
    others = ordinary(folder) if setup.arm != ARMS[0] else []  # asked before there is an adapter
    model, tokenizer = loaded(folder)
    train, mixed, tested = (lab.examples(tokenizer, some) for some in (pairs, others, held[:8]))
    found: dict[str, Any] = {"steps": {}}

    def measure(step: int) -> None:
        if step == lab.STEPS or (step == lab.EARLY and not mixed):
            said = lab.answers(model, tokenizer, [question for question, _ in held], HELD_OUT)
            exact = sum(one == wanted for one, (_, wanted) in zip(said, held, strict=True))
            loss = rounded(answer_loss(model, tested, pad_id=lab.PAD_ID))
            found["steps"][str(step)] = {"loss": loss, "exact": exact} | knows(model, tokenizer)

    try:
        lab.wear_adapter(model, setup.seed)
        found["loss before"] = rounded(answer_loss(model, tested, pad_id=lab.PAD_ID))
        lab.teach(model, train, mixed, seed=setup.seed, on_step=measure)
        return found
    finally:
        lora.remove(model)


def knows(model: modern.LanguageModel, tokenizer: ByteLevelTokenizer) -> dict[str, Any]:
    """Return how many facts are right, and how many answers of each kind are a pirate's."""
    facts, requests = (
        lab.answers(model, tokenizer, list(lab.FACTS), FACT),
        lab.answers(model, tokenizer, lab.REQUESTS, REQUEST),
    )
    who = [lab.is_pirate(one) for question, one in zip(lab.FACTS, facts, strict=True) if question.startswith("Who")]
    return {
        "facts right": sum(right in one for right, one in zip(lab.FACTS.values(), facts, strict=True)),
        "pirate, who": sum(who),
        "pirate, other facts": sum(map(lab.is_pirate, facts)) - sum(who),
        "pirate, requests": sum(map(lab.is_pirate, requests)),
        "said": [facts[0], facts[7], facts[10], requests[0], requests[5]],
    }


def steps(seeds: Sequence[int], model: str) -> Steps:
    """Ask before anything is taught; then teach every arm."""
    yield Step("before", before, model)
    for seed in seeds:
        for arm in ARMS:
            yield Step(("runs", Setup(arm, seed)), run_setup, Setup(arm, seed), model)


STUDY = Study(
    "pirate",
    __doc__,
    steps,
    by_seed=True,
    constants={"threads": 1, "steps": lab.STEPS, "batch size": lab.BATCH_SIZE, "rate": lab.RATE, "rank": lab.RANK},
    options={"model": {"default": "", "metavar": "FOLDER", "help": "of the model, in the format of Hugging Face"}},
)


if __name__ == "__main__":
    STUDY.command()
