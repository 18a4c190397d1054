"""The exercises of notebook 14: translating."""

from __future__ import annotations

import math

import torch

from .model import Case, Endless, Exercise, Mistake, normal
from .probes import weights_sum

INF = float("inf")


# 14.1 A greedy loop --------------------------------------------------------------------------------------------------


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
    """Return a pretend model whose next token depends on the whole prefix; it ends when it is told to."""
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


def _greedy(
    choose=torch.argmax, seen=lambda ids: list(ids), limit=lambda n: n, stop=True, keep_eos=True, first=0, add_eos=False
):
    """Return the greedy loop with one step replaced."""

    def function(next_logits, bos_id, eos_id, max_new_tokens):
        ids = [bos_id]
        while len(ids) - 1 < limit(max_new_tokens):
            if len(ids) > 100:
                raise Endless
            token = int(choose(next_logits(seen(ids))))
            if stop and token == eos_id:
                return ids[first:] + [eos_id] * keep_eos
            ids.append(token)
        return ids[first:] + [eos_id] * add_eos

    return function


EXERCISE_1 = Exercise(
    "14.1",
    "A greedy loop",
    8,
    1,
    greedy_loop,
    _greedy_cases,
    (
        Mistake("never stops", _greedy(stop=False), "Your loop goes on after eos: stop as soon as eos_id is chosen."),
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
        Mistake(
            "a fixed limit",
            _greedy(limit=lambda n: 20),
            "Your limit is a fixed number; it must be max_new_tokens.",
        ),
        Mistake(
            "eos at the limit",
            _greedy(add_eos=True),
            "Where the limit ends the sentence you appended eos_id, though it was not chosen; leave it out.",
        ),
        Mistake(
            "last entry",
            _greedy(choose=lambda logits: logits[-1].argmax()),
            "next_logits already gives one row, the logits of the next token: take the argmax of all of it.",
        ),
        Mistake("worst", _greedy(choose=torch.argmin), "You chose the least likely token; take the most likely."),
    ),
    part="greedy_loop",
)


# 14.2 Several tokens through the cache --------------------------------------------------------------------------------


def cached_attention(x, keys, values, W_Q, W_K, W_V):
    """Return (output, keys, values) of causal self-attention, one head, for the newest tokens, with a cache.

    x: [new, d_model], the newest tokens. keys: [t, d_k] and values: [t, d_v], of the t tokens before (t may be 0).
    W_Q, W_K: [d_model, d_k]; W_V: [d_model, d_v]. A new token reads all t earlier tokens, the new ones before it, and
    itself. Returns the outputs of the new tokens [new, d_v], and keys and values with the new rows last.
    """
    output = []
    for token in x:
        keys, values = torch.cat([keys, (token @ W_K)[None]]), torch.cat([values, (token @ W_V)[None]])
        weights = torch.softmax(keys @ (token @ W_Q) / keys.shape[1] ** 0.5, dim=0)
        output.append(weights @ values)
    return torch.stack(output), keys, values


def _cache_cases():
    def case(label, seed, new, t, d_model, d_k, d_v):
        shapes = [(new, d_model), (t, d_k), (t, d_v), (d_model, d_k), (d_model, d_k), (d_model, d_v)]
        return Case(label, tuple(normal(seed, *shapes)))

    unseen, apart = torch.eye(2), torch.tensor([[3.0, 0.0], [-30.0, 0.0]])
    return [
        case("one new token, 2 in the cache", 1, 1, 2, 3, 5, 7),
        case("prefill: 5 new tokens, an empty cache", 2, 5, 0, 3, 2, 5),
        case("3 new tokens, 2 in the cache", 3, 3, 2, 5, 3, 2),
        case("2 new tokens, 7 in the cache", 4, 2, 7, 5, 3, 11),
        case("one new token, an empty cache", 5, 1, 0, 2, 3, 2),
        case("d_k = d_v = d_model", 6, 3, 5, 3, 3, 3),
        Case(
            "a readable score near −60, and a hidden one", (apart, apart[1:], unseen[1:], unseen, -10 * unseen, unseen)
        ),
    ]


