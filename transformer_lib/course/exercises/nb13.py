"""The exercises of notebook 13: training."""

from __future__ import annotations

import math

import torch

from .model import Case, Exercise, Mistake, integers, normal

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


def _ratio(numerator, denominator):
    return lambda z, y, pad: numerator(-_right(z, y), y != pad).sum() / denominator(y, y != pad)


def _right(logits, labels):
    """Return the log-probability of each right token."""
    return torch.log_softmax(logits, -1).gather(-1, labels[..., None])[..., 0]


def _loss_from(log_probs):
    """Return the loss of the log-probabilities that log_probs(logits) gives."""
    return lambda z, y, pad: -log_probs(z).gather(-1, y[..., None])[..., 0][y != pad].mean()


def _left_out_by_loss(logits, labels, pad_id):
    losses = -_right(logits, labels) * (labels != pad_id)
    return losses[losses != 0].mean()


def _log_of_softmax(logits, labels, pad_id):
    return -torch.softmax(logits, -1).gather(-1, labels[..., None])[..., 0].log()[labels != pad_id].mean()


def _mean_of_means(logits, labels, pad_id):
    """Return the mean over sentences of torch's mean over a sentence; NaN where one has no real token."""
    loss = torch.nn.functional.cross_entropy
    return torch.stack([loss(z, y, ignore_index=pad_id) for z, y in zip(logits, labels, strict=True)]).mean()


EXERCISE_1 = Exercise(
    "13.1",
    "The loss of a batch",
    10,
    2,
    masked_cross_entropy,
    _loss_cases,
    (
        Mistake(
            "counts padding",
            lambda z, y, pad: -_right(z, y).mean(),
            "Padding counts in your loss: leave out the positions where tgt_out is pad_id.",
        ),
        Mistake(
            "divides by all",
            _ratio(lambda loss, real: loss * real, lambda y, real: y.numel()),
            "You left padding out of the sum but divided by the number of all positions, padding included.",
        ),
        Mistake(
            "divides by the sentences",
            _ratio(lambda loss, real: loss * real, lambda y, real: len(y)),
            "You divided the sum by the number of sentences; divide it by the number of real labels.",
        ),
        Mistake(
            "sum",
            _ratio(lambda loss, real: loss * real, lambda y, real: 1),
            "You returned the sum over the tokens; return their mean.",
        ),
        Mistake(
            "per sentence",
            lambda z, y, pad: ((-_right(z, y) * (y != pad)).sum(1) / (y != pad).sum(1).clamp(min=1)).mean(),
            "You averaged each sentence first; every label counts alike, so divide once by all real labels.",
        ),
        Mistake(
            "per sentence, with NaN",
            _mean_of_means,
            "You averaged each sentence first; every label counts alike, so divide once by all real labels. "
            "(A sentence of padding alone even gives 0/0.)",
        ),
        Mistake(
            "sign",
            lambda z, y, pad: -masked_cross_entropy(z, y, pad),
            "The minus is missing: log-probabilities are negative, a loss is positive.",
        ),
        Mistake(
            "probability",
            lambda z, y, pad: -_right(z, y).exp()[y != pad].mean(),
            "That is minus the mean probability; take the logarithm of each probability before the mean.",
        ),
        Mistake(
            "the logarithm of the mean",
            lambda z, y, pad: -_right(z, y).exp()[y != pad].mean().log(),
            "That is the logarithm of the mean probability; take the logarithm of each probability, then the mean.",
        ),
        Mistake(
            "logit",
            lambda z, y, pad: -z.gather(-1, y[..., None])[..., 0][y != pad].mean(),
            "You took the logit itself; take the logarithm of its softmax, log_softmax.",
        ),
        Mistake(
            "twice",
            lambda z, y, pad: masked_cross_entropy(torch.softmax(z, -1), y, pad),
            "You took a softmax before a loss that takes one itself: pass it the logits.",
        ),
        Mistake(
            "pad is 0",
            lambda z, y, pad: masked_cross_entropy(z, y, 0),
            "You took 0 for the padding id; use pad_id.",
        ),
        Mistake(
            "underflow",
            _log_of_softmax,
            "Right for small logits, but a probability underflows to 0 and its logarithm is infinite: use log_softmax.",
        ),
        Mistake(
            "a number inside the logarithm",
            _loss_from(lambda z: (torch.softmax(z, -1) + 1e-9).log()),
            "You added a small number inside the logarithm, which caps large losses: use log_softmax.",
        ),
        Mistake(
            "left out by the loss",
            _left_out_by_loss,
            "You left out real labels whose loss is 0; leave out the positions where tgt_out is pad_id, and no others.",
        ),
        Mistake(
            "softmax over positions",
            _loss_from(lambda z: torch.log_softmax(z, 1)),
            "Your softmax runs over the positions; it must run over the vocabulary, the last axis.",
        ),
        Mistake(
            "shifted again",
            lambda z, y, pad: masked_cross_entropy(z[:, :-1], y[:, 1:], pad),
            "You shifted the labels; tgt_out is shifted already, so row t of the logits belongs to its column t.",
        ),
        Mistake(
            "only padding",
            lambda z, y, pad: -_right(z, y)[y == pad].mean(),
            "You kept the padding and left out the real labels; it is the other way round.",
        ),
        Mistake(
            "perplexity",
            lambda z, y, pad: masked_cross_entropy(z, y, pad).exp(),
            "You took the exponential of the loss, which is the perplexity; return the loss.",
        ),
        Mistake(
            "bits",
            lambda z, y, pad: masked_cross_entropy(z, y, pad) / math.log(2),
            "You used the logarithm to base 2; the natural one is asked for.",
        ),
        Mistake(
            "greater",
            lambda z, y, pad: -_right(z, y)[y > pad].mean(),
            "You left out every id up to pad_id; only pad_id itself marks padding.",
        ),
    ),
    gradients=("logits",),
    part="masked_cross_entropy",
)


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


