"""Measurements that tell a sound model from an unsound one; each takes a patient and gives one number."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ..training import shift_right
from .patients import Patient
from .task import CONFIG, FIRST_ID, LETTERS, PAD_ID, held_out

PADDING = 3  # how many padding tokens `padding` adds


def _last(values: list[float]) -> float:
    return sum(values[-20:]) / 20


def first_loss(patient: Patient) -> float:
    """The loss of the first step over ln V."""
    return patient.log.loss[0] / math.log(CONFIG.tgt_vocab_size)


def last_loss(patient: Patient) -> float:
    """The loss as the script reports it, mean of the last 20 steps, in nats."""
    return _last(patient.log.loss)


def training_accuracy(patient: Patient) -> float:
    """Share of right tokens as the script reports it, mean of the last 20 steps."""
    return _last(patient.log.accuracy)


def teacher_forced(patient: Patient) -> float:
    """Share of right tokens on held-out rows, where the model reads the right earlier tokens."""
    return patient.teacher_forced()


def reverses(patient: Patient) -> float:
    """Share of held-out rows written without a mistake, where the model reads its own tokens."""
    return patient.reverses()


def copies(patient: Patient) -> float:
    """Share of places where the likeliest token is the one just read."""
    src, tgt_in = _rows()
    same = patient.logits(src, tgt_in).argmax(dim=-1) == tgt_in
    return same[tgt_in != PAD_ID].double().mean().item()


def reported_over_real(patient: Patient) -> float:
    """The loss that the script reports on a held-out batch, over the loss per real token on the same logits."""
    src, tgt_in, tgt_out = patient.batch()
    logits = patient.logits(src, tgt_in)
    return patient.reported_loss(logits, tgt_out) / F.cross_entropy(logits.mT, tgt_out, ignore_index=PAD_ID).item()


def row_sums(patient: Patient) -> float:
    """How far the weights of a real query are from summing to one, at most."""
    src, tgt_in = _rows()
    real = {"encoder": src != PAD_ID, "decoder": tgt_in != PAD_ID, "cross": tgt_in != PAD_ID}
    sums = {name: weights.sum(dim=-1).mean(dim=1) for name, weights in patient.attention(src, tgt_in).items()}
    return max((sums[name] - 1)[real[name]].abs().max().item() for name in sums)


def above_diagonal(patient: Patient) -> float:
    """Weight that a real query of the decoder's self-attention gives to later tokens, mean."""
    src, tgt_in = _rows()
    later = patient.attention(src, tgt_in)["decoder"].triu(1).sum(dim=-1).mean(dim=1)
    return later[tgt_in != PAD_ID].mean().item()


def on_padding(patient: Patient) -> float:
    """Weight that a real query gives to padding, mean over the attention that gives most."""
    src, tgt_in = _rows()
    keys, queries = {"encoder": src, "decoder": tgt_in, "cross": src}, {"encoder": src}
    shares = []
    for name, weights in patient.attention(src, tgt_in).items():
        given = (weights * (keys[name] == PAD_ID)[:, None, None, :]).sum(dim=-1).mean(dim=1)
        shares.append(given[queries.get(name, tgt_in) != PAD_ID].mean().item())
    return max(shares)


def repeat(patient: Patient) -> float:
    """Largest difference of the logits when the same batch is read twice."""
    src, tgt_in = _rows()
    return (patient.logits(src, tgt_in) - patient.logits(src, tgt_in)).abs().max().item()


def future(patient: Patient) -> float:
    """Largest change of the logits at earlier places when one token in the middle of the target is exchanged."""
    src, tgt_in = _rows()
    changed, place = tgt_in.clone(), 3
    changed[:, place] = FIRST_ID + (changed[:, place] - FIRST_ID + 1) % len(LETTERS)
    difference = patient.logits(src, tgt_in) - patient.logits(src, changed)
    return difference[:, :place].abs().max().item()


def padding(patient: Patient) -> float:
    """Largest change of the logits at real places when three padding tokens are put behind source and target."""
    src, tgt_in = _rows()
    longer = patient.logits(F.pad(src, (0, PADDING), value=PAD_ID), F.pad(tgt_in, (0, PADDING), value=PAD_ID))
    difference = patient.logits(src, tgt_in) - longer[:, : tgt_in.shape[1]]
    return difference[tgt_in != PAD_ID].abs().max().item()


def order(patient: Patient) -> float:
    """How much the memory of a token changes when the others change places, mean over its entries."""
    src = _full_rows()
    turned = src.flip(1)
    with torch.no_grad():
        before, after = patient.model.encode(src), patient.model.encode(turned).flip(1)
    return (before - after).abs().mean().item()


