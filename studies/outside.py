"""What another program makes of the same file: ids and logits of `transformers` for three short texts (notebook 23).

`transformers` reads the GGUF file by itself: its blocks are unpacked by the package gguf, and names, order of rows,
model and tokenizer are its own. Nothing of this library computes here. Stored are, at each token, the three largest
logits and whose they are. It needs the model (`make real`), pip install -e ".[peers]", and gguf and accelerate, with
which `transformers` reads such files; it takes less than a minute. Nothing is drawn, so a seed changes nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch

from transformer_lib.course import real
from transformer_lib.course.lab import real_texts

from .engine import Step, Steps, Study

LARGEST, DECIMALS = 3, 5  # logits that are stored of each token, and how exactly


@cache
def load() -> tuple[Any, Any]:
    """Return the model and the tokenizer as transformers reads them, or raise FileNotFoundError without the file."""
    path = real.gguf_path()
    if path is None:
        raise FileNotFoundError(real.WHAT_TO_DO)
    transformers = importlib.import_module("transformers")
    model = transformers.AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name)
    return model.eval(), transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)


def steps(seeds: Sequence[int]) -> Steps:
    """Yield each text."""
    for name in real_texts.TEXTS:
        yield Step(("texts", name), reading, name)


@torch.no_grad()
def reading(name: str) -> dict[str, Any]:
    """Return the ids of a text, and for each the largest logits of the token that follows, [seq_len][LARGEST]."""
    model, tokenizer = load()
    ids = tokenizer(real_texts.TEXTS[name])["input_ids"]
    logits, tokens = model(torch.tensor([ids])).logits[0].topk(LARGEST)
    return {
        "ids": ids,
        "likeliest": tokens.tolist(),
        "logits": [[round(value, DECIMALS) for value in row] for row in logits.tolist()],
    }


STUDY = Study("outside", __doc__, steps, seeds=(0,), says_seeds=False)

if __name__ == "__main__":
    STUDY.command()
