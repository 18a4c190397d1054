"""The exercises of notebook 14: translating."""

from __future__ import annotations

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


def _greedy(choose=torch.argmax, seen=lambda ids: list(ids), limit=lambda n: n, stop=True, keep_eos=True, first=0):
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
        return ids[first:]

    return function


EXERCISE_1 = Exercise(
    "14.1",
    "A greedy loop",
    12,
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
        Mistake("worst", _greedy(choose=torch.argmin), "You chose the least likely token; take the most likely."),
    ),
    part="greedy_loop",
)


# 14.2 Top-k and temperature ------------------------------------------------------------------------------------------


def top_k_probabilities(logits, k, temperature):
    """Return the probabilities of the k most likely tokens at this temperature, and 0 for all others.

    logits: [vocab_size], divided by the temperature before the softmax; k: at least 1; when k is larger than
    vocab_size, every token stays. Returns [vocab_size], summing to one.
    """
    ranked = sorted(range(len(logits)), key=lambda token: -logits[token].item())[:k]
    result = torch.zeros_like(logits)
    result[ranked] = torch.softmax(logits[ranked] / temperature, dim=0)
    return result


def _top_k_cases():
    return [
        Case("3 tokens, k = 2", (torch.tensor([1.0, 3.0, 2.0]), 2, 1.0)),
        Case("7 tokens, k = 3, temperature 2", (normal(7, (7,))[0], 3, 2.0)),
        Case("11 tokens, k = 5, temperature 0.5", (normal(8, (11,))[0], 5, 0.5)),
        Case("k = 1", (normal(9, (5,))[0], 1, 0.7)),
        Case("k larger than the vocabulary", (normal(10, (5,))[0], 11, 1.3)),
        Case("negative logits", (-3 - normal(11, (7,))[0].abs(), 2, 1.0)),
    ]


def _kept(logits, k, fill=-INF, largest=True):
    """Return the logits with all but the k best set to `fill`."""
    top = logits.topk(min(k, len(logits)), largest=largest).indices
    return torch.full_like(logits, fill).scatter(0, top, logits[top])


def _softmax_first(logits, k, temperature):
    return _kept(torch.softmax(logits / temperature, 0), k, fill=0.0)


def _top_k_no_limit(logits, k, temperature):
    if k > len(logits):
        raise RuntimeError("selected index k out of range")
    return top_k_probabilities(logits, k, temperature)


EXERCISE_2 = Exercise(
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
            "no temperature",
            lambda z, k, t: torch.softmax(_kept(z, k), 0),
            "The temperature has no effect: the logits must be divided by it.",
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
)


# 14.3 Top-p ----------------------------------------------------------------------------------------------------------


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


def _nucleus(keep, descending=True, renew=True, back=True):
    """Return top-p with one step replaced; keep(sorted probabilities, their running sum, p) says which stay."""

    def function(logits, p):
        probabilities, order = torch.softmax(logits, 0).sort(descending=descending)
        kept = probabilities * keep(probabilities, probabilities.cumsum(0), p)
        kept = kept / kept.sum() if renew else kept
        return torch.zeros_like(kept).scatter(0, order, kept) if back else kept

    return function


def _below(probabilities, total, p):
    """Keep a token while those before it have not reached p, as is right."""
    return total - probabilities < p


def _in_vocabulary_order(logits, p):
    probabilities = torch.softmax(logits, 0)
    kept = probabilities * _below(probabilities, probabilities.cumsum(0), p)
    return kept / kept.sum()


