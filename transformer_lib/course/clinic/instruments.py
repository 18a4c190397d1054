"""Measurements that tell a sound model from an unsound one; each takes a patient and gives one number."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from .insides import embedding_factor, position_factor, score_factor
from .patients import Patient
from .task import CONFIG, EOS_ID, FIRST_ID, LEARNING_RATE, LETTERS, PAD_ID, full_rows, rows

PADDING = 3  # how many padding tokens `padding` adds
FIRST_RATE = LEARNING_RATE / 25  # where the schedule begins
COMPANY = 16  # how many rows `alone` takes out of their batch
DRAWN_BATCHES = 5  # how many batches of the training `fresh_rows` and its neighbours look at
EXCHANGED = 3  # the target position whose token `future` replaces; every row has a letter there


def first_loss(patient: Patient) -> float:
    """Return the loss of the first step divided by ln V."""
    return patient.log.loss[0] / math.log(CONFIG.tgt_vocab_size)


def last_loss(patient: Patient) -> float:
    """Return the loss as the script reports it, mean of the last 20 steps, in nats."""
    return patient.log.at_the_end()[0]


def training_accuracy(patient: Patient) -> float:
    """Return the share of right tokens as the script reports it, mean of the last 20 steps."""
    return patient.log.at_the_end()[1]


def teacher_forced(patient: Patient) -> float:
    """Return the share of right tokens on held-out rows, where the model reads the right earlier tokens."""
    return patient.teacher_forced()


def reverses(patient: Patient) -> float:
    """Return the share of held-out rows written without a mistake, where the model reads its own tokens."""
    return patient.reverses()


def reverses_padded(patient: Patient) -> float:
    """Return the same share with three more padding tokens behind each source."""
    return patient.reverses(extra=PADDING)


def copies(patient: Patient) -> float:
    """Return the share of positions where the likeliest token is the one just read."""
    src, tgt_in = rows()
    same = patient.logits(src, tgt_in).argmax(dim=-1) == tgt_in
    return same[tgt_in != PAD_ID].double().mean().item()


def reported_over_real(patient: Patient) -> float:
    """Return the loss that the script reports on a held-out batch, divided by the loss per real token."""
    src, tgt_in, tgt_out = patient.batch()
    logits = patient.logits(src, tgt_in)
    return patient.reported_loss(logits, tgt_out) / F.cross_entropy(logits.mT, tgt_out, ignore_index=PAD_ID).item()


def row_sums(patient: Patient) -> float:
    """Return how far the weights of a real query are from summing to one, at most."""
    src, tgt_in = rows()
    real = {"encoder": src != PAD_ID, "decoder": tgt_in != PAD_ID, "cross": tgt_in != PAD_ID}
    sums = {name: weights.sum(dim=-1).mean(dim=1) for name, weights in patient.attention(src, tgt_in).items()}
    return max((sums[name] - 1)[real[name]].abs().max().item() for name in sums)


def above_diagonal(patient: Patient) -> float:
    """Return the weight that a real query of the decoder's self-attention gives to later tokens, mean."""
    src, tgt_in = rows()
    later = patient.attention(src, tgt_in)["decoder"].triu(1).sum(dim=-1).mean(dim=1)
    return later[tgt_in != PAD_ID].mean().item()


def on_padding(patient: Patient) -> float:
    """Return the weight that a real query gives to padding, mean over the attention that gives most."""
    src, tgt_in = rows()
    keys, queries = {"encoder": src, "decoder": tgt_in, "cross": src}, {"encoder": src}
    shares = []
    for name, weights in patient.attention(src, tgt_in).items():
        given = (weights * (keys[name] == PAD_ID)[:, None, None, :]).sum(dim=-1).mean(dim=1)
        shares.append(given[queries.get(name, tgt_in) != PAD_ID].mean().item())
    return max(shares)


@torch.no_grad()
def changes(patient: Patient, probe: str) -> Tensor:
    """Return how much a second pass differs from the first, [rows, places] of a held-out batch, 0 at padding.

    Args:
        probe: what the second pass is given. "repeat": the same. "future": another token at position EXCHANGED of the
            target. "padding": PADDING more padding tokens behind source and target; each of these gives the largest
            change of a logit at each target place. "order": the source reversed; the mean change of the entries
            of each token's memory, by source place, in the rows without padding.
    """
    if probe == "order":
        src = full_rows()
        return (patient.model.encode(src) - patient.model.encode(src.flip(1)).flip(1)).abs().mean(dim=2)
    src, tgt_in = rows()
    before = patient.model(src, tgt_in)
    second = {
        "repeat": (src, tgt_in),
        "future": (src, _exchanged(tgt_in)),
        "padding": tuple(F.pad(ids, (0, PADDING), value=PAD_ID) for ids in (src, tgt_in)),
    }
    change = (before - patient.model(*second[probe])[:, : tgt_in.shape[1]]).abs().amax(dim=-1)
    return change * (tgt_in != PAD_ID)