def _cached(
    scale=lambda x, k: k.shape[1] ** 0.5,
    may=lambda new, t: torch.ones(new, t + new, dtype=torch.bool).tril(t),
    fill=-INF,
    join=lambda old, new: (old, new),
    axis=-1,
):
    """Return the exercise with one part replaced; may(new, t) says which keys, old ones first, each new token reads."""

    def function(x, keys, values, W_Q, W_K, W_V):
        may_read = may(len(x), len(keys))
        keys, values = (torch.cat(join(old, x @ W)) for old, W in ((keys, W_K), (values, W_V)))
        scores = (x @ W_Q @ keys.T / scale(x, keys)).masked_fill(~may_read, fill)
        return torch.softmax(scores, axis) @ values, keys, values

    return function


def _only_new(new, t):
    return torch.cat([torch.zeros(new, t, dtype=torch.bool), torch.ones(new, new, dtype=torch.bool).tril()], dim=1)


def _not_kept(*args):
    return cached_attention(*args)[0], args[1], args[2]


def _only_the_new_rows(*args):
    output, keys, values = cached_attention(*args)
    return output, keys[len(args[1]) :], values[len(args[2]) :]


def _swapped(*args):
    output, keys, values = cached_attention(*args)
    return output, values, keys


def _masked_after(x, keys, values, W_Q, W_K, W_V):
    t = len(keys)
    keys, values = torch.cat([keys, x @ W_K]), torch.cat([values, x @ W_V])
    weights = torch.softmax(x @ W_Q @ keys.T / keys.shape[1] ** 0.5, -1)
    return weights.tril(t) @ values, keys, values


def _last_output(*args):
    output, keys, values = cached_attention(*args)
    return output[-1:], keys, values


EXERCISE_2 = Exercise(
    "14.2",
    "Several tokens through the cache",
    10,
    2,
    cached_attention,
    _cache_cases,
    (
        Mistake(
            "no mask",
            _cached(may=lambda new, t: torch.ones(new, t + new, dtype=torch.bool)),
            "A new token reads new tokens that come after it: among the new ones the causal mask holds.",
        ),
        Mistake(
            "mask from column 0",
            _cached(may=lambda new, t: torch.ones(new, t + new, dtype=torch.bool).tril()),
            "Your mask is causal counted from the first key, but the first new token is token t: all t earlier tokens "
            "may be read, so the diagonal starts t columns further right.",
        ),
        Mistake(
            "not itself",
            _cached(may=lambda new, t: torch.ones(new, t + new, dtype=torch.bool).tril(t - 1)),
            "A new token does not read itself: the diagonal belongs to what it may read.",
        ),
        Mistake(
            "one ahead",
            _cached(may=lambda new, t: torch.ones(new, t + new, dtype=torch.bool).tril(t + 1)),
            "Each new token reads the one after it as well: your diagonal starts one column too far right.",
        ),
        Mistake(
            "diagonal by the new tokens",
            _cached(may=lambda new, t: torch.ones(new, t + new, dtype=torch.bool).tril(new)),
            "Your diagonal is shifted by the number of new tokens; it is the t earlier ones that move it to the right.",
        ),
        Mistake(
            "softmax over the new tokens",
            _cached(axis=0),
            "Your softmax runs over the new tokens; it runs over the keys, the last axis.",
        ),
        Mistake(
            "masked after the softmax",
            _masked_after,
            "You removed the weights of later tokens after the softmax, so the rest no longer sums to one: fill their "
            "scores with −∞ before it.",
        ),
        Mistake(
            "inverted mask",
            _cached(may=lambda new, t: ~torch.ones(new, t + new, dtype=torch.bool).tril(t), fill=-1e9),
            "Your mask is inverted: the readable keys are hidden, and the later ones read.",
        ),
        Mistake(
            "number of keys",
            _cached(scale=lambda x, k: len(k) ** 0.5),
            "You divided by the root of the number of keys; it is √d_k, the root of their width.",
        ),
        Mistake(
            "keys from W_Q",
            lambda x, keys, values, W_Q, W_K, W_V: cached_attention(x, keys, values, W_K, W_Q, W_V),
            "You projected the new keys with W_Q, and the queries with W_K; it is the other way round.",
        ),
        Mistake("cache not read", _cached(may=_only_new), "The new tokens read only each other: read the cache, too."),
        Mistake(
            "caches not grown",
            _not_kept,
            "The output is right, but the caches did not grow: return them with the new rows.",
        ),
        Mistake(
            "new rows alone",
            _only_the_new_rows,
            "The output is right, but you returned the new keys and values alone: the earlier ones stay in front.",
        ),
        Mistake(
            "in front",
            _cached(join=lambda old, new: (new, old)),
            "You put the new rows in front of the cache; the newest tokens come last.",
        ),
        Mistake("no scaling", _cached(scale=lambda x, k: 1.0), "You did not divide the scores by √d_k."),
        Mistake(
            "d_model",
            _cached(scale=lambda x, k: x.shape[1] ** 0.5),
            "You divided by √d_model; the width of a key is d_k.",
        ),
        Mistake(
            "hidden scores 0",
            _cached(fill=0.0),
            "You set hidden scores to 0, but exp(0) = 1: fill them with −∞.",
        ),
        Mistake(
            "hidden scores small",
            _cached(fill=-20.0),
            "You filled hidden scores with a number that a readable score can be far below: take −∞.",
        ),
        Mistake("values first", _swapped, "You returned the values before the keys."),
        Mistake(
            "last output",
            _last_output,
            "You returned the output of the last token alone; there is one for each new token.",
        ),
    ),
    returns=("output", "keys", "values"),
)


