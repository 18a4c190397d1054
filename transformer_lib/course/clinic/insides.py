"""A look inside a model: what enters its encoder, and how strongly its weights react to queries and keys."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from .patients import Patient
from .task import CONFIG, full_rows


def entering_vectors(patient: Patient, src: Tensor) -> Tensor:
    """Return what the encoder receives for src, [batch, src_len, d_model]."""
    seen: list[Tensor] = []
    handle = patient.model.encoder.register_forward_pre_hook(lambda module, args: seen.append(args[0].detach()))
    with torch.no_grad():
        patient.model.encode(src)
    handle.remove()
    return seen[0]


def _entering(patient: Patient) -> tuple[float, float]:
    """Return the a and b for which a · table row + b · position encoding comes closest to x, by least squares."""
    src = full_rows()
    rows = patient.model.src_embedding.weight.detach()[src]
    places = patient.model.position.table[: src.shape[1]].expand_as(rows)
    parts = torch.stack([rows.flatten(), places.flatten()], dim=1)
    a, b = torch.linalg.lstsq(parts, entering_vectors(patient, src).flatten()[:, None]).solution[:, 0].tolist()
    return a, b


def embedding_factor(patient: Patient) -> float:
    """Return the factor by which rows of the table are multiplied before the encoder, divided by √d_model."""
    return _entering(patient)[0] / math.sqrt(CONFIG.d_model)


def position_factor(patient: Patient) -> float:
    """Return the factor by which the position encodings are multiplied before the encoder."""
    return _entering(patient)[1]


def score_factor(patient: Patient) -> float:
    """Return the slope of ln(weight) against q · k / √d_k in the encoder, by least squares within each row."""
    src = full_rows()
    layer, x = patient.model.encoder.layers[0].self_attention, entering_vectors(patient, src)
    with torch.no_grad():
        q, k = (
            F.linear(x, part.weight).unflatten(-1, (layer.n_heads, -1)).transpose(1, 2)
            for part in (layer.w_q, layer.w_k)
        )
    scores = (q @ k.mT).double() / math.sqrt(layer.d_k)
    weights = patient.attention(src, src)["encoder"].double()
    best = weights.argmax(dim=-1, keepdim=True)
    scores, logs = (part - part.gather(-1, best) for part in (scores, weights.log()))
    felt = weights > 1e-30  # below that, single precision has no digits left
    return ((scores * logs)[felt].sum() / scores[felt].square().sum()).item()