def embedding_factor(patient: Patient) -> float:
    """The factor with which rows of the table enter the encoder, over √d_model."""
    return _entering(patient)[0] / math.sqrt(CONFIG.d_model)


def position_factor(patient: Patient) -> float:
    """The factor with which the position encodings enter the encoder."""
    return _entering(patient)[1]


def score_factor(patient: Patient) -> float:
    """The slope of ln(weight) over q · k / √d_k in the encoder, by least squares from each row's largest weight."""
    src = _full_rows()
    layer, x = patient.model.encoder.layers[0].self_attention, _entered(patient, src)
    with torch.no_grad():
        q, k = (F.linear(x, part.weight).unflatten(-1, (layer.n_heads, -1)).transpose(1, 2)
                for part in (layer.w_q, layer.w_k))
    scores = (q @ k.mT).double() / math.sqrt(layer.d_k)
    weights = patient.attention(src, src)["encoder"].double()
    best = weights.argmax(dim=-1, keepdim=True)
    scores, logs = (part - part.gather(-1, best) for part in (scores, weights.log()))
    felt = weights > 1e-30  # smaller ones have no digits left in single precision
    return ((scores * logs)[felt].sum() / scores[felt].square().sum()).item()


def largest_weight(patient: Patient) -> float:
    """The largest weight of a real query in the cross-attention, mean."""
    src, tgt_in = _rows()
    return patient.attention(src, tgt_in)["cross"].amax(dim=-1).mean(dim=1)[tgt_in != PAD_ID].mean().item()


def _rows() -> tuple[Tensor, Tensor]:
    src, tgt = held_out(64)
    return src, shift_right(tgt)[0]


def _full_rows() -> Tensor:
    src = held_out(256)[0]
    return src[(src != PAD_ID).all(dim=1)]


def _entered(patient: Patient, src: Tensor) -> Tensor:
    """What the encoder receives for src, [batch, src_len, d_model]."""
    seen: list[Tensor] = []
    handle = patient.model.encoder.register_forward_pre_hook(lambda module, args: seen.append(args[0].detach()))
    with torch.no_grad():
        patient.model.encode(src)
    handle.remove()
    return seen[0]


def _entering(patient: Patient) -> tuple[float, float]:
    """The best a and b in x = a · table row + b · position encoding, by least squares."""
    src = _full_rows()
    rows = patient.model.src_embedding.weight.detach()[src]
    places = patient.model.position.table[: src.shape[1]].expand_as(rows)
    parts = torch.stack([rows.flatten(), places.flatten()], dim=1)
    a, b = torch.linalg.lstsq(parts, _entered(patient, src).flatten()[:, None]).solution[:, 0].tolist()
    return a, b


@dataclass(frozen=True)
class Instrument:
    """A measurement with the range that a healthy model stays in.

    Args:
        measure: gives the number. cost: what it takes. low, high: outside of these the finding is abnormal.
    """

    measure: Callable[[Patient], float]
    cost: str
    low: float
    high: float

    def abnormal(self, value: float) -> bool:
        """Whether the value lies outside of the healthy range."""
        return not self.low <= value <= self.high


EXACT = 1e-3  # what should be zero stays below this in single precision
_LOG, _ONE, _MAPS, _INSIDE = "reads the log", "one pass", "one pass, its weights", "one pass, its insides"
_TWO, _DECODE = "two passes", "decoding"
INSTRUMENTS = {
    "first loss / ln V": Instrument(first_loss, _LOG, 0.9, 1.6),
    "last loss": Instrument(last_loss, _LOG, 0.1, 0.4),
    "training accuracy": Instrument(training_accuracy, _LOG, 0.85, 0.975),
    "reported / real loss": Instrument(reported_over_real, _ONE, 1 - EXACT, 1 + EXACT),
    "copies": Instrument(copies, _ONE, 0.0, 0.3),
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
    "order": Instrument(order, _TWO, 0.1, 2.0),
    "reverses": Instrument(reverses, _DECODE, 0.8, 1.0),
}
"""By name, cheapest first."""


def read(name: str, patient: Patient) -> float:
    """Return the number that the instrument `name` gives for the patient.

    Raises:
        ValueError: there is no such instrument.
    """
    if name not in INSTRUMENTS:
        raise ValueError(f"name: expected one of {', '.join(INSTRUMENTS)}; got {name!r}")
    return INSTRUMENTS[name].measure(patient)