# 14.3 The nucleus ----------------------------------------------------------------------------------------------------


def nucleus(logits, p, temperature):
    """Return the probabilities of the most likely tokens that together reach p at this temperature, and 0 for others.

    logits: [vocab_size], divided by the temperature first, no two equal; p: above 0, up to 1. The fewest tokens whose
    probabilities add up to at least p stay, at least one. Returns [vocab_size], each probability in its token's
    position, summing to one.
    """
    probabilities = torch.softmax(logits / temperature, dim=0)
    kept, total = torch.zeros_like(logits), 0.0
    for token in sorted(range(len(logits)), key=lambda token: -logits[token].item()):
        if total >= p:
            break
        kept[token] = probabilities[token]
        total += probabilities[token].item()
    return kept / kept.sum()


def _nucleus_cases():
    return [
        Case("3 tokens, p = 0.6", (torch.tensor([0.2, 0.5, 0.3]).log(), 0.6, 1.0)),
        Case("the best alone is enough", (torch.tensor([0.1, 0.2, 0.7]).log(), 0.4, 1.3)),
        Case("7 tokens, p = 0.8, temperature 2", (normal(12, (7,))[0], 0.8, 2.0)),
        Case("11 tokens, p = 0.9, temperature 0.5", (2 * normal(13, (11,))[0], 0.9, 0.5)),
        Case("p = 1 keeps every token", (normal(14, (5,))[0], 1.0, 0.7)),
        Case("a very small p", (normal(15, (5,))[0], 0.01, 1.5)),
        Case("the sum just reaches p", (torch.tensor([0.0625, 0.25, 0.1875, 0.5]).log(), 0.7499, 1.0)),
        Case("the best alone is p to the last digit", (torch.tensor([0.25, 0.15, 0.5, 0.1]).log(), 0.5, 1.0)),
        Case(
            "a nucleus that grows with the temperature", (torch.tensor([0.01, 0.9, 0.04, 0.03, 0.02]).log(), 0.89, 1.2)
        ),
    ]


