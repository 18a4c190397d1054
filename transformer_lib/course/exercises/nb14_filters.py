"""Exercises of notebook 14, continued: filters for sampling."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, normal
from .probes import weights_sum

INF = float("inf")


def top_k_probabilities(logits, k, temperature):
    """Return the probabilities of the k most likely tokens at this temperature, and 0 for all others.

    logits: [vocab_size], divided by the temperature before the softmax; k: at least 1; when k is larger than
    vocab_size, every token stays. Returns [vocab_size], summing to one.
    """
    ranked = sorted(range(len(logits)), key=lambda token: -logits[token].item())[:k]
    result = torch.zeros_like(logits)
    result[ranked] = torch.softmax(logits[ranked] / temperature, dim=0)
    return result


def top_p_probabilities(logits, p):
    """Keep the fewest most likely tokens whose probabilities add up to at least p; return their renewed probabilities.

    logits: [vocab_size]; p: above 0, up to 1. Returns [vocab_size]: 0 for dropped tokens, summing to one.
    At least one token is always kept.
    """
    probabilities = torch.softmax(logits, dim=0)
    kept, total = torch.zeros_like(logits), 0.0
    for token in sorted(range(len(logits)), key=lambda token: -logits[token].item()):
        if total >= p:
            break
        kept[token] = probabilities[token]
        total += probabilities[token].item()
    return kept / kept.sum()


def _top_k_cases():
    return [
        Case("3 tokens, k = 2", (torch.tensor([1.0, 3.0, 2.0]), 2, 1.0)),
        Case("7 tokens, k = 3, temperature 2", (normal(7, (7,))[0], 3, 2.0)),
        Case("11 tokens, k = 5, temperature 0.5", (normal(8, (11,))[0], 5, 0.5)),
        Case("k = 1", (normal(9, (5,))[0], 1, 0.7)),
        Case("k larger than the vocabulary", (normal(10, (5,))[0], 11, 1.3)),
        Case("negative logits", (-3 - normal(11, (7,))[0].abs(), 2, 1.0)),
    ]


def _top_p_cases():
    return [
        Case("3 tokens, p = 0.6", (torch.tensor([0.2, 0.5, 0.3]).log(), 0.6)),
        Case("the best alone is enough", (torch.tensor([0.1, 0.2, 0.7]).log(), 0.5)),
        Case("7 tokens, p = 0.8", (normal(12, (7,))[0], 0.8)),
        Case("11 tokens, p = 0.9", (2 * normal(13, (11,))[0], 0.9)),
        Case("p = 1 keeps every token", (normal(14, (5,))[0], 1.0)),
        Case("a very small p", (normal(15, (5,))[0], 0.01)),
        Case("the sum reaches p exactly", (torch.tensor([1.0, 4.0, 1.0, 2.0]).log(), 0.5)),  # 1/8, 1/2, 1/8, 1/4
    ]


def _kept(logits, k, fill=-INF, largest=True):
    """The logits with all but the k best set to `fill`."""
    top = logits.topk(min(k, len(logits)), largest=largest).indices
    return torch.full_like(logits, fill).scatter(0, top, logits[top])


def _softmax_first(logits, k, temperature):
    return _kept(torch.softmax(logits / temperature, 0), k, fill=0.0)


def _top_k_no_limit(logits, k, temperature):
    if k > len(logits):
        raise RuntimeError("selected index k out of range")
    return top_k_probabilities(logits, k, temperature)


def _nucleus(keep, descending=True, renew=True, back=True):
    """Top-p with one step exchanged; keep(sorted probabilities, their running sum, p) says which stay."""

    def function(logits, p):
        probabilities, order = torch.softmax(logits, 0).sort(descending=descending)
        kept = probabilities * keep(probabilities, probabilities.cumsum(0), p)
        kept = kept / kept.sum() if renew else kept
        return torch.zeros_like(kept).scatter(0, order, kept) if back else kept

    return function


def _below(probabilities, total, p):
    """Right: a token stays while those before it have not reached p."""
    return total - probabilities < p


def _in_vocabulary_order(logits, p):
    probabilities = torch.softmax(logits, 0)
    kept = probabilities * _below(probabilities, probabilities.cumsum(0), p)
    return kept / kept.sum()


EXERCISES = (
    Exercise(
        "14.2",
        "Top-k and temperature",
        10,
        2,
        top_k_probabilities,
        _top_k_cases,
        (
            Mistake(
                "times",
                lambda z, k, t: torch.softmax(_kept(z, k) * t, 0),
                "You multiplied by the temperature; divide, so that a high one evens the probabilities out.",
            ),
            Mistake(
                "no temperature", lambda z, k, t: torch.softmax(_kept(z, k), 0), "You did not use the temperature."
            ),
            Mistake(
                "not renewed",
                _softmax_first,
                "You dropped tokens after the softmax, so the rest no longer sum to one: set their logits to -inf "
                "before it, or divide by the new sum.",
            ),
            Mistake(
                "zero",
                lambda z, k, t: torch.softmax(_kept(z, k, fill=0.0) / t, 0),
                "You set dropped logits to 0, but exp(0) = 1: use -inf.",
            ),
            Mistake(
                "smallest",
                lambda z, k, t: torch.softmax(_kept(z, k, largest=False) / t, 0),
                "You kept the k least likely tokens.",
            ),
            Mistake(
                "k values",
                lambda z, k, t: torch.softmax(z.topk(min(k, len(z))).values / t, 0),
                "You returned only the k probabilities; return one for each token, 0 for those dropped.",
            ),
            Mistake("no filter", lambda z, k, t: torch.softmax(z / t, 0), "You did not drop any token."),
            Mistake(
                "one less",
                lambda z, k, t: torch.softmax(_kept(z, max(k - 1, 1)) / t, 0),
                "You kept one token too few: the k-th best stays (compare with >=).",
            ),
            Mistake(
                "k too large",
                _top_k_no_limit,
                "Right, except when k is larger than the vocabulary: topk then raises. Use min(k, vocab_size).",
            ),
        ),
        probes=(weights_sum(None, "Probabilities", "tokens"),),
    ),
    Exercise(
        "14.3",
        "Top-p",
        15,
        3,
        top_p_probabilities,
        _top_p_cases,
        (
            Mistake(
                "cut",
                _nucleus(lambda s, total, p: (total < p) | (torch.arange(len(s)) == 0)),
                "You dropped the token that crosses p; it is needed for the sum to reach p.",
            ),
            Mistake(
                "one more",
                _nucleus(lambda s, total, p: total - s - s.roll(1) * (torch.arange(len(s)) > 0) < p),
                "You kept one token too many: stop as soon as the sum has reached p.",
            ),
            Mistake(
                "<= instead of <",
                _nucleus(lambda s, total, p: total - s <= p),
                "Where the sum reaches p exactly you kept one token more: a token stays only while the sum before "
                "it is below p (< instead of <=).",
            ),
            Mistake(
                "no sort",
                _in_vocabulary_order,
                "You added probabilities in the order of the vocabulary; start from the most likely token.",
            ),
            Mistake(
                "ascending",
                _nucleus(_below, descending=False),
                "You started from the least likely token; sort in descending order.",
            ),
            Mistake(
                "not renewed",
                _nucleus(_below, renew=False),
                "The kept probabilities do not sum to one: divide by their sum.",
            ),
            Mistake(
                "sorted",
                _nucleus(_below, back=False),
                "Your result is in sorted order; put each probability back in its token's place.",
            ),
            Mistake(
                "each",
                lambda z, p: (s := torch.softmax(z, 0)) * (s >= p) / ((s >= p) * s).sum(),
                "You compared each probability with p; it is their running sum that must reach p.",
            ),
            Mistake("no filter", lambda z, p: torch.softmax(z, 0), "You did not drop any token."),
        ),
        probes=(weights_sum(None, "Probabilities", "tokens"),),
    ),
)
