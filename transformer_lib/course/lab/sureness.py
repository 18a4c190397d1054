"""How sure is a translator of its words while it learns few sentences by heart? (notebook 13)"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ...data.corpora import Pair
from ...decoding.translator import Translator
from ...model.evaluating import evaluating
from ...training.loss import shift_right
from . import stored

load_results = stored.loader("sureness.json")
PAIRS, STEPS = 256, 712  # trained on; of training
LOOKS = (32, 64, 96, 152, 216, 288, 440, 576, 712)  # steps after which is measured


@torch.no_grad()
def answers(translator: Translator, pairs: Sequence[Pair]) -> tuple[Tensor, Tensor, Tensor]:
    """Return for each real label, the right earlier words given: is the likeliest word right, its p, and the loss.

    Three tensors [n]: booleans, probabilities, nats.
    """
    found = []
    with evaluating(translator.model):
        for src, tgt in translator.batches(pairs, 64):
            tgt_in, tgt_out = shift_right(tgt)
            real = tgt_out != translator.model.config.pad_id
            log_p, labels = translator.model(src, tgt_in).log_softmax(dim=-1)[real], tgt_out[real]
            top = log_p.max(dim=-1)
            losses = -log_p.gather(-1, labels[:, None])[:, 0]
            found.append((top.indices == labels, top.values.exp(), losses))
    right, sure, loss = map(torch.cat, zip(*found, strict=True))
    return right, sure, loss


def curves(results: dict[str, Any], what: str) -> tuple[list[int], list[list[float]]]:
    """Return the steps, and a curve for each seed of one measurement, such as "wrong, p"."""
    return results["steps"], [run[what] for run in results["runs"]]
