"""The patients: small models, each trained with at most one fault."""

from __future__ import annotations

import hashlib

import torch
import torch.nn.functional as F
from torch import Tensor

from ...decoding.sampling import greedy_decode
from ...model.recording import record_attention
from ...model.transformer import Transformer
from ...training.loss import shift_right
from . import ward
from .faults import BY_NAME, Fault
from .recipe import Log, Recipe, Training, trained
from .task import LEARNING_RATE, PAD_ID, STEPS, held_out

LETTERS = "ABCDEFGHIJKL"
CONTROL, EXAMPLE = "control", "example"
DIGESTS = {  # of "letter: fault", so that whoever reads this file does not read the answers
    "A": "eeaad7a8b51f",
    "B": "4845bc63e5e9",
    "C": "e39c212daacb",
    "D": "d3ca9de94474",
    "E": "e32df66404cc",
    "F": "2d0918075a41",
    "G": "77fa774e1b3f",
    "H": "4d617344b811",
    "I": "826819f3d207",
    "J": "3780e9413f84",
    "K": "9a1d52c413a9",
    "L": "e723d08cd426",
    "control": "3e6dc3d0b751",
    "example": "ef84d84a2c67",
}

SEEDS = {"K": 7}  # added to the seed that is asked for


class Patient:
    """A trained model as its owner brings it in: the model, what its training script feeds it, and the log.

    Args:
        name: a letter, "control" or "example". model: a `Transformer` in evaluation mode. log: a `Log`.
        case: its fault. seed: with which it was trained.
    """

    def __init__(self, name: str, model: Transformer, log: Log, case: Fault, seed: int = 0) -> None:
        self.name, self.model, self.log, self.seed, self._case = name, model, log, seed, case

    def __repr__(self) -> str:
        return f"Patient {self.name}: {self.complaint}"

    @property
    def complaint(self) -> str:
        """The last losses and accuracies of the log, and how many held-out rows the model reverses, in a line."""
        loss, accuracy = self.log.at_the_end()
        return f"loss {loss:.2f}, accuracy {accuracy:.2f} at the end of training; reverses {self.reverses():.2f}"

    def batch(self, size: int = 64) -> tuple[Tensor, Tensor, Tensor]:
        """Return held-out (src, tgt_in, tgt_out) as the training script would feed them."""
        src, tgt = held_out(size)
        return (src, *self._case.feed(tgt))

    def reported_loss(self, logits: Tensor, tgt_out: Tensor) -> float:
        """Return the loss that the training script would write down."""
        return self._case.loss(logits, tgt_out).item()

    def restart(self) -> Training:
        """Return its training once more from the beginning, to be run step by step: `.step()`, `.model`, `.log`.

        It sets the seed of the global random numbers, from which weights and dropout are drawn.
        """
        torch.manual_seed(self.seed)
        return Training(self._case, self.seed)

    @torch.no_grad()
    def logits(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Return the model's logits [batch, tgt_len, vocab_size]."""
        return self.model(src, tgt_in)

    @torch.no_grad()
    def attention(self, src: Tensor, tgt_in: Tensor) -> dict[str, Tensor]:
        """Return the weights [batch, n_heads, q_len, k_len] of the three attentions by short name."""
        with record_attention(self.model) as record:
            self.model(src, tgt_in)
        return dict(zip(("encoder", "decoder", "cross"), record.values(), strict=True))

    def reverses(self, size: int = 200, extra: int = 0) -> float:
        """Return the share of held-out rows that come out right when the model reads its own words.

        Args:
            size: how many rows. extra: how many more padding tokens follow each source.
        """
        src, tgt = held_out(size)
        longer = F.pad(src, (0, extra), value=PAD_ID)
        written = greedy_decode(self.model, longer, max_new_tokens=tgt.shape[1] - 1, use_cache=False)
        wide = F.pad(written, (0, tgt.shape[1] - written.shape[1]), value=PAD_ID)
        return (wide == tgt).all(dim=1).double().mean().item()

    def teacher_forced(self, size: int = 200) -> float:
        """Return the share of right tokens when the model reads the right earlier ones (shifted as it should be)."""
        src, tgt = held_out(size)
        tgt_in, tgt_out = shift_right(tgt)
        right = self.logits(src, tgt_in).argmax(dim=-1) == tgt_out
        return right[tgt_out != PAD_ID].double().mean().item()


def _digest(letter: str, name: str) -> str:
    return hashlib.sha256(f"{letter}: {name}".encode()).hexdigest()[:12]


def case_of(letter: str) -> Fault:
    """Return what a patient has. This is the answer.

    Raises:
        ValueError: there is no such patient.
    """
    if letter not in DIGESTS:
        raise ValueError(f"letter must be one of {', '.join(LETTERS)}, {CONTROL}, {EXAMPLE}, got {letter!r}")
    return next(case for name, case in BY_NAME.items() if _digest(letter, name) == DIGESTS[letter])


def admit(
    letter: str, *, seed: int = 0, steps: int = STEPS, rate: float = LEARNING_RATE, fresh: bool = False
) -> Patient:
    """Return patient "A" to "L", the healthy "control" or the worked "example".

    Args:
        letter: which one. seed: of the weights and of the training rows. steps: of training.
        rate: the largest learning rate.
        fresh: train seed 0 anew too (two or three seconds), instead of taking it from the stored ward.

    Raises:
        ValueError: there is no such patient.
    """
    case = case_of(letter)
    stored = (seed, steps, rate) == (0, STEPS, LEARNING_RATE) and not fresh
    seed += SEEDS.get(letter, 0)
    if stored:
        return Patient(letter, *ward.load(case.name, seed), case, seed)
    return Patient(letter, *trained(case.name, seed, Recipe(rate=rate, steps=steps)), case, seed)
