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
from .faults import FAULTS, HEALTHY, Fault
from .recipe import Log, Recipe, trained
from .task import PAD_ID, STEPS, held_out

LETTERS = "ABCDEFGH"
CONTROL, EXAMPLE = "control", "example"


class Patient:
    """A trained model as its owner brings it in: the model, what its training script feeds it, and the log.

    Args:
        name: a letter, "control" or "example". model: a `Transformer` in evaluation mode. log: a `Log`.
    """

    def __init__(self, name: str, model: Transformer, log: Log, case: Fault) -> None:
        self.name, self.model, self.log, self._case = name, model, log, case

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


def case_of(letter: str) -> Fault:
    """Return what a patient has. This is the answer: `diagnose` asks here."""
    if letter in (CONTROL, EXAMPLE):
        return HEALTHY if letter == CONTROL else FAULTS[-1]
    if letter not in tuple(LETTERS):
        raise ValueError(f"letter must be one of {', '.join(LETTERS)}, {CONTROL}, {EXAMPLE}, got {letter!r}")
    order = sorted(FAULTS[:-1], key=lambda fault: hashlib.sha256(f"ward 3304: {fault.name}".encode()).hexdigest())
    return order[LETTERS.index(letter)]


def admit(letter: str, *, seed: int = 0, steps: int = STEPS, fresh: bool = False) -> Patient:
    """Return patient "A" to "H", the healthy "control" or the worked "example".

    Args:
        letter: which one. seed: of the weights and of the training rows. steps: of training.
        fresh: train seed 0 anew too (two or three seconds), instead of taking it from the stored ward.

    Raises:
        ValueError: there is no such patient.
    """
    case = case_of(letter)
    stored = (seed, steps) == (0, STEPS) and not fresh
    return Patient(letter, *(ward.load(case.name) if stored else trained(case.name, seed, Recipe(steps=steps))), case)