EXERCISE_3 = Exercise(
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


def _as_probabilities(scores, next_log_probs, beam_size):
    totals, *rest = beam_step(scores, next_log_probs, beam_size)
    return totals.exp(), *rest


def _greedy_parent(scores, next_log_probs, beam_size):
    parent = scores.argmax()
    gains, tokens = next_log_probs[parent].topk(beam_size)
    return scores[parent] + gains, parent.expand(beam_size), tokens


EXERCISE_4 = Exercise(
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
    part="beam_step",
)


# 14.5 A fair score for length ----------------------------------------------------------------------------------------


def length_penalised_score(log_prob, length, alpha):
    """Return the summed log-probability divided by ((5 + length) / 6) to the power alpha (Wu et al. 2016, eq. 14).

    log_prob: a negative number; length: number of tokens; alpha: 0 (no penalty) or more. Returns a float.
    """
    divisor = 1.0
    if alpha:
        divisor = torch.tensor((5 + length) / 6, dtype=torch.float64).log().mul(alpha).exp().item()
    return log_prob / divisor


def _penalty_cases():
    settings = [
        ("the paper's alpha", -7.0, 11, 0.6),
        ("one token", -2.0, 1, 0.6),
        ("no penalty", -5.0, 7, 0.0),
        ("alpha 1", -3.5, 13, 1.0),
        ("a long sentence", -53.0, 47, 0.8),
    ]
    return [Case(label, args) for label, *args in settings]


EXERCISE_5 = Exercise(
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
)


# 14.6 One step with a cache ------------------------------------------------------------------------------------------


def cached_step(x, keys, values, W_Q, W_K, W_V):
    """Return (output, keys, values) of one step of causal self-attention, one head, with a cache.

    x: [1, d_model], the newest token. keys: [t, d_k] and values: [t, d_v], of the t tokens before it (t may be 0).
    W_Q, W_K: [d_model, d_k]; W_V: [d_model, d_v]. The newest query reads all t + 1 tokens, its own included.
    Returns the output [1, d_v], and both caches with one more row, the newest last.
    """
    keys = torch.stack([*keys, (x @ W_K)[0]])
    values = torch.stack([*values, (x @ W_V)[0]])
    output = torch.nn.functional.scaled_dot_product_attention((x @ W_Q)[None], keys[None], values[None])
    return output[0], keys, values


def _cases():
    def case(label, seed, t, d_model, d_k, d_v):
        shapes = [(1, d_model), (t, d_k), (t, d_v), (d_model, d_k), (d_model, d_k), (d_model, d_v)]
        return Case(label, tuple(normal(seed, *shapes)))

    return [
        case("one token in the cache", 1, 1, 2, 3, 2),
        case("2 tokens in the cache", 2, 2, 3, 5, 7),
        case("7 tokens in the cache", 3, 7, 5, 3, 11),
        case("an empty cache", 4, 0, 3, 2, 5),
        case("d_k = d_v = d_model", 5, 5, 3, 3, 3),
    ]


def _step(scale=lambda x, k: k.shape[1] ** -0.5, read=lambda old, all_: all_, join=lambda old, new: (old, new)):
    """Return the step with one part replaced; read(old, all) gives the rows that the query reads."""

    def function(x, keys, values, W_Q, W_K, W_V):
        all_keys, all_values = (torch.cat(join(old, x @ W)) for old, W in ((keys, W_K), (values, W_V)))
        scores = x @ W_Q @ read(keys, all_keys).T * scale(x, keys)
        return scores.softmax(-1) @ read(values, all_values), all_keys, all_values

    return function


def _not_kept(*args):
    return _step()(*args)[0], args[1], args[2]


def _exchanged(*args):
    output, keys, values = _step()(*args)
    return output, values, keys


def _later_key(x, keys, values, W_Q, W_K, W_V):
    """Score before the new key is stored, but blend with the new value: shapes only fit with zero padding."""
    scores = torch.cat([x @ W_Q @ keys.T, torch.zeros(1, 1)], dim=1) * keys.shape[1] ** -0.5
    all_keys, all_values = torch.cat([keys, x @ W_K]), torch.cat([values, x @ W_V])
    return scores.softmax(-1) @ all_values, all_keys, all_values


EXERCISE_6 = Exercise(
    "14.6",
    "One step with a cache",
    12,
    2,
    cached_step,
    _cases,
    (
        Mistake(
            "old only",
            _step(read=lambda old, all_: old),
            "The newest token does not read itself: append its key and value before you attend.",
        ),
        Mistake(
            "new only",
            _step(read=lambda old, all_: all_[-1:]),
            "The newest token reads only itself: let its query meet all keys kept so far.",
        ),
        Mistake(
            "not kept", _not_kept, "The output is right, but the caches did not grow: return them with the new row."
        ),
        Mistake(
            "in front",
            _step(join=lambda old, new: (new, old)),
            "You put the new row in front; the newest token comes last.",
        ),
        Mistake("no scaling", _step(scale=lambda x, k: 1.0), "You did not divide the scores by √d_k."),
        Mistake(
            "d_model",
            _step(scale=lambda x, k: x.shape[1] ** -0.5),
            "You divided by √d_model; the width of a key is d_k.",
        ),
        Mistake("exchanged", _exchanged, "You returned the values before the keys."),
        Mistake(
            "score of the new token 0",
            _later_key,
            "The newest token's own score is 0: append its key before you compute the scores.",
        ),
    ),
    returns=("output", "keys", "values"),
)

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5, EXERCISE_6)
