"""The faults, each applied from outside to the library's Transformer or to its training step.

A fault changes a model by replacing a method of that one object, so that neither its class nor its printed form
differs from a healthy one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...model.attention import masked_softmax
from ...model.layers import FeedForward
from ...model.masks import padding_mask
from ...model.multihead import MultiHeadAttention
from ...model.transformer import Transformer
from ...training.loss import shift_right, translation_loss
from .task import PAD_ID

Feed = Callable[[Tensor], tuple[Tensor, Tensor]]
Loss = Callable[[Tensor, Tensor], Tensor]


def _unchanged(model: Transformer) -> None:
    """Leave the model as it is."""


def _all_parameters(model: Transformer) -> Iterable[nn.Parameter]:
    """Return what an optimizer should be given."""
    return model.parameters()


def loss_of_real_tokens(logits: Tensor, tgt_out: Tensor) -> Tensor:
    """Return the mean cross-entropy of the real labels."""
    return translation_loss(logits, tgt_out, pad_id=PAD_ID)


@dataclass(frozen=True)
class Fault:
    """One mistake: its name, the wrong line beside the right one, and what it changes.

    Args:
        name: as `diagnose` takes it. wrong, right: one line of code each.
        change: what is done to the model. late: done after training, not before it.
        feed: what the training step makes of the target, (tgt_in, tgt_out). loss: of (logits, tgt_out).
        rate: factor on the learning rate of the recipe. clears: whether gradients are cleared before each step.
        trains: which parameters the optimizer is given. draws: whether each step gets rows of its own.
    """

    name: str
    wrong: str
    right: str
    change: Callable[[Transformer], None] = _unchanged
    late: bool = False
    feed: Feed = shift_right
    loss: Loss = loss_of_real_tokens
    rate: float = 1.0
    clears: bool = True
    trains: Callable[[Transformer], Iterable[nn.Parameter]] = _all_parameters
    draws: bool = True


def not_shifted(tgt: Tensor) -> tuple[Tensor, Tensor]:
    """Return the whole target twice: the decoder reads it, and the same tokens are its labels."""
    return tgt, tgt


def loss_of_all_tokens(logits: Tensor, tgt_out: Tensor) -> Tensor:
    """Return the mean loss over all labels, padding included."""
    return F.cross_entropy(logits.flatten(0, 1), tgt_out.flatten())


def upper_triangle(model: Transformer) -> None:
    """Let each target token see itself and the later ones."""

    def mask(tgt_so_far: Tensor, q_len: int) -> Tensor:
        k_len = tgt_so_far.shape[1]
        visible = torch.ones(q_len, k_len, dtype=torch.bool).triu(k_len - q_len)
        return visible & padding_mask(tgt_so_far, PAD_ID)

    model.tgt_mask = mask


def no_memory_mask(model: Transformer) -> None:
    """Let the decoder read the memory rows of padding too; the encoder keeps its mask."""
    model.memory_mask = lambda src, tgt_so_far, q_len: torch.ones_like(src, dtype=torch.bool)[:, None, None, :]


def _attend(
    layer: MultiHeadAttention, scale: float, axis: int, q: Tensor, k: Tensor, v: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    scores = q @ k.mT * scale
    weights = masked_softmax(scores, mask) if axis == -1 else masked_softmax(scores.mT, mask.mT).mT
    layer.recorder(weights.detach())
    return weights @ v, weights


def _replace_attention(model: Transformer, *, scaled: bool = True, axis: int = -1) -> None:
    for layer in model.modules():
        if isinstance(layer, MultiHeadAttention):
            scale = 1 / math.sqrt(layer.d_k) if scaled else 1.0
            layer._attend_explicitly = partial(_attend, layer, scale, axis)
            layer.recorder = lambda weights: None  # any recorder keeps the layer off the fused kernel


def softmax_over_queries(model: Transformer) -> None:
    """Let the weights of each key sum to one over the queries."""
    _replace_attention(model, axis=-2)


def unscaled_scores(model: Transformer) -> None:
    """Leave out the division by √d_k, in every attention."""
    _replace_attention(model, scaled=False)


def _replace_embedding(model: Transformer, scale: float, with_positions: bool) -> None:
    def embed(embedding: nn.Embedding, ids: Tensor, start: int = 0) -> Tensor:
        x = embedding(ids) * scale
        return model.dropout(model.position(x, start) if with_positions else x)

    model._embed = embed


def lost_positions(model: Transformer) -> None:
    """Compute the sum with the positions, and go on with the vectors without them, on both sides."""
    _replace_embedding(model, math.sqrt(model.config.d_model), with_positions=False)


def small_embeddings(model: Transformer) -> None:
    """Add the positions to the rows of the table as they are, without √d_model."""
    _replace_embedding(model, 1.0, with_positions=True)


def endless_dropout(model: Transformer) -> None:
    """Drop out in evaluation too."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.forward = partial(F.dropout, p=module.p)


