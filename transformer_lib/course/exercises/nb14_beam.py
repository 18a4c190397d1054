"""Exercises of notebook 14, continued: one step of beam search, and a fair score for its length."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, normal

INF = float("inf")


def beam_step(scores, next_log_probs, beam_size):
    """Return (new_scores, parents, tokens) of the beam_size best continuations, the best first.

    scores: [n_beams], summed log-probabilities so far; next_log_probs: [n_beams, vocab_size].
    parents: which beam each continues; tokens: which token it adds. All three: [beam_size].
    """
    table = [
        (score + gain, beam, token)
        for beam, score in enumerate(scores.tolist())
        for token, gain in enumerate(next_log_probs[beam].tolist())
    ]
    best = sorted(table, key=lambda row: -row[0])[:beam_size]
    totals, parents, tokens = zip(*best, strict=True)
    return torch.tensor(totals), torch.tensor(parents), torch.tensor(tokens)


def length_penalised_score(log_prob, length, alpha):
    """Return the summed log-probability divided by ((5 + length) / 6) to the power alpha (Wu et al. 2016, eq. 14).

    log_prob: a negative number; length: number of tokens; alpha: 0 (no penalty) or more. Returns a float.
    """
    divisor = 1.0
    if alpha:
        divisor = torch.tensor((5 + length) / 6, dtype=torch.float64).log().mul(alpha).exp().item()
    return log_prob / divisor


def _beam_cases():
    def case(label, seed, beams, vocab, size):
        scores, logits = normal(seed, (beams,), (beams, vocab))
        return Case(label, (-3 * scores.abs(), torch.log_softmax(2 * logits, -1), size))

    first = torch.tensor([0.0, -INF, -INF])
    return [
        case("2 beams, 3 tokens", 1, 2, 3, 2),
        case("3 beams, 11 tokens", 2, 3, 11, 3),
        case("5 beams, 7 tokens", 3, 5, 7, 5),
        case("5 beams, 5 tokens", 5, 5, 5, 5),
        case("one beam", 4, 1, 5, 1),
        Case("first step: one live beam of 3", (first, torch.log_softmax(normal(6, (3, 7))[0], -1), 3)),
    ]


def _penalty_cases():
    settings = [
        ("the paper's alpha", -7.0, 11, 0.6),
        ("one token", -2.0, 1, 0.6),
        ("no penalty", -5.0, 7, 0.0),
        ("alpha 1", -3.5, 13, 1.0),
        ("a long sentence", -53.0, 47, 0.8),
    ]
    return [Case(label, args) for label, *args in settings]


def _beam(table=lambda s, z: s[:, None] + z, split=lambda i, z: (i // z.shape[1], i % z.shape[1]), largest=True):
    """The beam step with one part exchanged for another."""

    def function(scores, next_log_probs, beam_size):
        totals, flat = table(scores, next_log_probs).flatten().topk(beam_size, largest=largest)
        return totals, *split(flat, next_log_probs)

    return function


def _best_of_each(added_first, ranked):
    """Each beam's best continuation alone. Dead beams (score −∞) choose another token when scores are added first."""

    def function(scores, next_log_probs, beam_size):
        tokens = (scores[:, None] + next_log_probs if added_first else next_log_probs).argmax(dim=1)
        totals = scores + next_log_probs[torch.arange(len(scores)), tokens]
        order = totals.argsort(descending=True) if ranked else torch.arange(len(scores))
        return totals[order], order, tokens[order]

    return function


def _as_probabilities(scores, next_log_probs, beam_size):
    totals, *rest = beam_step(scores, next_log_probs, beam_size)
    return totals.exp(), *rest


def _greedy_parent(scores, next_log_probs, beam_size):
    parent = scores.argmax()
    gains, tokens = next_log_probs[parent].topk(beam_size)
    return scores[parent] + gains, parent.expand(beam_size), tokens


