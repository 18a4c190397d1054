"""Exercises of notebook 07, continued: the loss one step at a time, and a search for leaks."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, integers, normal


def stepwise_loss(logits_of, tgt):
    """Return the mean cross-entropy of a sentence, computed one step at a time.

    logits_of: takes token ids [n] and returns logits [n, vocab_size]; row t scores the token after the first t + 1.
    tgt: [seq_len + 1] ids, beginning with bos. At each of the seq_len steps the model gets the true tokens so far
    and nothing else; the loss of the step is −log of the probability that it gives to the true next token.
    """
    losses = []
    for known in range(1, len(tgt)):
        last = logits_of(tgt[:known].clone())[-1]
        losses.append(torch.logsumexp(last, dim=0) - last[tgt[known]])
    return sum(losses) / len(losses)


def leak_map(logits_of, ids, vocab_size):
    """Return where a model looks ahead: booleans [seq_len, seq_len], True where row t depends on a later token s.

    logits_of: takes token ids [seq_len] and returns logits [seq_len, vocab_size]. ids: [seq_len] integers from 0 to
    vocab_size − 1. Entries with s ≤ t are False.
    """
    before = logits_of(ids.clone())
    rows = []
    for t in range(len(ids)):
        row = []
        for s in range(len(ids)):
            swapped = [(token + 1) % vocab_size if place == s else token for place, token in enumerate(ids.tolist())]
            row.append(s > t and not torch.equal(logits_of(torch.tensor(swapped))[t], before[t]))
        rows.append(row)
    return torch.tensor(rows)


def _model(seed, vocab_size, longest, sees):
    """A model whose logits in row t are a blend of the tokens that `sees(t, s)` lets it see."""
    tables = normal(seed, (longest, vocab_size, vocab_size), dtype=torch.float64)[0]  # one table per distance

    def logits_of(ids):
        n, rows = len(ids), []
        for t in range(n):
            seen = [tables[abs(t - s) % longest, ids[s]] * (1.5 if s > t else 1.0) for s in range(n) if sees(t, s)]
            rows.append(sum(seen, torch.zeros(vocab_size, dtype=torch.float64)))
        return torch.stack(rows)

    return logits_of


def _past(t, s):
    return s <= t


def _loss_cases():
    def case(label, seed, vocab_size, length, sees):
        return Case(label, (_model(seed, vocab_size, 13, sees), integers(seed, (length,), 0, vocab_size)))

    return [
        case("one step", 75, 3, 2, _past),
        case("2 steps, 5 words", 76, 5, 3, _past),
        case("7 steps, 11 words", 77, 11, 8, _past),
        case("a model that would look ahead if it could", 78, 5, 6, lambda t, s: True),
        case("a model that would read the next token", 79, 7, 4, lambda t, s: s in (t, t + 1)),
    ]


def _leak_cases():
    def case(label, seed, ids, vocab_size, sees):
        return Case(label, (_model(seed, vocab_size, 13, sees), torch.tensor(ids), vocab_size))

    return [
        case("2 tokens, everything seen", 80, [1, 2], 3, lambda t, s: True),
        case("a causal model", 81, [1, 4, 0, 2, 3], 5, _past),
        case("reads the next token", 82, [2, 6, 1, 0, 5, 3, 4], 7, lambda t, s: s <= t + 1),
        case("row 1 reads the last but one", 83, [3, 1, 2, 0, 4], 5, lambda t, s: s <= t or (t, s) == (1, 3)),
        case("without a mask", 84, [0, 2, 1], 3, lambda t, s: True),
    ]


def _loss(prefix=lambda tgt, t: tgt[: t + 1], row=lambda t: -1, label=lambda tgt, t: tgt[t + 1], start=0, finish=None):
    """The stepwise loss, each slip a switch; t counts steps from 0."""

    def function(logits_of, tgt):
        losses = []
        for t in range(start, len(tgt) - 1):
            log_p = torch.log_softmax(logits_of(prefix(tgt, t))[row(t)], dim=-1)
            losses.append(-log_p[label(tgt, t)])
        total = torch.stack(losses or [torch.zeros((), dtype=torch.float64)])
        return finish(total) if finish else total.mean()

    return function


def _free_running(logits_of, tgt):
    fed, losses = tgt[:1], []
    for label in tgt[1:]:
        log_p = torch.log_softmax(logits_of(fed)[-1], dim=-1)
        losses.append(-log_p[label])
        fed = torch.cat([fed, log_p.argmax()[None]])
    return torch.stack(losses).mean()


def _bare_logit(logits_of, tgt):
    return -sum(logits_of(tgt[: t + 1])[-1][tgt[t + 1]] for t in range(len(tgt) - 1)) / (len(tgt) - 1)


def _influence(logits_of, ids, vocab_size, change=lambda token, vocab_size: (token + 1) % vocab_size):
    """[t, s], True where row t depends on token s, earlier ones included."""
    before, columns = logits_of(ids), []
    for s in range(len(ids)):
        changed = ids.clone()
        changed[s] = change(int(ids[s]), vocab_size)
        columns.append((logits_of(changed) != before).any(-1))
    return torch.stack(columns, dim=1)


def _all_later_at_once(logits_of, ids, vocab_size):
    before, n = logits_of(ids), len(ids)
    found = torch.zeros(n, n, dtype=torch.bool)
    for t in range(n - 1):
        changed = torch.cat([ids[: t + 1], (ids[t + 1 :] + 1) % vocab_size])
        found[t, t + 1 :] = bool((logits_of(changed)[t] != before[t]).any())
    return found


def _never_put_back(logits_of, ids, vocab_size):
    before, changed, columns = logits_of(ids), ids.clone(), []
    for s in range(len(ids)):
        changed[s] = (changed[s] + 1) % vocab_size
        columns.append((logits_of(changed) != before).any(-1))
    return torch.stack(columns, dim=1).triu(1)


def _only_last(logits_of, ids, vocab_size):
    found = _influence(logits_of, ids, vocab_size).triu(1)
    found[:, :-1] = False
    return found


EXERCISES = (
    Exercise(
        "07.5",
        "The loss, one step at a time",
        10,
        2,
        stepwise_loss,
        _loss_cases,
        (
            Mistake(
                "in one pass",
                _loss(prefix=lambda tgt, t: tgt[:-1], row=lambda t: t),
                "You fed the whole sentence. That is right for a causal model only; here the model must get the "
                "tokens so far, tgt[:t + 1].",
            ),
            Mistake(
                "answer in the prefix",
                _loss(prefix=lambda tgt, t: tgt[: t + 2], row=lambda t: t),
                "Your prefix already holds the token to be predicted: feed tgt[:t + 1], compare with tgt[t + 1].",
            ),
            Mistake(
                "prefix too long",
                _loss(prefix=lambda tgt, t: tgt[: t + 2]),
                "Your prefix is too long and holds the label: feed tgt[:t + 1], compare with tgt[t + 1].",
            ),
            Mistake(
                "one step too many",
                lambda f, tgt: _loss(finish=lambda losses: losses.sum())(f, tgt) / len(tgt),
                "You divided by the length of tgt; there is one step less, len(tgt) - 1.",
            ),
            Mistake(
                "own guesses",
                _free_running,
                "You fed the model's own guesses; teacher forcing feeds the true tokens, tgt[:t + 1].",
            ),
            Mistake(
                "unshifted",
                _loss(label=lambda tgt, t: tgt[t]),
                "You compared with the token just read; the label is the next one.",
            ),
            Mistake(
                "first row",
                _loss(row=lambda t: 0),
                "You took the first row of the logits; the prediction after the prefix is the last row.",
            ),
            Mistake("sum", _loss(finish=lambda losses: losses.sum()), "You added up the steps; return their mean."),
            Mistake(
                "no first step",
                _loss(start=1),
                "The first step is missing: after bos alone the model must predict the first word.",
            ),
            Mistake(
                "no softmax",
                _bare_logit,
                "You took the logit itself; the loss is −log softmax(logits) at the true token.",
            ),
            Mistake(
                "probabilities",
                _loss(finish=lambda losses: -(-losses).exp().mean()),
                "You averaged probabilities; the loss averages −log of them.",
            ),
        ),
    ),
    Exercise(
        "07.6",
        "Find the leak",
        15,
        3,
        leak_map,
        _leak_cases,
        (
            Mistake(
                "the past too",
                _influence,
                "You also marked s ≤ t; a row may depend on itself and on earlier tokens, only later ones leak.",
            ),
            Mistake(
                "itself",
                lambda f, ids, v: _influence(f, ids, v).triu(0),
                "You marked the diagonal; a row may depend on its own token.",
            ),
            Mistake(
                "turned",
                lambda f, ids, v: _influence(f, ids, v).triu(1).T,
                "Your map is transposed: the row is the prediction t, the column the changed token s.",
            ),
            Mistake("last only", _only_last, "You changed only the last token; change each later token on its own."),
            Mistake(
                "all at once",
                _all_later_at_once,
                "You changed all later tokens together, which tells that a row leaks, but not from where.",
            ),
            Mistake(
                "never put back",
                _never_put_back,
                "You did not put a changed token back, so earlier changes show up as leaks: copy ids each time.",
            ),
            Mistake(
                "always id 0",
                lambda f, ids, v: _influence(f, ids, v, lambda token, vocab_size: 0).triu(1),
                "You replaced tokens by id 0, which changes nothing where the token is 0: choose another id, "
                "such as (id + 1) % vocab_size.",
            ),
        ),
    ),
)