def _stopping(better=lambda new, best: new < best, late=lambda since, patience: since >= patience, after=0):
    """Return early stopping, each slip a switch; after: epochs added to both numbers."""

    def function(losses, patience):
        best = 0
        for epoch in range(len(losses)):
            if better(losses[epoch], losses[best]):
                best = epoch
            if late(epoch - best, patience):
                break
        return best + 1 + after, epoch + 1 + after

    return function


def _kept(choose):
    """Return early stopping that stops as it should and keeps choose(losses, kept, stopped)."""

    def function(losses, patience):
        kept, stopped = early_stopping(losses, patience)
        return choose(losses, kept, stopped), stopped

    return function


def _compares_with_the_last(is_worse):
    def function(losses, patience):
        best = worse = 0
        for epoch, loss in enumerate(losses):
            best = epoch if loss < losses[best] else best
            worse = worse + 1 if epoch and is_worse(loss, losses[epoch - 1]) else 0
            if worse == patience:
                break
        return best + 1, epoch + 1

    return function


def _from_the_lowest(losses, patience):
    kept = losses.index(min(losses)) + 1
    return kept, min(kept + patience, len(losses))


def _last_of_a_tie(losses, patience):
    _, stopped = early_stopping(losses, patience)
    return stopped - losses[:stopped][::-1].index(min(losses[:stopped])), stopped


def _past_the_end(losses, patience):
    kept, stopped = early_stopping(losses, patience)
    return kept, kept + patience


def _never_starts_over(losses, patience):
    best = worse = 0
    for epoch, loss in enumerate(losses):
        if loss < losses[best]:
            best = epoch
        elif epoch:
            worse += 1
        if worse == patience:
            break
    return best + 1, epoch + 1