EXERCISES = (
    Exercise(
        "14.4",
        "One step of beam search",
        15,
        3,
        beam_step,
        _beam_cases,
        (
            Mistake(
                "best of each",
                _best_of_each(added_first=False, ranked=True),
                "You kept the best continuation of each beam; choose among all continuations of all beams: a good "
                "beam may keep several.",
            ),
            Mistake(
                "best of each, in beam order",
                _best_of_each(added_first=False, ranked=False),
                "You kept the best continuation of each beam, in the order of the beams; choose among all "
                "continuations of all beams, the best first: a good beam may keep several.",
            ),
            Mistake(
                "best sum of each",
                _best_of_each(added_first=True, ranked=True),
                "You kept the best sum of each beam; choose among the sums of all beams: a good beam may keep several.",
            ),
            Mistake(
                "best sum of each, in beam order",
                _best_of_each(added_first=True, ranked=False),
                "You kept the best sum of each beam, in the order of the beams; choose among the sums of all "
                "beams, the best first: a good beam may keep several.",
            ),
            Mistake("best beam only", _greedy_parent, "You continued the best beam only; the other beams compete too."),
            Mistake("no sum", _beam(lambda s, z: z), "You ranked the new tokens alone; add each beam's score so far."),
            Mistake(
                "product",
                _beam(lambda s, z: s[:, None] * z),
                "You multiplied the log-probabilities; probabilities multiply, so their logarithms add.",
            ),
            Mistake(
                "probabilities",
                _beam(lambda s, z: s[:, None] + z.exp()),
                "You added probabilities to log-probabilities; stay with logarithms.",
            ),
            Mistake(
                "probabilities returned",
                _as_probabilities,
                "The scores came back as probabilities; they stay summed log-probabilities.",
            ),
            Mistake(
                "swapped",
                _beam(split=lambda i, z: (i % z.shape[1], i // z.shape[1])),
                "parents and tokens are swapped: parent = index // vocab_size, token = index % vocab_size.",
            ),
            Mistake(
                "by beams",
                _beam(split=lambda i, z: (i // z.shape[0], i % z.shape[0])),
                "You divided the flat index by the number of beams; each row has vocab_size entries.",
            ),
            Mistake("smallest", _beam(largest=False), "You kept the least likely continuations."),
        ),
        returns=("new_scores", "parents", "tokens"),
    ),
    Exercise(
        "14.5",
        "A fair score for length",
        4,
        1,
        length_penalised_score,
        _penalty_cases,
        (
            Mistake(
                "plain length",
                lambda s, n, a: s / n**a,
                "You divided by length^alpha; the formula takes ((5 + length) / 6)^alpha.",
            ),
            Mistake(
                "times",
                lambda s, n, a: s * ((5 + n) / 6) ** a,
                "You multiplied by the penalty; log-probabilities are negative, so that punishes length more.",
            ),
            Mistake("no power", lambda s, n, a: s / ((5 + n) / 6), "The exponent alpha is missing."),
            Mistake(
                "alpha as factor", lambda s, n, a: s / (1 + a * (5 + n) / 6 - a), "alpha is an exponent, not a factor."
            ),
            Mistake(
                "brackets",
                lambda s, n, a: s / (5 + n / 6) ** a,
                "The brackets are off: (5 + length) / 6, not 5 + length / 6.",
            ),
            Mistake(
                "power of the six",
                lambda s, n, a: s / ((5 + n) / 6**a),
                "The power takes the whole fraction: ((5 + length) / 6) ** alpha; yours takes the 6 alone.",
            ),
            Mistake(
                "power of the length",
                lambda s, n, a: s / ((5 + n) ** a / 6),
                "The power takes the whole fraction: ((5 + length) / 6) ** alpha; yours takes 5 + length alone.",
            ),
            Mistake(
                "divided twice",
                lambda s, n, a: s / (5 + n) / 6**a,
                "You divided by 5 + length and by a power of 6. The power takes the whole fraction: "
                "((5 + length) / 6) ** alpha.",
            ),
            Mistake(
                "no sixth",
                lambda s, n, a: s / (5 + n) ** a,
                "Divide 5 + length by 6, so that a sentence of one token keeps its score.",
            ),
            Mistake("no penalty", lambda s, n, a: s, "You returned the sum as it is: the penalty is missing."),
        ),
    ),
)
