"""Learning from judgements of whole texts: which of two is better, or how good each of several is.

`dpo_loss` learns from pairs (Rafailov et al. 2023), `grpo_loss` from rewards (Shao et al. 2024). Both look at the log
probabilities of what was said under the model that learns, and under a frozen copy of what it was, the reference.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from .._validate import check_not_negative, check_positive, check_tensor
from ..model import modern
from .answers import logits_before


def token_log_probs(model: modern.LanguageModel, ids: Tensor, mask: Tensor) -> Tensor:
    """Return log p(token | those before it), [batch, seq_len], where the mask is True, and 0 elsewhere.

    Args:
        ids: [batch, seq_len]. mask: boolean, True for the tokens that the model said or is to be judged by, and not
            for prompts and padding; its first column is False, as nothing predicts the first token.

    Raises:
        TypeError, ValueError: another class of model, ids out of range, or a mask of another type or shape.
    """
    logits = logits_before(model, ids, mask)  # [n, vocab_size]
    chosen = -F.cross_entropy(logits.float() if logits.itemsize < 4 else logits, ids[mask].long(), reduction="none")
    return chosen.new_zeros(ids.shape).masked_scatter(mask, chosen)


def sequence_log_probs(model: modern.LanguageModel, ids: Tensor, mask: Tensor) -> Tensor:
    """Return the log probability of all masked tokens of each row together, [batch]; see `token_log_probs`."""
    return token_log_probs(model, ids, mask).sum(dim=1)


def dpo_loss(
    chosen: Tensor, rejected: Tensor, reference_chosen: Tensor, reference_rejected: Tensor, *, beta: float = 0.1
) -> Tensor:
    """Return the mean of −log σ(β · [(chosen − reference) − (rejected − reference)]) (Rafailov et al. 2023, eq. 7).

    It is log 2 while the model is still its reference.

    Args:
        chosen, rejected: log p of the better and of the worse answer of each pair, [batch], by `sequence_log_probs`.
        reference_chosen, reference_rejected: the same under the reference, [batch]. beta: β; the smaller, the further
            the model may go from the reference.

    Raises:
        TypeError, ValueError: they are not tensors of one shape [batch], or beta is not positive.
    """
    named = {"rejected": rejected, "reference_chosen": reference_chosen, "reference_rejected": reference_rejected}
    check_tensor("chosen", chosen, rank=1)
    for name, value in named.items():
        _check_shape(name, value, "chosen", chosen)
    margin = (chosen - reference_chosen) - (rejected - reference_rejected)
    return -F.logsigmoid(check_positive("beta", beta) * margin).mean()


def group_advantages(rewards: Tensor, *, eps: float = 1e-4) -> Tensor:
    """Return (r − mean) / (standard deviation + ε), each row by itself (Shao et al. 2024, §4.1.2).

    A group whose answers are all equally good says nothing: its advantages are 0.

    Args:
        rewards: [groups, size], floats; a row holds the rewards of several answers to one prompt.

    Raises:
        TypeError, ValueError: rewards are not floats [groups, size], or a group has one answer only.
    """
    if not check_tensor("rewards", rewards, rank=2).is_floating_point():
        raise TypeError(f"rewards must hold floating-point numbers, got dtype {rewards.dtype}")
    if rewards.shape[1] < 2:
        raise ValueError(f"rewards must have at least 2 answers in a group, got shape {tuple(rewards.shape)}")
    return (rewards - rewards.mean(dim=1, keepdim=True)) / (rewards.std(dim=1, keepdim=True) + eps)


def kl_estimate(log_probs: Tensor, reference: Tensor) -> Tensor:
    """Return p_ref / p − log(p_ref / p) − 1 for each token (Shao et al. 2024, eq. 4; also called k3).

    It is never negative and 0 where both agree; over tokens that the model itself draws, its expectation is the
    divergence KL(model ‖ reference). As a loss, with the tokens as they are, it has the gradient of the other one,
    KL(reference ‖ model).

    Args:
        log_probs, reference: log p of the same tokens under model and reference, of one shape.
    """
    _check_shape("reference", reference, "log_probs", check_tensor("log_probs", log_probs))
    log_ratio = reference - log_probs
    return log_ratio.exp() - log_ratio - 1


def grpo_loss(
    log_probs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    old: Tensor | None = None,
    reference: Tensor | None = None,
    beta: float = 0.0,
    clip: float | None = None,
) -> Tensor:
    """Return the negative mean over rows of the mean over a row's tokens of ρ · advantage − β · KL.

    This is what Shao et al. (2024, eq. 3) maximise. ρ = p / p_old is 1 in the first step after the answers were drawn,
    and its gradient that of log p; so with β = 0 it is the plain policy gradient, advantage · ∇ log p (Williams 1992).

    Args:
        log_probs: log p of each token, [batch, seq_len], by `token_log_probs`. mask: True where a token counts.
        advantages: [batch], one for each row; those of `group_advantages`, flattened.
        old: log_probs when the answers were drawn, where several steps are taken with the same answers.
        reference: log_probs under the reference; with it, β times `kl_estimate` is paid for leaving it.
        clip: ε: where ρ has left [1 − ε, 1 + ε] on the side that the advantage asks for, nothing more is gained.

    Raises:
        TypeError, ValueError: the shapes do not fit, a row has no token, beta or clip is negative, or beta is not 0
            without a reference.
    """
    check_tensor("log_probs", log_probs, rank=2)
    for name, value in {"mask": mask, "old": old, "reference": reference}.items():
        if value is not None:
            _check_shape(name, value, "log_probs", log_probs)
    if check_tensor("advantages", advantages).shape != log_probs.shape[:1]:
        raise ValueError(f"advantages must have shape ({len(log_probs)},), got {tuple(advantages.shape)}")
    if check_not_negative("beta", beta) and reference is None:
        raise ValueError(f"reference must be given with beta = {beta}")
    gain = _gain(log_probs, log_probs.detach() if old is None else old.detach(), advantages[:, None], clip)
    if reference is not None:
        gain = gain - beta * kl_estimate(log_probs, reference.detach())
    return -_mean_of_rows(gain, mask)


def _gain(log_probs: Tensor, old: Tensor, advantage: Tensor, clip: float | None) -> Tensor:
    """Return min(ρ A, clip(ρ, 1 − ε, 1 + ε) A) of each token (Schulman et al. 2017, eq. 7)."""
    ratio = (log_probs - old).exp()
    if clip is None:
        return ratio * advantage
    clipped = ratio.clamp(1 - check_positive("clip", clip), 1 + clip)
    return (ratio * advantage).minimum(clipped * advantage)


def _mean_of_rows(values: Tensor, mask: Tensor) -> Tensor:
    """Return the mean over rows of the mean over a row's masked tokens; values and mask are [batch, seq_len]."""
    tokens = mask.sum(dim=1)
    if not tokens.all():
        raise ValueError("mask must be True for a token in every row, got a row without")
    return ((values * mask).sum(dim=1) / tokens).mean()


def _check_shape(name: str, value: object, other: str, like: Tensor) -> None:
    shape = check_tensor(name, value).shape
    if shape != like.shape:
        raise ValueError(f"{name} must have the shape of {other} {tuple(like.shape)}, got {tuple(shape)}")