def _nucleus(keep, descending=True, renew=True, back=True, heat=lambda z, t: torch.softmax(z / t, 0)):
    """Return top-p with one step replaced; keep(sorted probabilities, their running sum, p) says which stay."""

    def function(logits, p, temperature):
        probabilities, order = heat(logits, temperature).sort(descending=descending)
        kept = probabilities * keep(probabilities, probabilities.cumsum(0), p)
        kept = kept / kept.sum() if renew else kept
        return torch.zeros_like(kept).scatter(0, order, kept) if back else kept

    return function


def _below(probabilities, total, p):
    """Keep a token while those before it have not reached p, as is right."""
    return total - probabilities < p


def _in_vocabulary_order(logits, p, temperature):
    probabilities = torch.softmax(logits / temperature, 0)
    kept = probabilities * _below(probabilities, probabilities.cumsum(0), p)
    return kept / kept.sum()


def _zero_logits(logits, p, temperature):
    kept = nucleus(logits, p, temperature) > 0
    return torch.softmax((logits / temperature).masked_fill(~kept, 0.0), 0)


def _share_of_tokens(logits, p, temperature):
    return _nucleus(lambda s, total, p: torch.arange(len(s)) < math.ceil(p * len(s)))(logits, p, temperature)


def _compared_each(logits, p, temperature):
    probabilities = torch.softmax(logits / temperature, 0)
    kept = probabilities * (probabilities >= p)
    return kept / kept.sum()


def _cooled_last(logits, p, temperature):
    """Choose the nucleus at temperature 1, and divide only what is left by the temperature."""
    kept = _nucleus(_below)(logits, p, 1.0) > 0
    return torch.softmax((logits / temperature).masked_fill(~kept, -INF), 0)


EXERCISE_3 = Exercise(
    "14.3",
    "The nucleus",
    12,
    2,
    nucleus,
    _nucleus_cases,
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
            "one more where p is met",
            _nucleus(lambda s, total, p: total - s <= p),
            "Where the sum is exactly p you keep one token too many: at least p is enough, so compare with <.",
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
            "not scaled again",
            _nucleus(_below, renew=False),
            "The kept probabilities do not sum to one: divide by their sum.",
        ),
        Mistake(
            "sorted",
            _nucleus(_below, back=False),
            "Your result is in sorted order; put each probability back into its token's position.",
        ),
        Mistake(
            "each", _compared_each, "You compared each probability with p; it is their running sum that must reach p."
        ),
        Mistake("no filter", lambda z, p, t: torch.softmax(z / t, 0), "You did not drop any token."),
        Mistake(
            "logits to 0", _zero_logits, "You set the logits of dropped tokens to 0, but exp(0) = 1: use −∞ instead."
        ),
        Mistake(
            "softmax again",
            lambda z, p, t: torch.softmax(nucleus(z, p, t), 0),
            "You took the softmax of probabilities, which gives dropped tokens some again: divide by the sum instead.",
        ),
        Mistake(
            "a share of the tokens",
            _share_of_tokens,
            "You kept the share p of the vocabulary; p is the probability that the kept tokens have together.",
        ),
        Mistake(
            "no temperature",
            lambda z, p, t: nucleus(z, p, 1.0),
            "The temperature has no effect: the logits must be divided by it.",
        ),
        Mistake(
            "times the temperature",
            lambda z, p, t: nucleus(z, p, 1 / t),
            "You multiplied by the temperature; divide, so that a high one evens the probabilities out.",
        ),
        Mistake(
            "temperature last",
            _cooled_last,
            "You chose the tokens at temperature 1 and applied the temperature to what was left; it comes first.",
        ),
        Mistake(
            "temperature on probabilities",
            _nucleus(_below, heat=lambda z, t: torch.softmax(z, 0) / t),
            "You divided the probabilities by the temperature; divide the logits, before the softmax.",
        ),
    ),
    probes=(weights_sum(None, "Probabilities", "tokens"),),
)