def _exchanged(tgt_in: Tensor) -> Tensor:
    changed = tgt_in.clone()
    changed[:, EXCHANGED] = FIRST_ID + (changed[:, EXCHANGED] - FIRST_ID + 1) % len(LETTERS)
    return changed


def summary(probe: str, changed: Tensor) -> float:
    """Return one number for `changes`: the largest, for "future" before the replaced token; for "order" the mean."""
    if probe == "order":
        return changed.mean().item()
    return (changed[:, :EXCHANGED] if probe == "future" else changed).max().item()


def repeat(patient: Patient) -> float:
    """Return the largest difference between the logits of two passes over the same batch."""
    return summary("repeat", changes(patient, "repeat"))


def future(patient: Patient) -> float:
    """Return the largest change of the logits at earlier positions when one token in mid-target is replaced."""
    return summary("future", changes(patient, "future"))


def padding(patient: Patient) -> float:
    """Return the largest change of the logits at real positions when source and target get three padding tokens."""
    return summary("padding", changes(patient, "padding"))


def order(patient: Patient) -> float:
    """Return how much the memory of a token changes when the source is reversed, mean over tokens and entries."""
    return summary("order", changes(patient, "order"))


@torch.no_grad()
def alone(patient: Patient) -> float:
    """Return the largest change of the logits at real positions when a row goes through the model without its batch."""
    src, tgt_in = rows()
    together = patient.model(src, tgt_in)
    each = torch.cat([patient.model(src[i : i + 1], tgt_in[i : i + 1]) for i in range(COMPANY)])
    return (each - together[:COMPANY]).abs()[tgt_in[:COMPANY] != PAD_ID].max().item()


Drawn = tuple[list[int], list[int]]  # a source and its labels, both without padding


def _drawn(patient: Patient) -> list[Drawn]:
    """Return the rows of the first batches of the patient's training, as the script feeds them."""
    with torch.random.fork_rng(devices=[]):
        training = patient.restart()
        batches = [training.batch() for _ in range(DRAWN_BATCHES)]
        fed = [(src, training.feed(tgt)[1]) for src, tgt in batches]
    return [tuple(_real(ids) for ids in pair) for batch in fed for pair in zip(*batch, strict=True)]


def _real(ids: Tensor) -> list[int]:
    return [i for i in ids.tolist() if i != PAD_ID]


def fresh_rows(patient: Patient) -> float:
    """Return how many different sources there are among the rows of the first five batches, as a share of the rows."""
    drawn = _drawn(patient)
    return len({tuple(src) for src, _ in drawn}) / len(drawn)


def labels_used(patient: Patient) -> float:
    """Return how many of the letters and <eos> are ever a label in the first five batches, as a share of them."""
    wanted = {EOS_ID, *range(FIRST_ID, FIRST_ID + len(LETTERS))}
    return len(wanted & {label for _, labels in _drawn(patient) for label in labels}) / len(wanted)


def labels_right(patient: Patient) -> float:
    """Return the share of labels in the first five batches that are what the task asks for at their position."""
    pairs = [
        (label, right)
        for src, labels in _drawn(patient)
        for label, right in zip(labels, [*src[::-1], EOS_ID], strict=False)
    ]
    return sum(label == right for label, right in pairs) / len(pairs)


def largest_weight(patient: Patient) -> float:
    """Return the largest weight of a real query in the cross-attention, mean over the queries."""
    src, tgt_in = rows()
    return patient.attention(src, tgt_in)["cross"].amax(dim=-1).mean(dim=1)[tgt_in != PAD_ID].mean().item()


def _first_step(patient: Patient) -> list[Tensor]:
    """Return by how much each parameter tensor moves in the first step of the patient's training."""
    with torch.random.fork_rng(devices=[]):
        training = patient.restart()
        before = [weight.detach().clone() for weight in training.model.parameters()]
        training.step()
    return [new.detach() - old for new, old in zip(training.model.parameters(), before, strict=True)]


def standing_still(patient: Patient) -> float:
    """Return how many of the model's parameter tensors do not move in the first step of its training."""
    return float(sum(not movement.any() for movement in _first_step(patient)))


