"""Learning to answer: prompts that are read and answers that are learned, for a `tl.modern.LanguageModel`.

A row is a prompt and its answer, one after the other. Its labels are the same ids where the answer is and pad_id
elsewhere, so that the loss counts the answer's tokens alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .._lists import check_items, check_rows
from .._validate import check_id_batch, check_id_range, check_int, check_mask
from ..data.batches import Batches
from ..model import modern

Example = tuple[Sequence[int], Sequence[int]]  # ids of a prompt, ids of its answer with the token that ends it


def answer_batches(examples: Iterable[Example], batch_size: int, *, pad_id: int, seed: int = 0) -> Batches:
    """Return batches (ids, labels), both [batch, seq_len], of examples of similar length, in another order each epoch.

    Each example has a row of its own: `modern.LanguageModel` takes no mask with which two could share one.

    Args:
        examples: pairs (prompt, answer) of ids, at least one each; the answer has the token that ends it.
        batch_size, seed: as for `Batches`. pad_id: fills up shorter rows, and is the label of what does not count.

    Raises:
        TypeError, ValueError: an example is no pair of ids, a prompt or an answer is empty, or an answer has pad_id,
            which would not count.
    """
    check_int("pad_id", pad_id, minimum=0)
    pairs = [_pair(i, example) for i, example in enumerate(check_items("examples", examples, "(prompt, answer)"))]
    prompts = check_rows("prompt", [prompt for prompt, _ in pairs], fewest=1)
    answers = check_rows("answer", [answer for _, answer in pairs], fewest=1)
    for i, answer in enumerate(answers):
        if pad_id in answer:
            raise ValueError(f"pad_id must be no token of an answer, got {pad_id}, which is in example {i}")
    both = list(zip(prompts, answers, strict=True))
    rows = [prompt + answer for prompt, answer in both]
    labels = [[pad_id] * len(prompt) + answer for prompt, answer in both]
    return Batches(rows, labels, batch_size, seed=seed, pad_id=pad_id)


def _pair(i: int, example: object) -> Example:
    if not isinstance(example, (tuple, list)) or len(example) != 2:
        raise TypeError(f"examples must be pairs (prompt, answer) of ids, got {example!r} at index {i}")
    return example[0], example[1]


def logits_before(model: modern.LanguageModel, ids: Tensor, counted: Tensor) -> Tensor:
    """Return the logits [n, vocab_size] from which each counted token is predicted, row by row.

    The head, a large part of a small model's work, runs only there.

    Args:
        ids: [batch, seq_len]. counted: boolean, of the same shape; the first column is False, as no token is before it.

    Raises:
        TypeError, ValueError: another class of model, ids out of range, or a mask of another type or shape.
    """
    if not isinstance(model, modern.LanguageModel):
        raise TypeError(f"model must be a tl.modern.LanguageModel, got {type(model).__name__}")
    ids = check_id_batch("ids", ids)
    if check_mask("counted", counted).shape != ids.shape:
        raise ValueError(f"counted must have the shape of ids {tuple(ids.shape)}, got {tuple(counted.shape)}")
    if counted[:, 0].any():
        raise ValueError("counted must be False in its first column: nothing predicts the first token")
    logits: Tensor = model.head(model.states(ids[:, :-1])[counted[:, 1:]])
    return logits


class AnswerLoss(nn.Module):
    """A language model and the loss of its answers as one module, as `TrainingLoss` is for translators.

    Args:
        model: a `tl.modern.LanguageModel`. pad_id: the label of what does not count.
    """

    def __init__(self, model: modern.LanguageModel, pad_id: int) -> None:
        super().__init__()
        self.model, self.pad_id = model, check_int("pad_id", pad_id, minimum=0)

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        """Return the cross-entropy in nats, summed over the labels that count; ids and labels are [batch, seq_len]."""
        counted = labels != self.pad_id
        logits = logits_before(self.model, ids, counted)  # [n, vocab_size]
        return F.cross_entropy(
            logits.float() if logits.dtype == torch.bfloat16 else logits, labels[counted], reduction="sum"
        )


@torch.no_grad()
def answer_loss(model: modern.LanguageModel, examples: Iterable[Example], *, pad_id: int, batch_size: int = 8) -> float:
    """Return the cross-entropy per answer token over all examples, in nats; arguments as for `answer_batches`."""
    loss, summed, tokens = AnswerLoss(model, pad_id), 0.0, 0
    for ids, labels in answer_batches(examples, batch_size, pad_id=pad_id):
        check_id_range("ids", ids, model.config.vocab_size)
        device = model.embedding.weight.device
        summed += float(loss(ids.to(device), labels.to(device)))
        tokens += int((labels != pad_id).sum())
    return summed / tokens
