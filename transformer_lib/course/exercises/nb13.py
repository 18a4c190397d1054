"""The exercises of notebook 13: training."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ..lab import valley
from .model import Case, Exercise, integers, normal
from .slips import slips

# 13.1 The loss of a batch ---------------------------------------------------------------------------------------------


def masked_cross_entropy(logits, tgt_out, pad_id):
    """Return the mean negative log-probability (natural logarithm) of the right tokens; padding does not count.

    logits: [batch, tgt_len, vocab_size]; tgt_out: [batch, tgt_len] integers. Returns a tensor without axes.
    """
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), tgt_out.flatten(), ignore_index=pad_id)


def _loss_cases():
    labels = torch.tensor([[4, 2, 0, 0, 0], [3, 1, 4, 2, 0], [2, 3, 3, 1, 4]])
    other = torch.tensor([[0, 2, 3, 3], [4, 0, 1, 3]])
    large = 100 * normal(5, (2, 3, 5))[0]
    return [
        Case("one sentence", (normal(3, (1, 2, 3))[0], torch.tensor([[2, 0]]), 0)),
        Case("3 sentences, padded", (normal(4, (3, 5, 7))[0], labels, 0)),
        Case("logits in the hundreds", (large, torch.tensor([[1, 2, 0], [4, 3, 2]]), 0)),
        Case("the padding id is 3", (normal(6, (2, 4, 5))[0], other, 3)),
        Case("no padding", (normal(7, (2, 3, 11))[0], integers(8, (2, 3), 1, 11), 0)),
        Case("one sentence is padding only", (normal(9, (2, 2, 3))[0], torch.tensor([[0, 0], [1, 2]]), 0)),
        Case("a label whose loss is 0", (normal(18, (1, 3, 5))[0] + 200 * _certain(), torch.tensor([[3, 1, 2]]), 0)),
    ]


def _certain():
    """Return zeros [1, 3, 5] with a one for the label 1 at position 1."""
    return torch.nn.functional.one_hot(torch.tensor([[8, 1, 8]]), 9)[..., :5]


EXERCISE_1 = Exercise(
    "13.1", "The loss of a batch", 10, 2, masked_cross_entropy, _loss_cases,
    slips(
        "logits, tgt_out, pad_id", """
            right = logits.log_softmax(dim=-1).gather(-1, tgt_out[..., None])[..., 0]
            return -right[tgt_out != pad_id].mean()
        """,
        ("counts padding", "[tgt_out != pad_id]", "",
         "Padding counts in your loss: leave out the positions where tgt_out is pad_id."),
        ("sign", "return -", "return ", "The minus is missing: log-probabilities are negative, a loss is positive."),
        ("underflow", "log_softmax(dim=-1).gather(-1, tgt_out[..., None])[..., 0]",
         "softmax(dim=-1).gather(-1, tgt_out[..., None])[..., 0].log()",
         "Right for small logits, but a probability underflows to 0 and its logarithm is infinite: use log_softmax."),
    )
    + slips(
        "logits, tgt_out, pad_id", """
            real = tgt_out != pad_id
            losses = -logits.log_softmax(dim=-1).gather(-1, tgt_out[..., None])[..., 0] * real
            return losses.sum() / real.sum()
        """,
        ("divides by all", "real.sum()", "real.numel()",
         "You left padding out of the sum but divided by the number of all positions, padding included."),
        ("left out by the loss", "losses.sum() / real.sum()", "losses[losses != 0].mean()",
         "You left out real labels whose loss is 0; leave out the positions where tgt_out is pad_id, and no others."),
    )
    + slips(
        "logits, tgt_out, pad_id", """
            loss = torch.nn.functional.cross_entropy
            return loss(logits.flatten(0, 1), tgt_out.flatten(), ignore_index=pad_id)
        """,
        ("twice", "(logits.flatten(0, 1)", "(logits.flatten(0, 1).softmax(dim=-1)",
         "You took a softmax before a loss that takes one itself: pass it the logits."),
        ("pad is 0", "pad_id", "0", "You took 0 for the padding id; use pad_id."),
        ("shifted again", "logits.flatten(0, 1), tgt_out.flatten()",
         "logits[:, :-1].flatten(0, 1), tgt_out[:, 1:].flatten()",
         "You shifted the labels; tgt_out is shifted already, so row t of the logits belongs to its column t."),
        ("per sentence, with NaN", "loss(logits.flatten(0, 1), tgt_out.flatten(), ignore_index=pad_id)",
         "torch.stack([loss(z, y, ignore_index=pad_id) for z, y in zip(logits, tgt_out)]).mean()",
         "You averaged each sentence first; every label counts alike, so divide once by all real labels."),
    ),
    gradients=("logits",), part="masked_cross_entropy",
)  # fmt: skip


# 13.2 Early stopping -------------------------------------------------------------------------------------------------


def early_stopping(losses, patience):
    """Return the epoch whose weights are kept, and the one after which training stops, both counted from 1.

    losses: the validation loss after each epoch, a list of numbers; patience: how many epochs in a row may bring
    nothing better than the best so far, at least 1. A run may also reach its last epoch. Returns (kept, stopped).
    """
    for stopped in range(1, len(losses) + 1):
        so_far = losses[:stopped]
        kept = so_far.index(min(so_far)) + 1
        if stopped - kept >= patience:
            return kept, stopped
    return kept, len(losses)


def _curve_cases():
    return [
        Case("down, then up", ([5.0, 3.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2)),
        Case("better again in time", ([5.0, 3.0, 4.0, 2.0, 3.0, 4.0, 5.0], 2)),
        Case("better again too late", ([4.0, 3.0, 5.0, 5.0, 1.0, 0.5, 0.25], 2)),
        Case("better each time", ([5.0, 4.0, 3.0, 2.0], 2)),
        Case("a tie", ([3.0, 2.0, 2.0, 2.0, 1.0], 2)),
        Case("patience 1", ([3.0, 2.0, 4.0, 1.0], 1)),
        Case("the patience is not used up", ([3.0, 1.0, 2.0, 2.5], 3)),
        Case("the first epoch is the best", ([1.0, 2.0, 3.0, 4.0, 5.0], 3)),
        Case("worse than the best, but falling", ([2.0, 1.0, 5.0, 4.0, 3.0, 2.0, 1.5], 3)),
        Case("a single epoch", ([2.0], 2)),
    ]


EXERCISE_2 = Exercise(
    "13.2", "Early stopping", 10, 2, early_stopping, _curve_cases,
    slips(
        "losses, patience", """
            best = 0
            for epoch in range(len(losses)):
                if losses[epoch] < losses[best]:
                    best = epoch
                if epoch - best >= patience:
                    break
            return best + 1, epoch + 1
        """,
        ("the future", "best + 1", "losses.index(min(losses)) + 1",
         "You kept the best of all epochs, but those after the stop are never trained."),
        ("the last", "best + 1", "epoch + 1", "You kept the epoch at which training stopped; keep the best one."),
        ("from 0", "best + 1, epoch + 1", "best, epoch", "You counted the epochs from 0; count them from 1."),
        ("a tie is better", "losses[epoch] < ", "losses[epoch] <= ",
         "You took a tie for an improvement; only a lower loss is better."),
        ("one later", ">= patience", "> patience",
         "You stopped one epoch too late: patience epochs in a row without a better loss are enough."),
        ("past the end", "epoch + 1", "best + 1 + patience",
         "Your run goes on after the last epoch; there are only len(losses)."),
    )
    + slips(
        "losses, patience", """
            lowest, kept, waited = math.inf, 0, 0
            for epoch, loss in enumerate(losses, start=1):
                if loss < lowest:
                    lowest, kept, waited = loss, epoch, 0
                else:
                    waited += 1
                if waited == patience:
                    break
            return kept, epoch
        """,
        ("compared with the last", "    else:\n        waited += 1",
         "    waited = waited + 1 if epoch > 1 and loss >= losses[epoch - 2] else 0",
         "You compared each loss with the one before it; compare it with the best so far."),
        ("never starts over", "kept, waited = loss, epoch, 0", "kept = loss, epoch",
         "You counted all epochs without a better loss; a better one starts the count again."),
    ),
    returns=("kept", "stopped"),
)  # fmt: skip


# 13.3 Label smoothing ------------------------------------------------------------------------------------------------


def label_smoothed_loss(logits, targets, epsilon):
    """Return the mean cross-entropy with a smoothed target: 1 - epsilon for the right token, plus epsilon / vocab_size
    for every token, the right one included.

    logits: [n, vocab_size]; targets: [n] integers; epsilon: from 0 to 1. Returns a tensor without axes.
    """
    return torch.nn.functional.cross_entropy(logits, targets, label_smoothing=epsilon)


def _smoothing_cases():
    return [
        Case("one token of 3", (normal(10, (1, 3))[0], torch.tensor([1]), 0.1)),
        Case("5 tokens of 7, epsilon 0.1", (normal(11, (5, 7))[0], integers(12, (5,), 0, 7), 0.1)),
        Case("3 tokens of 11, epsilon 0.4", (normal(13, (3, 11))[0], integers(14, (3,), 0, 11), 0.4)),
        Case("no smoothing", (normal(15, (2, 5))[0], torch.tensor([4, 0]), 0.0)),
        Case("nothing but smoothing", (normal(16, (2, 3))[0], torch.tensor([2, 1]), 1.0)),
        Case("logits in the hundreds", (100 * normal(17, (3, 5))[0], torch.tensor([2, 1, 4]), 0.2)),
    ]


EXERCISE_3 = Exercise(
    "13.3", "Label smoothing", 8, 2, label_smoothed_loss, _smoothing_cases,
    slips(
        "logits, targets, epsilon", """
            log_p = logits.log_softmax(dim=-1)
            size = logits.shape[-1]
            hot = torch.nn.functional.one_hot(targets, size)
            q = (1 - epsilon) * hot + epsilon / size
            return -(q * log_p).sum(dim=-1).mean()
        """,
        ("others only", "+ epsilon / size", "+ epsilon / (size - 1) * (1 - hot)",
         "You spread epsilon over the other tokens only; here the right one gets its share too: "
         "1 - epsilon + epsilon / vocab_size."),
        ("too little", "+ epsilon / size", "+ epsilon / size * (1 - hot)",
         "Your target sums to less than one: the right token gets 1 - epsilon and epsilon / vocab_size."),
        ("mean over the vocabulary", ".sum(dim=-1).mean()", ".mean()",
         "You took the mean over the vocabulary, too; sum over its words, and take the mean over the tokens."),
        ("whole epsilon", "epsilon / size", "epsilon",
         "You gave every other token epsilon; they share it, epsilon / vocab_size each."),
        ("not reduced", "(1 - epsilon) * hot", "hot",
         "Your target sums to more than one: the right token gets 1 - epsilon and epsilon / vocab_size."),
        ("floor subtracted", "-(q * log_p)", "(q * (q.clamp(min=1e-30).log() - log_p))",
         "You subtracted the floor, the entropy of q; the loss is the sum over -q ln p alone."),
    )
    + slips(
        "logits, targets, epsilon", """
            log_p = logits.log_softmax(dim=-1)
            right = log_p.gather(-1, targets[:, None])[:, 0]
            return -((1 - epsilon) * right + epsilon * log_p.mean(dim=-1)).mean()
        """,
        ("underflow", "log_softmax(dim=-1)", "softmax(dim=-1).log()",
         "Right for small logits, but a probability underflows to 0 and its logarithm is infinite: use log_softmax."),
    ),
    gradients=("logits",),
)  # fmt: skip


# 13.4 Draw whole groups ----------------------------------------------------------------------------------------------


def grouped_interval(right, groups, draws):
    """Return the 2.5 % and 97.5 % quantiles of the share of right sentences, when whole groups are drawn.

    right: booleans [n]; groups: the number of each sentence's group, 0 to n_groups - 1, [n]; draws: group numbers
    [n_draws, n_groups], a drawing per row; a group drawn twice counts twice. Returns a tensor [2].
    """
    members = [right[groups == group].double() for group in range(int(groups.max()) + 1)]
    shares = torch.stack([torch.cat([members[group] for group in row]).mean() for row in draws.tolist()])
    return torch.quantile(shares, torch.tensor([0.025, 0.975], dtype=shares.dtype))


def _group_case(label, seed, sizes, n_draws, chance=5):
    groups = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    order = torch.argsort(normal(seed, (len(groups),))[0])
    luck = integers(seed + 1, (len(sizes),), 0, 10)[groups]  # of the group
    right = (integers(seed + 2, (len(groups),), 0, 10) + luck) > 2 * chance - 1
    right[0], right[-1] = True, False  # neither all nor none
    return Case(label, (right[order], groups[order], integers(seed + 3, (n_draws, len(sizes)), 0, len(sizes))))


def _group_cases():
    whole = torch.tensor([True, True, True, False, False, False, False, True])
    return [
        Case(
            "3 groups, all right or all wrong",
            (whole, torch.tensor([0, 0, 0, 1, 1, 1, 1, 2]), torch.tensor([[0, 0, 1], [1, 1, 2], [0, 1, 2], [2, 2, 0]])),
        ),
        _group_case("5 groups of equal size", 1301, [3, 3, 3, 3, 3], 41),
        _group_case("7 groups of different sizes", 1311, [1, 2, 11, 3, 7, 5, 2], 61),
        _group_case("2 groups, one much larger", 1321, [2, 17], 23),
        _group_case("as many drawings as groups", 1331, [5, 1, 2, 3, 13], 5),
        _group_case("a group for each sentence", 1341, [1] * 11, 41),
    ]


EXERCISE_4 = Exercise(
    "13.4", "Draw whole groups", 12, 3, grouped_interval, _group_cases,
    slips(
        "right, groups, draws", """
            sizes = torch.bincount(groups).double()
            hits = torch.bincount(groups, weights=right.double())
            shares = hits[draws].sum(dim=-1) / sizes[draws].sum(dim=-1)
            ends = torch.tensor([0.025, 0.975], dtype=shares.dtype)
            return shares.quantile(ends)
        """,
        ("sentences", "hits[draws].sum(dim=-1) / sizes[draws].sum(dim=-1)", "right.double()[draws].mean(dim=-1)",
         "You took draws for numbers of sentences; they are numbers of groups."),
        ("mean of shares", "hits[draws].sum(dim=-1) / sizes[draws].sum(dim=-1)", "(hits / sizes)[draws].mean(dim=-1)",
         "You gave each group the same weight; divide all right sentences drawn by all sentences drawn."),
        ("divides by n", "sizes[draws].sum(dim=-1)", "len(right)",
         "You divided by the number of all sentences; divide by how many sentences were drawn."),
        ("once each", "hits[draws].sum(dim=-1) / sizes[draws].sum(dim=-1)",
         "torch.stack([right[torch.isin(groups, row)].double().mean() for row in draws])",
         "A group that is drawn twice counts twice; you counted it once."),
        ("90 %", "0.025, 0.975", "0.05, 0.95",
         "Your quantiles are 5 % and 95 %; between 2.5 % and 97.5 % lie 95 % of the drawings."),
        ("1.96 deviations", "shares.quantile(ends)", "shares.mean() + torch.tensor([-1.96, 1.96]) * shares.std()",
         "You returned the mean plus and minus 1.96 standard deviations; return quantiles."),
    ),
    rtol=1e-5,  # shares may be kept in float32, whatever the quantiles are
)  # fmt: skip

# 13.5 The loop --------------------------------------------------------------------------------------------------------


class Fit(nn.Module):
    """A model of two parameters, weight [d] and bias [1], whose loss is a mean squared error."""

    given_to_be_trained = True  # so every call gets a copy

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(weight.clone()), nn.Parameter(torch.zeros(1, dtype=weight.dtype))

    def loss(self, src: torch.Tensor, tgt: torch.Tensor) -> torch.Tensor:
        """Return the mean squared error for src [batch, d] and tgt [batch]."""
        return (src @ self.weight + self.bias - tgt).square().mean()


def train(model, batches, rates):
    """Take one step of Adam (betas 0.9 and 0.98, eps 1e-9) for each batch, with the rate of that step; before it, clip
    the gradient to norm 1, that of all parameters together.

    model: a torch module; model.loss(src, tgt) is its loss; batches: pairs (src, tgt); rates: as many numbers.
    Returns a tensor [steps]: the loss of each batch, before its step.
    """
    return _trained(model, batches, rates)


def _trained(model: Any, batches: Any, rates: Any) -> torch.Tensor:
    adam = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    losses = []
    for (src, tgt), rate in zip(batches, rates, strict=True):
        loss = model.loss(src, tgt)
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in adam.param_groups:
            group["lr"] = rate
        adam.step()
        losses.append(loss.item())
    return torch.tensor(losses)


def _fit_case(label, seed, size, rates, scale):
    weight, *numbers = normal(seed, (size,), *[(5, size + 1)] * len(rates))
    return Case(label, (Fit(weight), [(scale * rows[:, :size], scale * rows[:, size]) for rows in numbers], rates))


def _train_cases():
    rising = [0.02 * step for step in range(1, 8)]
    return [
        _fit_case("3 steps, a gradient longer than 1", 1351, 2, [0.1, 0.2, 0.1], 2.0),
        _fit_case("7 steps, a rising rate", 1361, 3, rising, 1.0),
        _fit_case("11 steps, short gradients", 1371, 2, [0.05] * 11, 0.2),
        _fit_case("5 steps, a gradient of 100 and more", 1381, 5, [0.3, 0.2, 0.1, 0.05, 0.0], 7.0),
        _fit_case("one step", 1391, 3, [0.5], 1.0),
        _fit_case("13 steps", 1401, 7, [0.1] * 13, 1.0),
    ]


_LOOP = """
    adam = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    losses = []
    for (src, tgt), rate in zip(batches, rates):
        loss = model.loss(src, tgt)
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.param_groups[0]["lr"] = rate
        adam.step()
        losses.append(loss.item())
    return torch.tensor(losses)
