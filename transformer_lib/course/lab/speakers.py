"""A small GPT-2 and a small BERT that have learned the German sentences, as folders like those one downloads; and gaps.

`studies.speakers_files` trains and writes both; `load_results()["runs"]` is of three that fill gaps (notebook 19).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from ..._files import DATA
from ...data.byte_level import ByteLevelTokenizer
from ...model import interop
from ...model.masks import padding_mask
from ...model.one_stack import LanguageModel, MaskedLanguageModel
from . import masks, one_stack, stored

load_results = stored.loader("speakers.json")
FOLDER = DATA / "speakers"
SIZES = (2, 48, 4, 192)  # layers, d_model, heads, d_ff
PLACES, PAD, UNK = 32, 0, 3
ORDERS = ("all at once", "left to right", "surest first")
Logits = Callable[[Tensor], Tensor]


def folder(kind: str) -> Path:
    """Return where the small "gpt2" or "bert" is stored: config.json and model.safetensors."""
    return FOLDER / kind


def gpt2() -> LanguageModel:
    """Return the small GPT-2."""
    return interop.load_gpt2(folder("gpt2")).eval()


def bert() -> MaskedLanguageModel:
    """Return the small BERT."""
    return interop.load_bert(folder("bert")).eval()


@torch.no_grad()
def continued(model: LanguageModel, beginning: str, longest: int = 24) -> str:
    """Return a beginning of a sentence, and the likeliest word after word until the model ends it."""
    words = one_stack.tokenizer()
    ids = words.encode_batch([beginning], bos=True)
    while ids.shape[1] < longest and int(ids[0, -1]) != 2:
        ids = torch.cat([ids, model(ids)[:, -1:].argmax(dim=-1)], dim=1)
    return words.decode(ids[0])


@torch.no_grad()
def perplexity(model: LanguageModel) -> float:
    """Return the perplexity of the held-out sentences under the causal mask."""
    ids = one_stack.heldout()
    loss, count = masks.summed(model(ids[:, :-1]), ids[:, 1:])
    return float((loss / count).exp())


def with_gaps(rate: float, number: int, seed: int = 5) -> Tensor:
    """Return the first held-out sentences as ids [number, longest], each word a gap, id 3, with this probability."""
    ids = one_stack.heldout()
    drawn = torch.rand(ids.shape, generator=torch.Generator().manual_seed(seed))
    return ids.masked_fill((drawn < rate) & (ids > UNK), UNK)[:number]


def logits_of(model: MaskedLanguageModel) -> Logits:
    """Return a function from ids [batch, seq_len] to the logits of a model that sees no padding."""

    @torch.no_grad()
    def logits(ids: Tensor) -> Tensor:
        return model(ids, padding_mask(ids, PAD))

    return logits


def filled(ids: Tensor, logits: Logits, order: str) -> Tensor:
    """Return ids [batch, seq_len] with a word in each gap; `order` is one of ORDERS."""
    ids, rows = ids.clone(), torch.arange(len(ids))
    while bool((ids == UNK).any()):
        probabilities = logits(ids).softmax(dim=-1)
        probabilities[..., : UNK + 1] = 0
        sure, words = probabilities.max(dim=-1)
        if order == "all at once":
            return torch.where(ids == UNK, words, ids)
        first = -torch.arange(ids.shape[1]).expand_as(sure) if order == "left to right" else sure
        at = first.masked_fill(ids != UNK, -ids.shape[1]).argmax(dim=1)
        gaps = ids[rows, at] == UNK
        ids[rows[gaps], at[gaps]] = words[rows, at][gaps]
    return ids


def grammatical(ids: Tensor) -> float:
    """Return the share of sentences [batch, seq_len] that the grammar passes."""
    return sum(masks.is_grammatical(one_stack.tokenizer().decode(row)) for row in ids) / len(ids)


def shares(steps: int, rate: str = "0.5") -> dict[str, list[float]]:
    """Return for each order the stored shares of filled sentences that are grammatical, one for each training."""
    runs = [run["gaps"][rate] for run in load_results()["runs"] if run["steps"] == steps]
    return {order: [run[order]["grammatical"] for run in runs] for order in ORDERS}


def shown(ids: Sequence[int]) -> str:
    """Return one sentence of ids as text, with a line in place of each gap."""
    words = one_stack.tokenizer().words
    return " ".join("___" if i == UNK else words[i] for i in ids if i > 2)


def real_gpt2() -> tuple[LanguageModel, ByteLevelTokenizer] | None:
    """Return GPT-2 from the folder that GPT2_DIR names, and its tokenizer; None, with a line that says why, without it.

    The folder is one of Hugging Face: config.json, model.safetensors, vocab.json and merges.txt. Nothing is downloaded.
    """
    place = os.environ.get("GPT2_DIR")
    if not place:
        print("GPT2_DIR is not set: without a folder with GPT-2's files, this cell has nothing to do.")
        return None
    tokenizer = ByteLevelTokenizer.from_gpt2(Path(place) / "vocab.json", Path(place) / "merges.txt")
    return interop.load_gpt2(place).eval(), tokenizer


@torch.no_grad()
def continued_for_real(model: LanguageModel, tokenizer: ByteLevelTokenizer, beginning: str, words: int = 20) -> str:
    """Return a beginning and the likeliest tokens after it."""
    ids = torch.tensor([tokenizer.encode(beginning)])
    for _ in range(words):
        ids = torch.cat([ids, model(ids)[:, -1:].argmax(dim=-1)], dim=1)
    return str(tokenizer.decode(ids[0].tolist()))
