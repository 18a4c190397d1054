"""The exercises of notebook 13: training."""

from __future__ import annotations

import math
from itertools import takewhile

import torch

from .model import Case, Exercise, Mistake, integers, normal

# 13.1 Shift the target -----------------------------------------------------------------------------------------------


def shift_target(tgt):
    """Return (tgt_in, tgt_out): what the decoder reads, and the token it must predict at each place.

    tgt: [batch, tgt_len] with bos first. Both results: [batch, tgt_len - 1].
    """
    rows = tgt.tolist()
    return torch.tensor([row[:-1] for row in rows]), torch.tensor([row[1:] for row in rows])


def _target_cases():
    return [
        Case("one sentence", (torch.tensor([[1, 7, 8, 2]]),)),
        Case("2 sentences with padding", (torch.tensor([[1, 5, 6, 7, 2], [1, 9, 2, 0, 0]]),)),
        Case("7 sentences of 3 tokens", (integers(1, (7, 3), 3, 97),)),
        Case("3 sentences of 11 tokens", (integers(2, (3, 11), 3, 97),)),
        Case("bos and eos alone", (torch.tensor([[1, 2]]),)),
    ]


EXERCISE_1 = Exercise(
    "13.1",
    "Shift the target",
    5,
    1,
    shift_target,
    _target_cases,
    (
        Mistake(
            "unshifted",
            lambda t: (t, t),
            "Inputs and labels are the same: the model could copy. The labels are one place further on.",
        ),
        Mistake(
            "same cut",
            lambda t: (t[:, :-1], t[:, :-1]),
            "Both results are the inputs; the labels must be one place further on, tgt[:, 1:].",
        ),
        Mistake(
            "swapped",
            lambda t: (t[:, 1:], t[:, :-1]),
            "Inputs and labels are swapped: the decoder would read the answer and predict what came before.",
        ),
        Mistake(
            "not shortened",
            lambda t: (t, t[:, 1:]),
            "The inputs still hold the last token, which has no label: drop it, tgt[:, :-1].",
        ),
        Mistake(
            "rolled",
            lambda t: (t, t.roll(-1, 1)),
            "roll moves bos round to the end, where it becomes a label; cut with slices instead.",
        ),
        Mistake(
            "batch axis",
            lambda t: (t[:-1], t[1:]),
            "You cut along the batch (axis 0); shift along the tokens (axis 1).",
        ),
        Mistake("by two", lambda t: (t[:, :-2], t[:, 2:]), "You shifted by two places; the next token is one on."),
    ),
    returns=("tgt_in", "tgt_out"),
    part="shift_target",
)


# 13.2 A loss that ignores padding ------------------------------------------------------------------------------------


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
    ]


def _ratio(numerator, denominator):
    return lambda z, y, pad: numerator(-_right(z, y), y != pad).sum() / denominator(y, y != pad)


def _right(logits, labels):
    """Return the log-probability of each right token."""
    return torch.log_softmax(logits, -1).gather(-1, labels[..., None])[..., 0]


def _log_of_softmax(logits, labels, pad_id):
    return -torch.softmax(logits, -1).gather(-1, labels[..., None])[..., 0].log()[labels != pad_id].mean()


def _mean_of_means(logits, labels, pad_id):
    """Return the mean over sentences of torch's mean over a sentence; NaN where one has no real token."""
    loss = torch.nn.functional.cross_entropy
    return torch.stack([loss(z, y, ignore_index=pad_id) for z, y in zip(logits, labels, strict=True)]).mean()