EXERCISE_2 = Exercise(
    "13.2",
    "Early stopping",
    10,
    2,
    early_stopping,
    _curve_cases,
    (
        Mistake(
            "the future",
            _kept(lambda losses, kept, stopped: losses.index(min(losses)) + 1),
            "You kept the best of all epochs, but those after the stop are never trained.",
        ),
        Mistake(
            "the last",
            _kept(lambda losses, kept, stopped: stopped),
            "You kept the epoch at which training stopped; keep the best one.",
        ),
        Mistake(
            "a loss",
            _kept(lambda losses, kept, stopped: losses[kept - 1]),
            "The first number is a loss; return the epoch that had it.",
        ),
        Mistake(
            "from 0",
            _stopping(after=-1),
            "You counted the epochs from 0; count them from 1.",
        ),
        Mistake(
            "a tie is better",
            _stopping(better=lambda new, best: new <= best),
            "You took a tie for an improvement; only a lower loss is better.",
        ),
        Mistake(
            "one later",
            _stopping(late=lambda since, patience: since > patience),
            "You stopped one epoch too late: patience epochs in a row without a better loss are enough.",
        ),
        Mistake(
            "one earlier",
            _stopping(late=lambda since, patience: since >= max(1, patience - 1)),
            "You stopped one epoch too early: patience epochs in a row may bring nothing better.",
        ),
        Mistake(
            "compared with the last",
            _compares_with_the_last(lambda new, before: new >= before),
            "You compared each loss with the one before it; compare it with the best so far.",
        ),
        Mistake(
            "rises in a row",
            _compares_with_the_last(lambda new, before: new > before),
            "You counted rises from one epoch to the next; count epochs that are not better than the best so far.",
        ),
        Mistake(
            "from the lowest of all",
            _from_the_lowest,
            "You looked for the lowest of all losses first, but those after the stop are never measured.",
        ),
        Mistake(
            "the last of a tie",
            _last_of_a_tie,
            "Of equal losses you kept the last; a tie does not count as better, so keep the first.",
        ),
        Mistake(
            "past the end",
            _past_the_end,
            "Your run goes on after the last epoch; there are only len(losses).",
        ),
        Mistake(
            "kept from 0",
            _kept(lambda losses, kept, stopped: kept - 1),
            "The epoch that is kept is counted from 0; count it from 1, like the other one.",
        ),
        Mistake(
            "stopped from 0",
            lambda losses, patience: (early_stopping(losses, patience)[0], early_stopping(losses, patience)[1] - 1),
            "The epoch after which training stops comes one too early; count it from 1, like the one that is kept.",
        ),
        Mistake(
            "never starts over",
            _never_starts_over,
            "You counted all epochs without a better loss; a better one starts the count again.",
        ),
        Mistake(
            "no patience",
            _stopping(late=lambda since, patience: since >= 1),
            "You stopped at the first epoch that brought nothing better; wait for patience of them in a row.",
        ),
        Mistake(
            "never stops",
            lambda losses, patience: (losses.index(min(losses)) + 1, len(losses)),
            "You went on to the last epoch; stop when patience epochs in a row have brought nothing better.",
        ),
        Mistake(
            "swapped",
            lambda losses, patience: early_stopping(losses, patience)[::-1],
            "The two numbers are swapped: first the epoch that is kept, then the one after which training stops.",
        ),
    ),
    returns=("kept", "stopped"),
)


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


def _smoothed(on, off, finish=torch.mean):
    """Return the smoothed loss with weight on(epsilon, vocab_size) for the right token and off(…) for every other."""

    def function(logits, targets, epsilon):
        size = logits.shape[-1]
        target = torch.full_like(logits, off(epsilon, size)).scatter(-1, targets[:, None], on(epsilon, size))
        return finish(-(target * torch.log_softmax(logits, -1)).sum(-1))

    return function


def _smooth(logits, targets, epsilon):
    """Return q, [n, vocab_size]."""
    even = torch.full_like(logits, epsilon / logits.shape[-1])
    return even + (1 - epsilon) * torch.nn.functional.one_hot(targets, logits.shape[-1])


def _of_label(logits, targets):
    return torch.log_softmax(logits, -1).gather(-1, targets[:, None])[:, 0]