def first_movement(patient: Patient) -> float:
    """Return the largest movement of an entry in the first step, divided by the rate that the recipe has there.

    Adam's first step moves every entry that has a gradient by nearly the rate (Kingma and Ba 2015).
    """
    return max(movement.abs().max().item() for movement in _first_step(patient)) / FIRST_RATE


def gradient_mismatch(patient: Patient) -> float:
    """Return how far the gradient that the second step uses is from that of its own batch, as a share of the latter."""
    with torch.random.fork_rng(devices=[]):
        training = patient.restart()
        training.step()
        rows, weights = training.batch(), list(training.model.parameters())
        torch.manual_seed(patient.seed)  # dropout draws the same both times
        own = torch.autograd.grad(training.loss(*rows)[0], weights, allow_unused=True)
        torch.manual_seed(patient.seed)
        training.step(rows)
    pairs = [(weight.grad, part) for weight, part in zip(weights, own, strict=True) if part is not None]
    excess = torch.stack([(used - part).norm() for used, part in pairs if used is not None]).norm()
    return (excess / torch.stack([part.norm() for _, part in pairs]).norm()).item()


@dataclass(frozen=True)
class Instrument:
    """A measurement with the range that a healthy model stays in.

    Args:
        measure: gives the number. cost: what it takes. low, high: a finding outside them is abnormal.
    """

    measure: Callable[[Patient], float]
    cost: str
    low: float
    high: float

    def abnormal(self, value: float) -> bool:
        """Return True when the value lies outside the healthy range."""
        return not self.low <= value <= self.high


EXACT = 1e-3  # in single precision, what should be zero stays below this
_LOG, _ONE, _MAPS, _INSIDE = "reads the log", "one pass", "one pass, its weights", "one pass, its insides"
_TWO, _STEPS, _DECODE, _DATA = "two passes", "one or two steps", "decoding", "reads batches"
INSTRUMENTS = {
    "first loss / ln V": Instrument(first_loss, _LOG, 0.9, 1.6),
    "last loss": Instrument(last_loss, _LOG, 0.1, 0.4),
    "training accuracy": Instrument(training_accuracy, _LOG, 0.85, 0.975),
    "reported / real loss": Instrument(reported_over_real, _ONE, 1 - EXACT, 1 + EXACT),
    "copies": Instrument(copies, _ONE, 0.0, 0.3),
    "fresh rows": Instrument(fresh_rows, _DATA, 0.9, 1.0),
    "labels used": Instrument(labels_used, _DATA, 1.0, 1.0),
    "labels right": Instrument(labels_right, _DATA, 1.0, 1.0),
    "teacher-forced": Instrument(teacher_forced, _ONE, 0.93, 1.0),
    "row sums": Instrument(row_sums, _MAPS, 0.0, EXACT),
    "weight on the future": Instrument(above_diagonal, _MAPS, 0.0, EXACT),
    "weight on padding": Instrument(on_padding, _MAPS, 0.0, EXACT),
    "largest weight": Instrument(largest_weight, _MAPS, 0.5, 0.75),
    "embedding factor": Instrument(embedding_factor, _INSIDE, 0.9, 1.1),
    "position factor": Instrument(position_factor, _INSIDE, 0.9, 1.1),
    "score factor": Instrument(score_factor, _INSIDE, 0.9, 1.1),
    "repeat": Instrument(repeat, _TWO, 0.0, EXACT),
    "future": Instrument(future, _TWO, 0.0, EXACT),
    "padding": Instrument(padding, _TWO, 0.0, EXACT),
    "alone": Instrument(alone, _TWO, 0.0, EXACT),
    "order": Instrument(order, _TWO, 0.1, 2.0),
    "tensors standing still": Instrument(standing_still, _STEPS, 0.0, 0.0),
    "first movement / rate": Instrument(first_movement, _STEPS, 0.9, 1.1),
    "gradient mismatch": Instrument(gradient_mismatch, _STEPS, 0.0, EXACT),
    "reverses": Instrument(reverses, _DECODE, 0.75, 1.0),
    "reverses, padded": Instrument(reverses_padded, _DECODE, 0.75, 1.0),
}
"""By name, cheapest first."""


def read(name: str, patient: Patient) -> float:
    """Return the number that the instrument `name` gives for the patient.

    Raises:
        ValueError: there is no such instrument.
    """
    if name not in INSTRUMENTS:
        raise ValueError(f"name must be one of {', '.join(INSTRUMENTS)}, got {name!r}")
    return INSTRUMENTS[name].measure(patient)