def detached_memory(model: Transformer) -> None:
    """Let no gradient pass from the memory back into the encoder."""
    encode = model.encode
    model.encode = lambda src: encode(src).detach()


def no_feed_forward(model: Transformer) -> None:
    """Let every feed-forward sub-layer return zeros; its residual and norm stay."""
    for layer in model.modules():
        if isinstance(layer, FeedForward):
            layer.forward = torch.zeros_like


HEALTHY = Fault("healthy", "", "")
FAULTS = (
    Fault(
        "target not shifted",
        "tgt_in, tgt_out = tgt, tgt",
        "tgt_in, tgt_out = tgt[:, :-1], tgt[:, 1:]",
        feed=not_shifted,
    ),
    Fault(
        "causal mask upside down",
        "visible = torch.ones(q_len, k_len, dtype=torch.bool).triu()",
        "visible = torch.ones(q_len, k_len, dtype=torch.bool).tril()",
        upper_triangle,
    ),
    Fault(
        "softmax over the queries",
        "weights = scores.softmax(dim=-2)",
        "weights = scores.softmax(dim=-1)",
        softmax_over_queries,
    ),
    Fault(
        "padding counted in the loss",
        "loss = F.cross_entropy(logits, labels)",
        "loss = F.cross_entropy(logits, labels, ignore_index=pad_id)",
        loss=loss_of_all_tokens,
    ),
    Fault("scores not scaled", "scores = query @ key.mT", "scores = query @ key.mT / math.sqrt(d_k)", unscaled_scores),
    Fault(
        "dropout in evaluation",
        "x = F.dropout(x, p)",
        "x = F.dropout(x, p, training=self.training)",
        endless_dropout,
        late=True,
    ),
    Fault("positions lost", "self.position(x)", "x = self.position(x)", lost_positions),
    Fault(
        "embeddings not scaled",
        "x = self.embedding(ids)",
        "x = self.embedding(ids) * math.sqrt(d_model)",
        small_embeddings,
    ),
    Fault(
        "memory not masked",
        "x = self.cross_attention(x, memory, memory)",
        "x = self.cross_attention(x, memory, memory, memory_mask)",
        no_memory_mask,
    ),
    Fault(
        "encoder not trained",
        "memory = self.encode(src).detach()",
        "memory = self.encode(src)",
        detached_memory,
    ),
    Fault(
        "feed-forward left out",
        "return self.self_attention_residual(x, attend)",
        "x = self.self_attention_residual(x, attend); return self.feed_forward_residual(x, self.feed_forward)",
        no_feed_forward,
    ),
    Fault(
        "gradients not cleared",
        "loss.backward(); optimizer.step()",
        "optimizer.zero_grad(); loss.backward(); optimizer.step()",
        clears=False,
    ),
    Fault("rate ten times too high", "rate = 0.1", "rate = 0.01", rate=10.0),
    Fault("rate a hundred times too low", "rate = 0.0001", "rate = 0.01", rate=0.01),
)
"""All faults. `patients` does not say which patient has which."""

BY_NAME = {fault.name: fault for fault in (*FAULTS, HEALTHY)}