# 14.4 One step of beam search ----------------------------------------------------------------------------------------


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
        case("more beams kept than given", 7, 2, 5, 3),
        case("fewer beams kept than given", 8, 5, 3, 2),
    ]


def _beam(table=lambda s, z: s[:, None] + z, split=lambda i, z: (i // z.shape[1], i % z.shape[1]), largest=True):
    """Return the beam step with one part replaced."""

    def function(scores, next_log_probs, beam_size):
        totals, flat = table(scores, next_log_probs).flatten().topk(beam_size, largest=largest)
        return totals, *split(flat, next_log_probs)

    return function


def _best_of_each(added_first, ranked):
    """Keep each beam's best continuation alone. Dead beams (score −∞) choose differently if scores are added first."""

    def function(scores, next_log_probs, beam_size):
        tokens = (scores[:, None] + next_log_probs if added_first else next_log_probs).argmax(dim=1)
        totals = scores + next_log_probs[torch.arange(len(scores)), tokens]
        order = totals.argsort(descending=True) if ranked else torch.arange(len(scores))
        return totals[order], order, tokens[order]

    return function


def _best_of_the_best(scores, next_log_probs, beam_size):
    """Keep beam_size of the best continuations, one from each beam."""
    best, tokens = (scores[:, None] + next_log_probs).max(dim=1)
    totals, parents = best.topk(beam_size)
    return totals, parents, tokens[parents]


def _as_probabilities(scores, next_log_probs, beam_size):
    totals, *rest = beam_step(scores, next_log_probs, beam_size)
    return totals.exp(), *rest


def _beam_by_beam(scores, next_log_probs, beam_size):
    totals, tokens = (scores[:, None] + next_log_probs).sort(dim=1, descending=True)
    per_beam = min(beam_size, totals.shape[1])
    parents = torch.arange(len(scores)).repeat_interleave(per_beam)
    return tuple(part[:beam_size] for part in (totals[:, :per_beam].flatten(), parents, tokens[:, :per_beam].flatten()))


def _gains(scores, next_log_probs, beam_size):
    totals, parents, tokens = beam_step(scores, next_log_probs, beam_size)
    return next_log_probs[parents, tokens], parents, tokens


def _greedy_parent(scores, next_log_probs, beam_size):
    parent = scores.argmax()
    gains, tokens = next_log_probs[parent].topk(beam_size)
    return scores[parent] + gains, parent.expand(beam_size), tokens


EXERCISE_4 = Exercise(
    "14.4",
    "One step of beam search",
    12,
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
        Mistake(
            "the best beam_size, one of each",
            _best_of_the_best,
            "You took one continuation from each beam, and the best of these; the best two may continue the same beam.",
        ),
        Mistake(
            "tokens by beams",
            _beam(lambda s, z: s + z.T),
            "Your table is [vocab_size, n_beams], so the flat index counts the other way: put the beams in the rows.",
        ),
        Mistake(
            "best of each beam, one after the other",
            _beam_by_beam,
            "You took the best continuations of the first beam, then of the next; rank those of all beams together.",
        ),
        Mistake(
            "parents by a remainder",
            _beam(split=lambda i, z: (i % z.shape[0], i % z.shape[1])),
            "tokens are right, but the parent is index // vocab_size; yours is a remainder.",
        ),
        Mistake(
            "flat tokens",
            _beam(split=lambda i, z: (i // z.shape[1], i)),
            "Your tokens are indices of the flat table; the token is the remainder, index % vocab_size.",
        ),
        Mistake(
            "gains returned",
            _gains,
            "You returned what the new tokens add; new_scores are the sums with each beam's score.",
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
        Mistake(
            "as many as there were",
            lambda s, z, n: beam_step(s, z, len(s)),
            "You kept as many prefixes as you were given; keep beam_size of them.",
        ),
    ),
    returns=("new_scores", "parents", "tokens"),
    part="beam_step",
)


# 14.5 Search them all ------------------------------------------------------------------------------------------------


def most_probable(next_log_probs, bos_id, eos_id, max_new_tokens):
    """Return (ids, log_probability) of the most probable sentence of all, found for certain.

    next_log_probs: a function that takes a list of ids and returns the log-probabilities [vocab_size] of the token that
    follows. A sentence is a list from bos_id to eos_id, with at most max_new_tokens tokens after bos_id.
    log_probability is the sum over these tokens, eos_id included. Give up a prefix as soon as it is less probable than
    the best sentence so far: trying all takes too long.
    """
    best, level = ([], -INF), [([bos_id], 0.0)]
    for _ in range(max_new_tokens):
        grown = []
        for ids, score in level:
            for token, gain in enumerate(next_log_probs(list(ids)).tolist()):
                grown.append(([*ids, token], score + gain))
        best = max([best, *(one for one in grown if one[0][-1] == eos_id)], key=lambda one: one[1])
        level = [one for one in grown if one[0][-1] != eos_id and one[1] > best[1]]
    return best


def _distribution(seed, vocab_size, eos_id, ends):
    """Return a pretend model in logarithms, whose next token depends on the whole prefix.

    ends(n): what is added to the logit of eos after n tokens.
    """
    table = normal(seed, (31, vocab_size))[0].double()

    def next_log_probs(ids):
        logits = table[sum((place + 1) * (token + 3) for place, token in enumerate(ids)) % 31].clone()
        logits[eos_id] += ends(len(ids) - 1)
        return torch.log_softmax(logits, -1)

    return next_log_probs


def _search_cases():
    def case(label, seed, vocab_size, limit, ends=lambda n: 0.0, bos_id=1, eos_id=2):
        return Case(label, (_distribution(seed, vocab_size, eos_id, ends), bos_id, eos_id, limit))

    return [
        case("5 tokens, at most 4", 210, 5, 4, lambda n: n - 1.5),
        case("7 tokens, at most 12", 203, 7, 12, lambda n: n - 4.5),
        case("11 tokens, at most 9", 201, 11, 9, lambda n: n - 4.5),
        case("eos is likely only beyond the limit", 24, 5, 3, lambda n: 9.0 if n >= 3 else -6.0),
        case("eos becomes likely at the last token allowed", 25, 7, 4, lambda n: 9.0 if n >= 3 else -6.0),
        case("other ids for bos and eos", 206, 7, 7, lambda n: n - 3.5, bos_id=5, eos_id=3),
        case("eos at once", 27, 5, 5, lambda n: 6.0),
    ]


def _depth_first(
    ended=lambda score, ids: score,
    limit=lambda n: n,
    width=None,
    unfinished=False,
    count_eos=True,
    at_best=lambda score, most: score,
):
    """Return the depth-first search with one part replaced.

    ended: what sentences are compared by. limit: of the length. width: how many continuations are tried. unfinished:
    whether a prefix of full length counts. count_eos: whether the log-probability of eos does. at_best: what a prefix
    can still come to.
    """

    def function(next_log_probs, bos_id, eos_id, max_new_tokens):
        best = [-INF, [], -INF]  # what is compared, the ids, their log-probability
        most = limit(max_new_tokens)

        def visit(ids, score):
            nonlocal best
            full = len(ids) > most
            if ids[-1] == eos_id or (full and unfinished):
                best = max(best, [ended(score, ids), ids, score], key=lambda one: one[0])
            elif not full:
                gains, tokens = next_log_probs(ids).sort(descending=True)
                for gain, token in list(zip(gains.tolist(), tokens.tolist(), strict=True))[:width]:
                    gain *= count_eos or token != eos_id
                    if at_best(score + gain, most) > best[0]:
                        visit([*ids, token], score + gain)

        visit([bos_id], 0.0)
        return best[1], best[2]

    return function


def _beams(count):
    """Return beam search with so many beams."""

    def function(next_log_probs, bos_id, eos_id, max_new_tokens):
        beams, ended = [(0.0, [bos_id])], []
        for _ in range(max_new_tokens):
            grown = [
                (score + gain, [*ids, token])
                for score, ids in beams
                for token, gain in enumerate(next_log_probs(ids).tolist())
            ]
            best = sorted(grown, reverse=True)[:count]
            ended += [one for one in best if one[1][-1] == eos_id]
            beams = [one for one in best if one[1][-1] != eos_id]
        score, ids = max(ended or beams)
        return ids, score

    return function


def _unsorted_break(next_log_probs, bos_id, eos_id, max_new_tokens):
    best = [], -INF

    def visit(ids, score):
        nonlocal best
        if ids[-1] == eos_id:
            best = ids, score
        elif len(ids) <= max_new_tokens:
            for token, gain in enumerate(next_log_probs(ids).tolist()):
                if score + gain <= best[1]:
                    break
                visit([*ids, token], score + gain)

    visit([bos_id], 0.0)
    return best


def _unpruned(next_log_probs, bos_id, eos_id, max_new_tokens):
    if len(next_log_probs([bos_id])) ** max_new_tokens > 10**6:
        raise Endless
    return most_probable(next_log_probs, bos_id, eos_id, max_new_tokens)


def _without_bos(*args):
    ids, score = most_probable(*args)
    return ids[1:], score


def _as_a_probability(*args):
    ids, score = most_probable(*args)
    return ids, 2.718281828459045**score


EXERCISE_5 = Exercise(
    "14.5",
    "Search them all",
    20,
    3,
    most_probable,
    _search_cases,
    (
        Mistake(
            "greedy",
            _depth_first(width=1, unfinished=True),
            "That is the greedy sentence: go back to each prefix and try the next most probable tokens, too.",
        ),
        Mistake(
            "two continuations",
            _depth_first(width=2),
            "You tried the two best continuations of each prefix; any may lead to the best sentence, until its prefix "
            "is less probable than the best sentence so far.",
        ),
        Mistake(
            "two beams",
            _beams(2),
            "That is what two beams find. Give a prefix up only when it is less probable than a whole sentence.",
        ),
        Mistake(
            "four beams",
            _beams(4),
            "That is what four beams find. Give a prefix up only when it is less probable than a whole sentence.",
        ),
        Mistake(
            "stops without sorting",
            _unsorted_break,
            "You stop at the first token that is not good enough, but they are not sorted: later ones may be better.",
        ),
        Mistake(
            "no pruning",
            _unpruned,
            "Trying all sentences takes too long: give a prefix up as soon as it is less probable than the best whole "
            "sentence so far.",
        ),
        Mistake(
            "eos for nothing",
            _depth_first(count_eos=False),
            "You left out the log-probability of eos_id; ending there is a choice with a probability, too.",
        ),
        Mistake(
            "per token",
            _depth_first(ended=lambda score, ids: score / (len(ids) - 1), at_best=lambda score, most: score / most),
            "You compared the mean log-probability of a token; compare the sums.",
        ),
        Mistake(
            "bos counted",
            _depth_first(limit=lambda n: n - 1),
            "You counted bos_id among max_new_tokens, so the longest sentences are missing.",
        ),
        Mistake(
            "one more",
            _depth_first(limit=lambda n: n + 1),
            "A sentence may have max_new_tokens tokens after bos_id, and yours has one more.",
        ),
        Mistake(
            "cut counts",
            _depth_first(unfinished=True),
            "You let a prefix compete that was cut off at max_new_tokens; a sentence ends in eos_id.",
        ),
        Mistake("no bos", _without_bos, "bos_id is missing: the sentence is returned from bos_id on."),
        Mistake(
            "a probability",
            _as_a_probability,
            "The second result is a probability; return its logarithm, the sum of the log-probabilities.",
        ),
    ),
    returns=("ids", "log_probability"),
)

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5)