EXERCISE_3 = Exercise(
    "13.3",
    "Label smoothing",
    8,
    2,
    label_smoothed_loss,
    _smoothing_cases,
    (
        Mistake("none", _smoothed(lambda e, n: 1.0, lambda e, n: 0.0), "You did not smooth: epsilon has no effect."),
        Mistake(
            "always a tenth",
            lambda z, y, e: label_smoothed_loss(z, y, 0.1),
            "You took .1 for epsilon; use the one that is given.",
        ),
        Mistake(
            "others only",
            _smoothed(lambda e, n: 1 - e, lambda e, n: e / (n - 1)),
            "You spread epsilon over the other tokens only; here the right one gets its share too: "
            "1 - epsilon + epsilon / vocab_size.",
        ),
        Mistake(
            "too little",
            _smoothed(lambda e, n: 1 - e, lambda e, n: e / n),
            "Your target sums to less than one: the right token gets 1 - epsilon and epsilon / vocab_size.",
        ),
        Mistake(
            "too much",
            _smoothed(lambda e, n: 1.0, lambda e, n: e / n),
            "Your target sums to more than one: the right token must give up what the others get.",
        ),
        Mistake(
            "mean over the vocabulary",
            lambda z, y, e: label_smoothed_loss(z, y, e) / z.shape[-1],
            "You took the mean over the vocabulary, too; sum over its words, and take the mean over the tokens.",
        ),
        Mistake(
            "swapped",
            _smoothed(lambda e, n: e + (1 - e) / n, lambda e, n: (1 - e) / n),
            "epsilon and 1 - epsilon are swapped.",
        ),
        Mistake(
            "whole epsilon",
            _smoothed(lambda e, n: 1.0, lambda e, n: e),
            "You gave every other token epsilon; they share it, epsilon / vocab_size each.",
        ),
        Mistake(
            "sum",
            _smoothed(lambda e, n: 1 - e + e / n, lambda e, n: e / n, torch.sum),
            "You returned the sum over the tokens; return their mean.",
        ),
        Mistake(
            "probabilities",
            lambda z, y, e: -((1 - e) * torch.softmax(z, -1).gather(-1, y[:, None]) + e / z.shape[-1]).log().mean(),
            "You smoothed the model's probabilities; smooth the target, and leave the predictions alone.",
        ),
        Mistake(
            "not reduced",
            _smoothed(lambda e, n: 1 + e / n, lambda e, n: e / n),
            "Your target sums to more than one: the right token gets 1 - epsilon and epsilon / vocab_size.",
        ),
        Mistake(
            "softmax over the rows",
            lambda z, y, e: (
                -(
                    (1 - e) * torch.log_softmax(z, 0).gather(-1, y[:, None])[:, 0]
                    + e * torch.log_softmax(z, 0).mean(-1)
                ).mean()
            ),
            "Your softmax runs over the rows; it must run over the vocabulary, the last axis.",
        ),
        Mistake(
            "floor subtracted",
            lambda z, y, e: (
                label_smoothed_loss(z, y, e)
                + (_smooth(z, y, e) * _smooth(z, y, e).clamp(min=1e-30).log()).sum(-1).mean()
            ),
            "You subtracted the floor, the entropy of q; the loss is the sum over -q ln p alone.",
        ),
        Mistake(
            "even part added",
            lambda z, y, e: -((1 - e) * _of_label(z, y) - e * torch.log_softmax(z, -1).mean(-1)).mean(),
            "The even part has the wrong sign: both parts are log-probabilities, and both get the minus.",
        ),
        Mistake(
            "underflow",
            lambda z, y, e: (
                -(
                    (1 - e) * torch.softmax(z, -1).log().gather(-1, y[:, None])[:, 0]
                    + e * torch.softmax(z, -1).log().mean(-1)
                ).mean()
            ),
            "Right for small logits, but a probability underflows to 0 and its logarithm is infinite: use log_softmax.",
        ),
        Mistake(
            "the right token alone",
            _smoothed(lambda e, n: 1 - e, lambda e, n: 0.0),
            "Only the right token counts in your loss; the others have the target epsilon / vocab_size each.",
        ),
    ),
    gradients=("logits",),
)


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


def _interval(share, low=0.025, high=0.975):
    """Return the quantiles of share(right, groups, draws), [n_draws]."""

    def function(right, groups, draws):
        shares = share(right, groups, draws).double()
        return shares.quantile(torch.tensor([low, high], dtype=shares.dtype))

    return function


