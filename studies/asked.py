"""What a real model knows, and how much of it depends on the way it is asked (notebook 23).

SmolLM2-135M-Instruct gets twenty questions of each of six kinds, in a chat, and at the end of a list of three other
questions with their answers. A seed draws the three. The answers are stored as they are; `lab.asked.marks` says which
are right. It needs the model (`make real`), and takes about five minutes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import transformer_lib as tl
from transformer_lib.course import real
from transformer_lib.course.lab import asked

from .engine import Step, Steps, Study


@dataclass(frozen=True)
class Listed:
    """Questions at the end of a list: their kind, and the seed that draws the other three."""

    kind: str
    seed: int


@cache
def load() -> tuple[tl.modern.LanguageModel, tl.ByteLevelTokenizer]:
    """Return the model and its tokenizer, or raise FileNotFoundError where they were not fetched."""
    folder = real.folder()
    if folder is None:
        raise FileNotFoundError(real.WHAT_TO_DO)
    return tl.load_pretrained(folder)


def steps(seeds: Sequence[int]) -> Steps:
    """Yield the chat of each kind, and each list."""
    for kind in asked.KINDS:
        yield Step(("chat", kind), chat, kind)
    for seed in seeds:
        for kind in asked.KINDS:
            yield Step(("runs", Listed(kind, seed)), listed, Listed(kind, seed))


def chat(kind: str) -> list[str]:
    """Return the answers in a chat."""
    model, words = load()
    most = asked.SUMS if kind.startswith("sums") else asked.CHAT
    return asked.answers(model, words, asked.in_a_chat(asked.KINDS[kind], words), most)


def listed(setup: Listed) -> dict[str, Any]:
    """Return the answers behind three examples."""
    model, words = load()
    texts = asked.in_a_list(asked.KINDS[setup.kind], words, setup.seed)
    return {"said": [asked.first_line(said) for said in asked.answers(model, words, texts, asked.LIST)]}


STUDY = Study("asked", __doc__, steps, by_seed=True)

if __name__ == "__main__":
    STUDY.command()
