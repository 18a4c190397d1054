"""Exercises of notebook 14: greedy decoding."""

from __future__ import annotations

import torch

from .model import Case, Endless, Exercise, Mistake, normal

INF = float("inf")


def greedy_loop(next_logits, bos_id, eos_id, max_new_tokens):
    """Return the ids of a sentence, each the best next token given all before it, starting from [bos_id].

    next_logits: a function that takes a list of ids and returns the logits [vocab_size] of the token that follows.
    Stop after eos_id (which stays in the list), or after max_new_tokens tokens beyond bos_id.
    """
    ids = [bos_id]
    for _ in range(max_new_tokens):
        logits = next_logits(list(ids)).tolist()
        ids.append(logits.index(max(logits)))
        if ids[-1] == eos_id:
            break
    return ids


def _model(seed, vocab_size, eos_id, eos_after):
    """A pretend model whose next token depends on the whole prefix; it ends when it is told to."""
    table = normal(seed, (31, vocab_size))[0]

    def next_logits(ids):
        logits = table[sum((place + 1) * (token + 3) for place, token in enumerate(ids)) % 31].clone()
        logits[eos_id] = 1e4 if len(ids) > eos_after else -1e4  # finite: a softmax of infinity is no number
        return logits

    return next_logits


def _greedy_cases():
    return [
        Case("ends after 2 tokens", (_model(1, 5, 2, 2), 1, 2, 7)),
        Case("ends after 5 tokens", (_model(2, 11, 2, 5), 1, 2, 13)),
        Case("eos never comes", (_model(3, 7, 2, 10**6), 1, 2, 5)),
        Case("eos is the first token", (_model(4, 7, 3, 0), 0, 3, 5)),
        Case("eos comes as the last one allowed", (_model(5, 13, 2, 3), 1, 2, 4)),
        Case("other ids for bos and eos", (_model(6, 11, 7, 4), 5, 7, 11)),
    ]


def _greedy(choose=torch.argmax, seen=lambda ids: list(ids), limit=lambda n: n, stop=True, keep_eos=True, first=0):
    """The greedy loop with one step exchanged for another."""

    def function(next_logits, bos_id, eos_id, max_new_tokens):
        ids = [bos_id]
        while len(ids) - 1 < limit(max_new_tokens):
            if len(ids) > 100:
                raise Endless
            token = int(choose(next_logits(seen(ids))))
            if stop and token == eos_id:
                return ids[first:] + [eos_id] * keep_eos
            ids.append(token)
        return ids[first:]

    return function


EXERCISES = (
    Exercise(
        "14.1",
        "A greedy loop",
        12,
        1,
        greedy_loop,
        _greedy_cases,
        (
            Mistake(
                "never stops", _greedy(stop=False), "Your loop goes on after eos: stop as soon as eos_id is chosen."
            ),
            Mistake("no eos", _greedy(keep_eos=False), "You stopped at eos but left it out; it belongs to the result."),
            Mistake("no bos", _greedy(first=1), "bos is missing: the result begins with bos_id."),
            Mistake(
                "bos counted",
                _greedy(limit=lambda n: n - 1),
                "You counted bos among max_new_tokens, so the longest sentence is one token short.",
            ),
            Mistake("one more", _greedy(limit=lambda n: n + 1), "Your loop makes one token more than max_new_tokens."),
            Mistake(
                "no limit",
                _greedy(limit=lambda n: INF),
                "Your loop ends only at eos; when eos never comes, it must end after max_new_tokens.",
            ),
            Mistake(
                "last only",
                _greedy(seen=lambda ids: ids[-1:]),
                "You gave the model only the last token; it needs the whole sentence so far.",
            ),
            Mistake("worst", _greedy(choose=torch.argmin), "You chose the least likely token; take the most likely."),
        ),
    ),
)
