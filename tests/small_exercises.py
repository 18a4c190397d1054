"""Two small exercises on which the machinery is tried: one with gradients, one with a probe.

They have ids of notebook 04, and take the places of those two where `use` says so.
"""

from __future__ import annotations

import pytest
import torch

from transformer_lib.course.exercises import registry
from transformer_lib.course.exercises.model import Case, Exercise, normal
from transformer_lib.course.exercises.probes import weights_sum
from transformer_lib.course.exercises.slips import slips

INF = float("inf")


def scaled_scores(query, key):
    """Return the dot product of every query with every key, divided by √d_k.

    query: [..., q_len, d_k]; key: [..., k_len, d_k]. Returns [..., q_len, k_len].
    """
    return torch.einsum("...id,...jd->...ij", query, key) * query.shape[-1] ** -0.5


def _score_cases():
    return [
        Case("2 queries, 2 keys, d_k = 2", tuple(normal(1, (2, 2), (2, 2)))),
        Case("3 queries, 5 keys, d_k = 7", tuple(normal(2, (3, 7), (5, 7)))),
        Case("5 queries, 5 keys, d_k = 5", tuple(normal(3, (5, 5), (5, 5)))),
        Case("a batch of 2", tuple(normal(4, (2, 3, 5), (2, 7, 5)))),
        Case("a batch of 3 with 2 heads", tuple(normal(5, (3, 2, 5, 11), (3, 2, 7, 11)))),
        Case("one query, one key", tuple(normal(6, (1, 3), (1, 3)))),
    ]


SCORES = Exercise(
    "04.1", "Scaled scores", 5, 1, scaled_scores, _score_cases,
    slips(
        "query, key", """
            scores = query @ key.transpose(-2, -1)
            return scores / query.shape[-1] ** 0.5
        """,
        ("d_k", " ** 0.5", "", "You divided by d_k; the formula divides by √d_k."),
        ("unscaled", " / query.shape[-1] ** 0.5", "", "The scores are not scaled: divide by √d_k."),
        ("root of 3", "query.shape[-1]", "3",
         "√3 is the root of d_k in our example; take it from the tensor: query.shape[-1]."),
        ("first axis", "shape[-1]", "shape[0]",
         "You divided by the root of the first axis, which is the batch where there is one; d_k is the last axis."),
        ("axis 1", "shape[-1]", "shape[1]",
         "Right for one sentence; with a batch in front axis 1 counts queries, or heads. d_k is the last axis, "
         "query.shape[-1]."),
        ("softmax", "scores / query.shape[-1] ** 0.5", "(scores / query.shape[-1] ** 0.5).softmax(-1)",
         "You returned the weights; return the scores, before the softmax."),
        ("k_len", "query.shape[-1]", "key.shape[-2]",
         "You divided by the root of the number of keys; d_k is the length of one key (the last axis)."),
        ("no transpose", ".transpose(-2, -1)", "",
         "You multiplied by the keys without transposing them (a reshape does not); a dot product sums over d_k."),
        ("all axes", "transpose(-2, -1)", "permute(*range(key.dim())[::-1])",
         "Right without a batch, but .T turns all axes around: swap only the last two, key.transpose(-2, -1)."),
        ("swapped", "query @ key.transpose(-2, -1)", "key @ query.transpose(-2, -1)",
         "The result has the right values transposed: queries are rows, keys are columns."),
        ("half", "** 0.5", "** 1 / 2",
         "You divided by 2 d_k: in Python d_k ** 1 / 2 is (d_k ** 1) / 2. Write d_k ** 0.5."),
    ),
    gradients=("query", "key"),
)  # fmt: skip


def stable_softmax(scores):
    """Return the softmax over the last axis, also for scores in the thousands; a score of -inf gets weight 0.

    scores: [..., k_len], with at least one finite entry in each row. Returns the same shape.
    """
    return torch.nn.functional.softmax(scores, dim=-1)


def _softmax_cases():
    (square,), (batch,) = normal(7, (3, 3)), normal(8, (2, 3, 5))
    masked = normal(9, (5, 7))[0]
    masked[0, 2:] = masked[3, :4] = -INF
    return [
        Case("one row", (torch.tensor([2.0, 1.0, 0.0]),)),
        Case("3 by 3", (square,)),
        Case("a batch of 2", (batch,)),
        Case("scores in the thousands", (torch.tensor([[1000.0, 1001.0, 1002.0], [999.0, 1002.0, 1000.0]]),)),
        Case("rows of very different size", (torch.tensor([[1000.0, 1001.0], [-1000.0, -1002.0], [0.0, 3.0]]),)),
        Case("very negative scores", (torch.tensor([[-2000.0, -2001.0, -2003.0]]),)),
        Case("one score far below the others", (torch.tensor([[0.0, 1.0, 2.0, -100.0]]),)),
        Case("some scores are -inf", (masked,)),
        Case("-inf among very negative scores", (torch.tensor([[-2000.0, -2001.0, -INF], [0.0, 1.0, -INF]]),)),
    ]


SOFTMAX = Exercise(
    "04.3", "A softmax that does not overflow", 10, 2, stable_softmax, _softmax_cases,
    slips(
        "scores", """
            e = (scores - scores.amax(-1, keepdim=True)).exp()
            return e / e.sum(-1, keepdim=True)
        """,
        ("naive", " - scores.amax(-1, keepdim=True)", "",
         "exp overflows for scores in the thousands (inf / inf is NaN), and for very negative ones every exp is 0 "
         "(0 / 0 is NaN, too): subtract each row's largest score first."),
        ("nan replaced", "return e / e.sum(-1, keepdim=True)",
         "return (scores.exp() / scores.exp().sum(-1, keepdim=True)).nan_to_num(0.0)",
         "You replaced NaN by 0 afterwards, so such a row has no weights at all. Subtract each row's largest score "
         "before exp."),
        ("mean", "amax", "mean",
         "You subtracted the mean of each row; only subtracting the largest score keeps exp at most 1 (and the mean of "
         "a row with -inf is -inf)."),
        ("global max", "amax(-1, keepdim=True)", "max()",
         "You subtracted the largest score of all rows; in a row far below it every exp underflows to 0, and 0 / 0 is "
         "NaN. Take the largest score of each row."),
    )
    + slips(
        "scores", "return scores.softmax(-1)",
        ("first axis", "-1", "0",
         "You took the softmax over the first axis, the batch where there is one; keys are the last."),
        ("no inf", "scores", "scores.masked_fill(scores == -torch.inf, 0.0)",
         "You replaced -inf by 0, but exp(0) = 1: a score of -inf must get weight exp(-inf) = 0."),
    ),
    probes=(weights_sum(),),
)  # fmt: skip


def use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `check` and the others find these two under their ids."""
    small = {exercise.id: exercise for exercise in (SCORES, SOFTMAX)}
    known = tuple(small.get(exercise.id, exercise) for exercise in registry.all_exercises())
    monkeypatch.setattr(registry, "all_exercises", lambda: known)
