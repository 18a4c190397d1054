"""A real model learns to answer like a pirate: what leaks, and what cures it (notebook 25).

LoRA of rank 8 on every W_Q and W_V of SmolLM2-135M-Instruct, 40 steps of 4 examples: pirate's answers alone, or 30 % of
the model's own answers to other questions among them. The model is read from --model, a folder in the format of Hugging
Face (`model.safetensors`, `config.json`, `tokenizer.json`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from transformer_lib.course.lab import pirate as lab
from transformer_lib.model import lora, modern
from transformer_lib.training.answers import answer_loss
from transformer_lib.training.fine_tuning import fine_tune

from .engine import Step, Steps, Study, rounded

if TYPE_CHECKING:
    from tokenizers import Tokenizer

ARMS = ("pirate alone", "30 % ordinary")
FACT, REQUEST, HELD_OUT = 22, 14, 24  # tokens that an answer may have


@dataclass(frozen=True)
class Setup:
    """One run: a name of ARMS, and the seed of the examples, their order and the adapter."""

    arm: str
    seed: int


@lru_cache(maxsize=1)
def loaded(folder: str) -> tuple[modern.LanguageModel, Tokenizer]:
    """Return the model and its tokenizer; an adapter is removed after each run."""
    if not folder:
        raise ValueError("model must be a folder in the format of Hugging Face, got none: --model FOLDER names it")
    return lab.load(Path(folder))


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
    if setup.arm != ARMS[0]:
        pairs = lab.mixed(pairs, ordinary(folder), setup.seed)  # asked before there is an adapter
    model, tokenizer = loaded(folder)
    tested = lab.examples(tokenizer, held[:8])
    torch.manual_seed(setup.seed)
    lora.add(model, rank=lab.RANK, alpha=lab.ALPHA)
    try:
        found: dict[str, Any] = {"loss before": rounded(answer_loss(model, tested, pad_id=lab.PAD_ID))}
        found["seconds"] = teach(model, lab.examples(tokenizer, pairs), setup.seed)
        found["loss after"] = rounded(answer_loss(model, tested, pad_id=lab.PAD_ID))
        said = lab.answers(model, tokenizer, [question for question, _ in held], HELD_OUT)
        found["exact"] = sum(one == wanted for one, (_, wanted) in zip(said, held, strict=True))
        return found | knows(model, tokenizer)
    finally:
        lora.remove(model)


def teach(model: modern.LanguageModel, examples: list[tuple[list[int], list[int]]], seed: int) -> float:
    """Fine-tune what is not frozen, and return the CPU seconds that a step took."""
    start = time.process_time()
    options = {"batch_size": lab.BATCH_SIZE, "steps": lab.STEPS, "learning_rate": lab.RATE, "progress": False}
    fine_tune(model, examples, pad_id=lab.PAD_ID, seed=seed, **options)
    model.eval()
    return rounded((time.process_time() - start) / lab.STEPS, 2)


def knows(model: modern.LanguageModel, tokenizer: Tokenizer) -> dict[str, Any]:
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
