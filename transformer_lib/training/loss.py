"""The loss of teacher forcing: shifted targets, and cross-entropy over the real tokens, with label smoothing."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .._paths import PATHS, PathName
from .._validate import check_choice, check_fraction, check_ids, check_tensor
from ..fast.eligibility import require_fast
from ..fast.forward import decoder_states
from ..fast.head_loss import head_loss
from ..model.base import TranslationModel


def shift_right(tgt: Tensor) -> tuple[Tensor, Tensor]:
    """Return (tgt_in, tgt_out), each [batch, tgt_len − 1]: what the decoder reads, and what it must say there.

    Args:
        tgt: ids [batch, tgt_len] from bos to eos: "<bos> a b <eos>" -> "<bos> a b" and "a b <eos>".
    """
    check_tensor("tgt", tgt, rank=2)
    if tgt.shape[1] < 2:
        raise ValueError(f"tgt must have at least two tokens, bos and eos, got shape {tuple(tgt.shape)}")
    return tgt[:, :-1], tgt[:, 1:]


def translation_loss(
    logits: Tensor, tgt_out: Tensor, *, pad_id: int, label_smoothing: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """Return the cross-entropy of the real target tokens, in nats: their mean, or with reduction="sum" their sum.

    Args:
        logits: [batch, tgt_len, vocab_size]. tgt_out: ids [batch, tgt_len]; pad_id entries do not count.
        label_smoothing: ε of Vaswani et al. §5.4: the target is (1 − ε) on the right token and ε spread over all.

    Raises:
        TypeError, ValueError: the shapes do not fit, or ε is not in [0, 1).
    """
    check_tensor("logits", logits, rank=3)
    check_tensor("tgt_out", tgt_out, rank=2)
    if tgt_out.shape != logits.shape[:2]:
        raise ValueError(
            f"tgt_out must have one label per row of logits {tuple(logits.shape)}, got shape {tuple(tgt_out.shape)}"
        )
    check_fraction("label_smoothing", label_smoothing)
    return F.cross_entropy(
        logits.flatten(0, 1),
        tgt_out.flatten(),
        ignore_index=pad_id,
        label_smoothing=label_smoothing,
        reduction=check_choice("reduction", reduction, ("mean", "sum")),
    )


class TrainingLoss(nn.Module):
    """A model and its loss as one module, so that what computes gradients has one `forward` that can be wrapped.

    Args:
        model: called as model(src, tgt_in) -> logits. label_smoothing: ε as in `translation_loss`.
        path: "readable" calls the model. "fast" computes the same loss and the same gradients, to rounding, without
            padding and without keeping logits (see `transformer_lib.fast`); with dropout it draws other numbers, and
            its backward pass can be taken once.

    Raises:
        ValueError: path="fast" for a model that cannot take it, here or, once it has been changed, in `forward`.
    """

    def __init__(self, model: TranslationModel, label_smoothing: float = 0.0, *, path: PathName = "readable") -> None:
        super().__init__()
        self.model, self.label_smoothing = model, check_fraction("label_smoothing", label_smoothing)
        self.path = check_choice("path", path, PATHS)
        if path == "fast":
            require_fast(model)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Return the cross-entropy summed over the real target tokens of src [batch, src_len], tgt [batch, tgt_len]."""
        config = self.model.config
        tgt = check_ids("tgt", tgt, config.tgt_vocab_size)  # its last column is a label only
        tgt_in, tgt_out = shift_right(tgt)
        if src.shape[0] != tgt.shape[0]:
            raise ValueError(f"src must have tgt's batch size {tgt.shape[0]}, got {src.shape[0]}")
        pad_id = config.pad_id
        if self.path == "fast":
            model = require_fast(self.model)
            counted = tgt_out != pad_id
            states = decoder_states(model, src, tgt_in, counted)
            return head_loss(states, model.output_head.weight, tgt_out[counted], label_smoothing=self.label_smoothing)
        logits = self.model(src, tgt_in)
        if logits.dtype == torch.bfloat16:
            logits = logits.float()  # a sum over thousands of words would lose its small terms
        return translation_loss(logits, tgt_out, pad_id=pad_id, label_smoothing=self.label_smoothing, reduction="sum")
