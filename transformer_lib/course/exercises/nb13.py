"""Exercises of notebook 13: training."""

from __future__ import annotations

import math

import torch

from .model import Case, Exercise, Mistake, integers, normal


def shift_target(tgt):
    """Return (tgt_in, tgt_out): what the decoder reads, and the token it must predict at each place.

    tgt: [batch, tgt_len] with bos first. Both results: [batch, tgt_len - 1].
    """
    rows = tgt.tolist()
    return torch.tensor([row[:-1] for row in rows]), torch.tensor([row[1:] for row in rows])


def masked_cross_entropy(logits, tgt_out, pad_id):
    """Return the mean negative log-probability (natural logarithm) of the right tokens; padding does not count.

    logits: [batch, tgt_len, vocab_size]; tgt_out: [batch, tgt_len] integers. Returns a tensor without axes.
    """
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), tgt_out.flatten(), ignore_index=pad_id)


def label_smoothed_loss(logits, targets, epsilon):
    """Return the mean cross-entropy with a smoothed target: 1 - epsilon for the right token, plus epsilon / vocab_size
    for every token, the right one included.

    logits: [n, vocab_size]; targets: [n] integers; epsilon: from 0 to 1. Returns a tensor without axes.
    """
    return torch.nn.functional.cross_entropy(logits, targets, label_smoothing=epsilon)


def _target_cases():
    return [
        Case("one sentence", (torch.tensor([[1, 7, 8, 2]]),)),
        Case("2 sentences with padding", (torch.tensor([[1, 5, 6, 7, 2], [1, 9, 2, 0, 0]]),)),
        Case("7 sentences of 3 tokens", (integers(1, (7, 3), 3, 97),)),
        Case("3 sentences of 11 tokens", (integers(2, (3, 11), 3, 97),)),
        Case("bos and eos alone", (torch.tensor([[1, 2]]),)),
    ]


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


def _smoothing_cases():
    return [
        Case("one token of 3", (normal(10, (1, 3))[0], torch.tensor([1]), 0.1)),
        Case("5 tokens of 7, epsilon 0.1", (normal(11, (5, 7))[0], integers(12, (5,), 0, 7), 0.1)),
        Case("3 tokens of 11, epsilon 0.4", (normal(13, (3, 11))[0], integers(14, (3,), 0, 11), 0.4)),
        Case("no smoothing", (normal(15, (2, 5))[0], torch.tensor([4, 0]), 0.0)),
        Case("nothing but smoothing", (normal(16, (2, 3))[0], torch.tensor([2, 1]), 1.0)),
        Case("logits in the hundreds", (100 * normal(17, (3, 5))[0], torch.tensor([2, 1, 4]), 0.2)),
    ]


def _ratio(numerator, denominator):
    return lambda z, y, pad: numerator(-_right(z, y), y != pad).sum() / denominator(y, y != pad)


def _right(logits, labels):
    """Log-probability of each right token."""
    return torch.log_softmax(logits, -1).gather(-1, labels[..., None])[..., 0]


def _log_of_softmax(logits, labels, pad_id):
    return -torch.softmax(logits, -1).gather(-1, labels[..., None])[..., 0].log()[labels != pad_id].mean()


def _mean_of_means(logits, labels, pad_id):
    """The mean over sentences of torch's mean over a sentence; NaN where one has no real token."""
    loss = torch.nn.functional.cross_entropy
    return torch.stack([loss(z, y, ignore_index=pad_id) for z, y in zip(logits, labels, strict=True)]).mean()


def _smoothed(on, off, finish=torch.mean):
    """The smoothed loss with weight on(epsilon, vocab_size) for the right token and off(…) for each other one."""

    def function(logits, targets, epsilon):
        size = logits.shape[-1]
        target = torch.full_like(logits, off(epsilon, size)).scatter(-1, targets[:, None], on(epsilon, size))
        return finish(-(target * torch.log_softmax(logits, -1)).sum(-1))

    return function


EXERCISES = (
    Exercise(
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
    ),
    Exercise(
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
                "Right for small logits, but a probability underflows to 0 and its logarithm is infinite: use "
                "log_softmax.",
            ),
            Mistake(
                "bits",
                lambda z, y, pad: masked_cross_entropy(z, y, pad) / math.log(2),
                "You used the logarithm to base 2; the natural one is asked for.",
            ),
        ),
        gradients=("logits",),
    ),
    Exercise(
        "13.3",
        "Label smoothing",
        15,
        2,
        label_smoothed_loss,
        _smoothing_cases,
        (
            Mistake(
                "none", _smoothed(lambda e, n: 1.0, lambda e, n: 0.0), "You did not smooth: epsilon has no effect."
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
        ),
        gradients=("logits",),
    ),
)