def _sums(right, groups):
    """Return how many sentences each group has, and how many of them are right."""
    return torch.bincount(groups).double(), torch.bincount(groups, weights=right.double())


def _share_of_drawn(right, groups, draws):
    sizes, hits = _sums(right, groups)
    return hits[draws].sum(dim=-1) / sizes[draws].sum(dim=-1)


def _mean_of_shares(right, groups, draws):
    sizes, hits = _sums(right, groups)
    return (hits / sizes)[draws].mean(dim=-1)


def _once_each(right, groups, draws):
    return torch.stack([right[torch.isin(groups, row)].double().mean() for row in draws])


def _along_drawings(right, groups, draws):
    sizes, hits = _sums(right, groups)
    return hits[draws].sum(dim=0) / sizes[draws].sum(dim=0)


def _deviations(times):
    def function(right, groups, draws):
        shares = _share_of_drawn(right, groups, draws)
        return torch.stack([shares.mean() - times * shares.std(), shares.mean() + times * shares.std()])

    return function


def _of_single_groups(right, groups, draws):
    sizes, hits = _sums(right, groups)
    return (hits / sizes)[draws].flatten()


def _sorted_entries(right, groups, draws):
    shares = _share_of_drawn(right, groups, draws).sort().values
    return torch.stack([shares[int(0.025 * len(shares))], shares[int(0.975 * len(shares))]])


EXERCISE_4 = Exercise(
    "13.4",
    "Draw whole groups",
    12,
    3,
    grouped_interval,
    _group_cases,
    (
        Mistake(
            "sentences",
            _interval(lambda right, groups, draws: right.double()[draws].mean(dim=-1)),
            "You took draws for numbers of sentences; they are numbers of groups.",
        ),
        Mistake(
            "mean of shares",
            _interval(_mean_of_shares),
            "You gave each group the same weight; divide all right sentences drawn by all sentences drawn.",
        ),
        Mistake(
            "divides by n",
            _interval(lambda right, groups, draws: _sums(right, groups)[1][draws].sum(dim=-1) / len(right)),
            "You divided by the number of all sentences; divide by how many sentences were drawn.",
        ),
        Mistake(
            "once each",
            _interval(_once_each),
            "A group that is drawn twice counts twice; you counted it once.",
        ),
        Mistake(
            "wrong sentences",
            _interval(lambda right, groups, draws: 1 - _share_of_drawn(right, groups, draws)),
            "That is the interval of the share that is wrong.",
        ),
        Mistake(
            "along the drawings",
            _interval(_along_drawings),
            "You added up along the drawings; add up along the groups, the last axis of draws.",
        ),
        Mistake(
            "90 %",
            _interval(_share_of_drawn, 0.05, 0.95),
            "Your quantiles are 5 % and 95 %; between 2.5 % and 97.5 % lie 95 % of the drawings.",
        ),
        Mistake(
            "extremes",
            _interval(_share_of_drawn, 0.0, 1.0),
            "You returned the smallest and the largest share; leave out 2.5 % of the drawings on each side.",
        ),
        Mistake(
            "1.96 deviations",
            _deviations(1.96),
            "You returned the mean plus and minus 1.96 standard deviations; return quantiles.",
        ),
        Mistake(
            "two deviations",
            _deviations(2.0),
            "You returned the mean plus and minus two standard deviations; return quantiles.",
        ),
        Mistake(
            "single groups",
            _interval(_of_single_groups),
            "You took quantiles of the shares of single groups; first make one share of each row of draws.",
        ),
        Mistake(
            "sorted entries",
            _sorted_entries,
            "You took entries of the sorted shares; torch.quantile also interpolates between two of them.",
        ),
        Mistake(
            "swapped",
            _interval(_share_of_drawn, 0.975, 0.025),
            "The two ends are swapped: the lower one comes first.",
        ),
    ),
    rtol=1e-5,  # shares may be kept in float32, whatever the quantiles are
)

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4)
