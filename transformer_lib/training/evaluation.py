"""What a model loses on pairs that it is not trained on."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from .._paths import PathName
from ..model.base import TranslationModel
from ..model.evaluating import evaluating
from .gradients import count_targets
from .loss import TrainingLoss
from .precision import Precision, computing


@torch.no_grad()
def loss_per_token(
    model: TranslationModel,
    batches: Iterable[tuple[Tensor, Tensor]],
    *,
    label_smoothing: float = 0.0,
    precision: Precision = "float32",
    path: PathName = "readable",
) -> float:
    """Return the cross-entropy per real target token over all batches, in nats, without dropout.

    Args:
        model: used in evaluation mode; its mode is restored. label_smoothing, precision, path: as for `train`; without
            smoothing, its exponential is the perplexity.

    Raises:
        ValueError: no real target token; an unknown precision; path="fast" for a model that cannot take it.
    """
    loss, device = TrainingLoss(model, label_smoothing=label_smoothing, path=path), next(model.parameters()).device
    summed, tokens = 0.0, 0
    with evaluating(model), computing(precision, device):
        for src, tgt in batches:
            summed += float(loss(src.to(device), tgt.to(device)))
            tokens += count_targets(tgt, model.config.pad_id)
    if tokens == 0:
        raise ValueError("batches must have a real target token, got none")
    return summed / tokens
