"""Exercises of notebook 13, continued: the learning rate, and a score."""

from __future__ import annotations

import math
from itertools import takewhile

from .model import Case, Exercise, Mistake


def warmup_rate(step, d_model, warmup_steps):
    """Return the paper's learning rate: d_model^-0.5 times the smaller of step^-0.5 and step * warmup_steps^-1.5.

    step: counted from 1. Returns a float (Vaswani et al. 2017, eq. 3).
    """
    if step < warmup_steps:
        return step / (warmup_steps * math.sqrt(warmup_steps * d_model))
    return 1 / math.sqrt(step * d_model)


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
    ]


def _cut(ids, eos_id, kept=0):
    return ids[: ids.index(eos_id) + kept] if eos_id in ids else ids


def _without(ids, eos_id):
    return [token for token in ids if token != eos_id]


def _share(alike):
    """Fraction of pairs for which alike(predicted, expected, eos_id) holds."""
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


EXERCISES = (
    Exercise(
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
    ),
    Exercise(
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
                "You kept eos in what you compare; cut before it, so that a sentence without eos can match one "
                "with it.",
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
        ),
    ),
)
