"""Exercises of notebook 10, continued: what to do with the memory."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, integers, normal


def real_token_mean(memory, mask):
    """Return one vector per sentence: the mean of the memory's vectors over the real tokens only.

    memory: [batch, src_len, d_model]; mask: boolean [batch, 1, 1, src_len] as of tl.padding_mask, True = a real token;
    each sentence has at least one. Returns [batch, d_model].
    """
    rows = [vectors[real].sum(dim=0) / int(real.sum()) for vectors, real in zip(memory, mask[:, 0, 0], strict=True)]
    return torch.stack(rows)


def sense_scores(memory, places, W, b):
    """Return the scores of all senses for one word per sentence, read from that word's own vector.

    memory: [batch, src_len, d_model]; places: [batch] integers, where the word stands; W: [d_model, n_senses];
    b: [n_senses]. Returns [batch, n_senses].
    """
    scores = [vectors[place] @ W + b for vectors, place in zip(memory, places.tolist(), strict=True)]
    return torch.stack(scores)


def _mask(lengths, src_len):
    return (torch.arange(src_len) < torch.tensor(lengths)[:, None])[:, None, None]


def _mean_cases():
    return [
        Case("1 real token and 1 of padding", (torch.tensor([[[1.0, 2.0], [5.0, 7.0]]]), _mask([1], 2))),
        Case("sentences of 2, 5 and 3 tokens", (normal(120, (3, 5, 7))[0], _mask([2, 5, 3], 5))),
        Case("no padding", (normal(121, (2, 3, 5))[0], _mask([3, 3], 3))),
        Case("much padding", (normal(122, (2, 11, 3))[0] + 1, _mask([1, 2], 11))),
        Case("padding in front", (normal(123, (2, 7, 2))[0], _mask([2, 5], 7).flip(-1))),
    ]


def _score_cases():
    def case(label, seed, batch, src_len, d_model, n_senses):
        memory, W, b = normal(seed, (batch, src_len, d_model), (d_model, n_senses), (n_senses,))
        return Case(label, (memory, integers(seed, (batch,), 0, src_len), W, b))

    return [
        case("1 sentence of 2 tokens, 2 senses", 130, 1, 2, 3, 2),
        case("3 sentences of 5 tokens, 7 senses", 131, 3, 5, 11, 7),
        case("as many sentences as tokens", 132, 5, 5, 3, 2),
        case("one token each", 133, 3, 1, 2, 5),
        case("7 sentences of 11 tokens", 134, 7, 11, 5, 3),
    ]


def _mean_with(weights):
    def function(memory, mask):
        kept = mask[:, 0, 0, :, None].to(memory)
        return weights(memory, kept)

    return function


EXERCISES = (
    Exercise(
        "10.5",
        "A mean without padding",
        8,
        1,
        real_token_mean,
        _mean_cases,
        (
            Mistake(
                "all positions",
                _mean_with(lambda m, k: m.mean(dim=1)),
                "The padding's vectors are in your mean: they depend on the batch that the sentence sits in.",
            ),
            Mistake(
                "divided by src_len",
                _mean_with(lambda m, k: (m * k).mean(dim=1)),
                "The sum is right; divide it by the number of real tokens, not by src_len.",
            ),
            Mistake(
                "inverted",
                _mean_with(lambda m, k: (m * (1 - k)).sum(1) / (1 - k).sum(1).clamp(min=1)),
                "You averaged the padding: True marks the real tokens.",
            ),
            Mistake("sum", _mean_with(lambda m, k: (m * k).sum(dim=1)), "That is the sum; divide it by the count."),
            Mistake(
                "whole batch",
                _mean_with(lambda m, k: (m * k).sum(1) / k.sum() * len(m)),
                "You divided every sentence by the mean length of the batch; each has its own count.",
            ),
            Mistake(
                "first token", _mean_with(lambda m, k: m[:, 0]), "That is the first position's vector, not a mean."
            ),
            Mistake(
                "over features",
                _mean_with(lambda m, k: m.mean(dim=2)),
                "You averaged over the features; the tokens are axis 1.",
            ),
        ),
        gradients=("memory",),
    ),
    Exercise(
        "10.6",
        "Read one word's vector",
        8,
        2,
        sense_scores,
        _score_cases,
        (
            Mistake(
                "first place",
                lambda m, p, W, b: m[:, 0] @ W + b,
                "You read the first position of every sentence; places says where the word stands.",
            ),
            Mistake(
                "last place",
                lambda m, p, W, b: m[:, -1] @ W + b,
                "You read the last position of every sentence; places says where the word stands.",
            ),
            Mistake(
                "mean",
                lambda m, p, W, b: m.mean(dim=1) @ W + b,
                "You averaged the sentence; the word's own vector is asked for.",
            ),
            Mistake(
                "one place for all",
                lambda m, p, W, b: m[:, p[0]] @ W + b,
                "You read the first sentence's place in every sentence.",
            ),
            Mistake(
                "cross product",
                lambda m, p, W, b: m[:, p] @ W + b,
                "memory[:, places] takes every place in every sentence; pair each sentence with its own place: "
                "memory[torch.arange(batch), places].",
            ),
            Mistake("one sentence", lambda m, p, W, b: m[0, p] @ W + b, "You read all places in the first sentence."),
            Mistake("no bias", lambda m, p, W, b: m[torch.arange(len(m)), p] @ W, "The bias b is missing."),
            Mistake(
                "softmax",
                lambda m, p, W, b: (m[torch.arange(len(m)), p] @ W + b).softmax(-1),
                "Those are probabilities; the scores before the softmax are asked for.",
            ),
            Mistake("all scores", lambda m, p, W, b: m @ W + b, "You scored every position; read one per sentence."),
        ),
        gradients=("memory", "W", "b"),
    ),
)