EXERCISE_2 = Exercise(
    "13.2",
    "A loss that ignores padding",
    12,
    2,
    masked_cross_entropy,
    _loss_cases,
    (
        Mistake(
            "counts padding",
            lambda z, y, pad: -_right(z, y).mean(),
            "Padding counts in your loss: leave out the places where tgt_out is pad_id.",
        ),
        Mistake(
            "divides by all",
            _ratio(lambda loss, real: loss * real, lambda y, real: y.numel()),
            "You left padding out of the sum but divided by the number of all places, padding included.",
        ),
        Mistake(
            "sum",
            _ratio(lambda loss, real: loss * real, lambda y, real: 1),
            "You returned the sum over the tokens; return their mean.",
        ),
        Mistake(
            "per sentence",
            lambda z, y, pad: ((-_right(z, y) * (y != pad)).sum(1) / (y != pad).sum(1).clamp(min=1)).mean(),
            "You averaged each sentence first; every token counts alike, so divide once by all real tokens.",
        ),
        Mistake(
            "per sentence, with NaN",
            _mean_of_means,
            "You averaged each sentence first; every token counts alike, so divide once by all real tokens. "
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


EXERCISE_3 = Exercise(
    "13.3",
    "Label smoothing",
    15,
    2,
    label_smoothed_loss,
    _smoothing_cases,
    (
        Mistake("none", _smoothed(lambda e, n: 1.0, lambda e, n: 0.0), "You did not smooth: epsilon has no effect."),
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
            "the right token alone",
            _smoothed(lambda e, n: 1 - e, lambda e, n: 0.0),
            "Only the right token counts in your loss; the others have the target epsilon / vocab_size each.",
        ),
    ),
    gradients=("logits",),
)


# 13.4 The paper's learning rate --------------------------------------------------------------------------------------


def warmup_rate(step, d_model, warmup_steps):
    """Return the paper's learning rate: d_model^-0.5 times the smaller of step^-0.5 and step * warmup_steps^-1.5.

    step: counted from 1. Returns a float (Vaswani et al. 2017, eq. 3).
    """
    if step < warmup_steps:
        return step / (warmup_steps * math.sqrt(warmup_steps * d_model))
    return 1 / math.sqrt(step * d_model)


def _rate_cases():
    settings = [
        ("first step", 1, 512, 4000),
        ("warming up", 1009, 512, 4000),
        ("the peak", 4000, 512, 4000),
        ("after the peak", 40009, 512, 4000),
        ("another width", 211, 127, 101),
        ("short warm-up", 3, 7, 2),
    ]
    return [Case(label, args) for label, *args in settings]


EXERCISE_4 = Exercise(
    "13.4",
    "The paper's learning rate",
    5,
    1,
    warmup_rate,
    _rate_cases,
    (
        Mistake(
            "max",
            lambda s, d, w: d**-0.5 * max(s**-0.5, s * w**-1.5),
            "You took the larger of the two; the rate is the smaller.",
        ),
        Mistake("no width", lambda s, d, w: min(s**-0.5, s * w**-1.5), "The factor d_model^-0.5 is missing."),
        Mistake(
            "times root",
            lambda s, d, w: d**0.5 * min(s**-0.5, s * w**-1.5),
            "You multiplied by √d_model; wider models get a smaller rate, d_model^-0.5.",
        ),
        Mistake(
            "no warm-up",
            lambda s, d, w: d**-0.5 * s**-0.5,
            "The warm-up is missing: your rate is largest at the first step.",
        ),
        Mistake(
            "only warm-up",
            lambda s, d, w: d**-0.5 * s * w**-1.5,
            "Your rate rises for ever: after warmup_steps it falls like step^-0.5.",
        ),
        Mistake(
            "constant",
            lambda s, d, w: d**-0.5 * min(w**-0.5, s * w**-1.5),
            "Your rate stays at its peak; after warmup_steps it falls like step^-0.5.",
        ),
        Mistake(
            "slope",
            lambda s, d, w: d**-0.5 * min(s**-0.5, s / w),
            "The exponent of warmup_steps is -1.5, so that both branches meet at the peak.",
        ),
        Mistake("from zero", lambda s, d, w: warmup_rate(s + 1, d, w), "Steps are counted from 1; you added one."),
    ),
)


# 13.5 Exact match ----------------------------------------------------------------------------------------------------


def exact_match(predicted, references, eos_id):
    """Return the fraction of sentences that are right in full.

    Each is cut before its first eos, so that one that breaks off without eos can match; the rest is ignored.
    predicted, references: lists of lists of token ids, one list a sentence. Returns a float from 0 to 1.
    """
    right = 0
    for first, second in zip(predicted, references, strict=True):
        words = list(takewhile(lambda token: token != eos_id, first))
        right += words == list(takewhile(lambda token: token != eos_id, second))
    return right / len(predicted)


def _match_cases():
    return [
        Case("one right, one wrong", ([[5, 6, 2], [7, 8, 2]], [[5, 6, 2], [7, 9, 2]], 2)),
        Case("padding after eos differs", ([[5, 6, 2, 0, 0], [7, 2, 0, 0, 0]], [[5, 6, 2], [7, 2, 0]], 2)),
        Case("tokens after eos differ", ([[5, 2, 9, 2], [6, 2, 1, 1]], [[5, 2, 0, 0], [6, 2, 0, 0]], 2)),
        Case(
            "right words in another order",
            ([[5, 6, 7, 2], [5, 6, 2, 0], [5, 6, 2]], [[7, 6, 5, 2], [5, 6, 2], [5, 2]], 2),
        ),
        Case("no eos", ([[5, 6, 7], [5, 6, 7, 8], [5, 6]], [[5, 6, 7, 2], [5, 6, 7, 2], [5, 6, 7, 2]], 2)),
        Case("the empty sentence; eos is 11", ([[11, 3], [4, 2, 11], [2, 4]], [[11], [4, 2, 11], [2, 4, 11]], 11)),
        Case("numbers that read alike when joined", ([[1, 11, 2], [5, 2]], [[11, 1, 2], [5, 2]], 2)),
        Case("the same sentence twice", ([[5, 2], [5, 2], [6, 2]], [[5, 2], [5, 2], [7, 2]], 2)),
        Case("eos in the middle, no eos at all", ([[5, 2, 6], [8, 9]], [[5, 6], [8, 9]], 2)),
        Case("neither ends in eos", ([[5, 6]], [[5, 6]], 2)),
    ]


def _cut(ids, eos_id, kept=0):
    return ids[: ids.index(eos_id) + kept] if eos_id in ids else ids


def _without(ids, eos_id):
    return [token for token in ids if token != eos_id]


def _without_last(ids, eos_id):
    return ids[:-1] if ids and ids[-1] == eos_id else ids


def _share(alike):
    """Return the fraction of pairs for which alike(predicted, expected, eos_id) holds."""
    return lambda p, e, eos: sum(alike(a, b, eos) for a, b in zip(p, e, strict=True)) / len(p)


def _share_of_tokens(predicted, expected, eos_id):
    pairs = [
        pair
        for a, b in zip(predicted, expected, strict=True)
        for pair in zip(_cut(a, eos_id), _cut(b, eos_id), strict=False)
    ]
    return sum(a == b for a, b in pairs) / max(1, len(pairs))


def _last_cut(ids, eos_id):
    return ids[: len(ids) - 1 - ids[::-1].index(eos_id)] if eos_id in ids else ids


EXERCISE_5 = Exercise(
    "13.5",
    "Exact match",
    10,
    2,
    exact_match,
    _match_cases,
    (
        Mistake(
            "whole rows",
            _share(lambda a, b, eos: a == b),
            "You compared whole rows, so what comes after eos counts: cut each sentence at its first eos.",
        ),
        Mistake(
            "eos kept",
            _share(lambda a, b, eos: _cut(a, eos, 1) == _cut(b, eos, 1)),
            "You kept eos in what you compare; cut before it, so that a sentence without eos can match one with it.",
        ),
        Mistake(
            "only predictions cut",
            _share(lambda a, b, eos: _cut(a, eos) == b),
            "You cut the predictions only; the references end at their eos too.",
        ),
        Mistake(
            "eos required",
            _share(lambda a, b, eos: a[: a.index(eos)] == b[: b.index(eos)]),
            "A sentence need not contain eos, and index then raises; such a sentence stays as it is.",
        ),
        Mistake(
            "eos removed",
            _share(lambda a, b, eos: _without(a, eos) == _without(b, eos)),
            "You removed eos and kept what follows it; cut there.",
        ),
        Mistake(
            "last eos",
            _share(lambda a, b, eos: _last_cut(a, eos) == _last_cut(b, eos)),
            "You cut at the last eos; the sentence ends at the first.",
        ),
        Mistake(
            "same length",
            _share(lambda a, b, eos: a[: len(_cut(b, eos))] == _cut(b, eos)),
            "You compared only as many tokens as the reference has: a longer prediction is not a match.",
        ),
        Mistake(
            "order",
            _share(lambda a, b, eos: sorted(_cut(a, eos)) == sorted(_cut(b, eos))),
            "You ignored the order of the tokens.",
        ),
        Mistake(
            "shorter",
            _share(lambda a, b, eos: all(x == y for x, y in zip(_cut(a, eos), _cut(b, eos), strict=False))),
            "zip stops at the shorter sentence, so a prediction that breaks off counts as right: compare the "
            "lengths too.",
        ),
        Mistake("tokens", _share_of_tokens, "You counted tokens; a sentence counts only if all of it is right."),
        Mistake(
            "count",
            lambda p, e, eos: sum(_cut(a, eos) == _cut(b, eos) for a, b in zip(p, e, strict=True)),
            "You returned how many match; divide by the number of sentences.",
        ),
        Mistake(
            "per cent",
            lambda p, e, eos: 100 * exact_match(p, e, eos),
            "You returned per cent; return a fraction from 0 to 1.",
        ),
        Mistake(
            "eos at the end",
            _share(lambda a, b, e: _without_last(a, e) == _without_last(b, e)),
            "You removed an eos at the end only; cut at the first eos, wherever it stands.",
        ),
        Mistake(
            "eos required, no error",
            _share(lambda a, b, e: e in a and _cut(a, e) == _cut(b, e)),
            "You count a prediction without eos as wrong; one that breaks off without eos can match.",
        ),
        Mistake(
            "as sets of sentences",
            lambda p, r, e: len({tuple(_cut(a, e)) for a in p} & {tuple(_cut(b, e)) for b in r}) / len(p),
            "You compared sets of sentences; compare each prediction with its own reference.",
        ),
        Mistake(
            "joined",
            _share(lambda a, b, e: "".join(map(str, _cut(a, e))) == "".join(map(str, _cut(b, e)))),
            "You joined the ids to one text, where 1, 11 and 11, 1 read alike: compare the lists.",
        ),
    ),
)

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5)