"""

EXERCISE_5 = Exercise(
    "13.5", "The loop", 10, 2, train, _train_cases,
    slips(
        "model, batches, rates", _LOOP,
        ("gradients add up", "    adam.zero_grad()\n", "",
         "Your gradients add up from step to step: set them to zero before each backward pass."),
        ("no clipping", "    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n", "",
         "A gradient longer than 1 is not clipped: call clip_grad_norm_ between backward and step."),
        ("clips each number", "clip_grad_norm_", "clip_grad_value_",
         "You clip each number of the gradient by itself; clip its norm, so that its direction stays."),
        ("clips each parameter", "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
         "[torch.nn.utils.clip_grad_norm_(one, 1.0) for one in model.parameters()]",
         "You clip each parameter by itself; the norm is that of all parameters together."),
        ("another memory", "betas=(0.9, 0.98), ", "",
         "Adam has its default betas; here they are 0.9 and 0.98."),
        ("one rate", 'adam.param_groups[0]["lr"] = rate', 'adam.param_groups[0]["lr"] = rates[0]',
         "You take the first rate for all steps; each step has a rate of its own."),
        ("a step late", "    adam.param_groups[0][\"lr\"] = rate\n    adam.step()\n",
         "    adam.step()\n    adam.param_groups[0][\"lr\"] = rate\n",
         "You set the rate after the step, so it comes one step late, and the first is Adam's own."),
        ("a new Adam each step", "    adam.zero_grad()",
         "    adam = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)\n    adam.zero_grad()",
         "You make a new Adam in each step, so it forgets its means: make one before the loop."),
        ("the loss afterwards", "loss.item()", "model.loss(src, tgt).item()",
         "You measure the loss after the step; keep the one whose gradient made the step."),
    ),
)  # fmt: skip


# 13.6 Plan the rate ---------------------------------------------------------------------------------------------------

START = 0.05  # the first share at most
TARGET = 0.4  # the mean loss to get below


def plan(last):
    """Return `last` numbers, the rate of each step as a share of its peak, from 0 to 1: the first at most 0.05, and the
    mean loss after these steps of gradient descent in the noisy valley below 0.40.

    last: how many steps, 200 or more. Returns a list.
    """
    rise = last // 2
    return [step / rise if step <= rise else (last - step) / (last - rise) for step in range(1, last + 1)]


def _not_planned(last: int, got: Any) -> str | None:
    """Say what keeps a plan from being one that is asked for, or return None."""
    shares = [float(share) for share in (got.tolist() if hasattr(got, "tolist") else got)]
    if len(shares) != last:
        return f"Your plan has {len(shares)} numbers, one for each of {last} steps is asked for."
    if not all(0 <= share <= 1 for share in shares):
        return "A share is below 0 or above 1: the peak is given, and you decide which share of it each step gets."
    if shares[0] > START:
        return f"Your first share is {shares[0]:.2f}, which is too bold: start with at most {START}."
    reached = valley.after(shares)
    if reached < TARGET:
        return None
    return f"With your plan of {len(shares)} steps the mean loss is {reached:.2f}; get it below {TARGET:.2f}."


def _plan_cases():
    return [Case("200 steps", (200,)), Case("300 steps", (300,)), Case("509 steps", (509,)), Case("801 steps", (801,))]


EXERCISE_6 = Exercise(
    "13.6", "Plan the rate", 10, 2, plan, _plan_cases,
    slips(
        "last", """
            rise = last // 4
            up = [step / rise for step in range(1, rise + 1)]
            down = [(last - step) / (last - rise) for step in range(rise + 1, last + 1)]
            return up + down
        """,
        ("no rise", "return up + down", "return [1 - step / last for step in range(last)]",
         "Your plan begins at its peak; let it rise from at most 0.05 first."),
        ("no fall", "return up + down", "return up + [1.0] * len(down)",
         "Your rate stays at its peak to the end, and so does the noise: let it fall towards zero."),
        ("falls short", "return up + down", "return up + down[:-1]",
         "Your plan is one number short: there must be one for every step, the last included."),
        ("in units of the rate", "return up + down", "return [0.03 * share for share in up + down]",
         "You multiplied by the rate of the peak; return shares of it, up to 1."),
        ("only rises", "return up + down", "return [step / last for step in range(1, last + 1)]",
         "Your rate is largest at the end, when the noise of every step stays in the result: let it fall, too."),
        ("from 0 to last", "range(1, rise + 1)", "range(rise + 1)",
         "Your plan has one number too many: count the steps from 1, as in range(1, last + 1)."),
    ),
    judge=_not_planned,
)  # fmt: skip

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5, EXERCISE_6)
