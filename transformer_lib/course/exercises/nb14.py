"""The exercises of notebook 14: translating."""

from __future__ import annotations

import torch

from .model import Case, Endless, Exercise, Mistake, normal
from .probes import weights_sum
from .slips import slips

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


EXERCISE_1 = Exercise(
    "14.1", "A greedy loop", 8, 1, greedy_loop, _greedy_cases,
    slips(
        "next_logits, bos_id, eos_id, max_new_tokens", """
            ids = [bos_id]
            for _ in range(max_new_tokens):
                token = int(next_logits(ids).argmax())
                ids.append(token)
                if token == eos_id:
                    break
            return ids
        """,
        ("never stops", "\n    if token == eos_id:\n        break", "",
         "Your loop goes on after eos: stop as soon as eos_id is chosen."),
        ("no eos", "ids.append(token)\n    if token == eos_id:\n        break",
         "if token == eos_id:\n        break\n    ids.append(token)",
         "You stopped at eos but left it out; it belongs to the result."),
        ("no bos", "return ids", "return ids[1:]", "bos is missing: the result begins with bos_id."),
        ("bos counted", "range(max_new_tokens)", "range(max_new_tokens - 1)",
         "You counted bos among max_new_tokens, so the longest sentence is one token short."),
        ("one more", "range(max_new_tokens)", "range(max_new_tokens + 1)",
         "Your loop makes one token more than max_new_tokens."),
        ("no limit", "for _ in range(max_new_tokens):", "while True:\n    if len(ids) > 100:\n        raise Endless",
         "Your loop ends only at eos; when eos never comes, it must end after max_new_tokens."),
        ("last only", "next_logits(ids)", "next_logits(ids[-1:])",
         "You gave the model only the last token; it needs the whole sentence so far."),
        ("last entry", ".argmax()", "[-1].argmax()",
         "next_logits already gives one row, the logits of the next token: take the argmax of all of it."),
        Endless=Endless,
    ),
    part="greedy_loop",
)  # fmt: skip


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


EXERCISE_2 = Exercise(
    "14.2", "Several tokens through the cache", 10, 2, cached_attention, _cache_cases,
    slips(
        "x, keys, values, W_Q, W_K, W_V", """
            query, key, value = x @ W_Q, x @ W_K, x @ W_V
            t, keys, values = len(keys), torch.cat([keys, key]), torch.cat([values, value])
            may_see = torch.ones(len(x), len(keys), dtype=torch.bool).tril(t)
            scores = (query @ keys.T / keys.shape[1] ** 0.5).masked_fill(~may_see, -math.inf)
            return torch.softmax(scores, -1) @ values, keys, values
        """,
        ("no mask", ".masked_fill(~may_see, -math.inf)", "",
         "A new token reads new tokens that come after it; the causal mask applies among the new ones, too."),
        ("mask from column 0", "tril(t)", "tril()",
         "Your mask is causal counted from the first key, but the first new token is token t: all t earlier tokens "
         "may be read, so the diagonal starts t columns further right."),
        ("not itself", "tril(t)", "tril(t - 1)",
         "A new token does not read itself: the diagonal belongs to what it may read."),
        ("inverted mask", "~may_see, -math.inf", "may_see, -1e9",
         "Your mask is inverted: the readable keys are hidden, and the later ones read."),
        ("caches not grown", "@ values, keys, values", "@ values, keys[:t], values[:t]",
         "The output is right, but the caches did not grow: return them with the new rows."),
        ("new rows alone", "@ values, keys, values", "@ values, key, value",
         "The output is right, but you returned the new keys and values alone: the earlier ones stay in front."),
        ("no scaling", " / keys.shape[1] ** 0.5", "", "You did not divide the scores by √d_k."),
    ),
    returns=("output", "keys", "values"),
)  # fmt: skip


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


EXERCISE_3 = Exercise(
    "14.3", "The nucleus", 12, 2, nucleus, _nucleus_cases,
    slips(
        "logits, p, temperature", """
            probabilities, order = torch.softmax(logits / temperature, 0).sort(descending=True)
            total = probabilities.cumsum(0)
            kept = probabilities * (total - probabilities < p)
            kept = kept / kept.sum()
            return torch.zeros_like(kept).scatter(0, order, kept)
        """,
        ("cut", "total - probabilities < p", "(total < p) | (total == total[0])",
         "You dropped the token that crosses p; it is needed for the sum to reach p."),
        ("one more where p is met", "< p", "<= p",
         "Where the sum is exactly p you keep one token too many: reaching p is enough, so compare with <."),
        ("no sort", ".sort(descending=True)", ", torch.arange(len(logits))",
         "You added probabilities in the order of the vocabulary; start from the most likely token."),
        ("not scaled again", "\nkept = kept / kept.sum()", "",
         "The kept probabilities do not sum to one: divide by their sum."),
        ("sorted", "torch.zeros_like(kept).scatter(0, order, kept)", "kept",
         "Your result is in sorted order; put each probability back into its token's position."),
        ("each", "total - probabilities < p", "probabilities >= p",
         "You compared each probability with p; it is their running sum that must reach p."),
        ("softmax again", "order, kept)", "order, kept).softmax(0)",
         "You took the softmax of probabilities, which gives dropped tokens some probability again: divide by the "
         "sum instead."),
    )
    + slips(
        "logits, p, temperature", """
            scaled = logits / temperature
            probabilities, order = torch.softmax(scaled, 0).sort(descending=True)
            dropped = order[probabilities.cumsum(0) - probabilities >= p]
            return torch.softmax(scaled.index_fill(0, dropped, -math.inf), 0)
        """,
        ("logits to 0", "-math.inf", "0.0",
         "You set the logits of dropped tokens to 0, but exp(0) = 1: use −∞ instead."),
        ("temperature last", "torch.softmax(scaled, 0).sort", "torch.softmax(logits, 0).sort",
         "You chose the tokens at temperature 1 and applied the temperature to what was left; it comes first."),
    ),
    probes=(weights_sum(None, "Probabilities", "tokens"),),
)  # fmt: skip


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


EXERCISE_4 = Exercise(
    "14.4", "One step of beam search", 12, 3, beam_step, _beam_cases,
    slips(
        "scores, next_log_probs, beam_size", """
            vocab_size = next_log_probs.shape[1]
            totals = scores[:, None] + next_log_probs
            best, flat = totals.flatten().topk(beam_size)
            return best, flat // vocab_size, flat % vocab_size
        """,
        ("best sum of each, in beam order",
         "flat = totals.flatten().topk(beam_size)\nreturn best, flat // vocab_size, flat % vocab_size",
         "tokens = totals.max(1)\nreturn best, torch.arange(len(scores)), tokens",
         "You kept the best sum of each beam, in the order of the beams; choose among the sums of all beams, the "
         "best first: a good beam may keep several."),
        ("the best beam_size, one of each",
         "best, flat = totals.flatten().topk(beam_size)\nreturn best, flat // vocab_size, flat % vocab_size",
         "sums, tokens = totals.max(1)\nbest, parents = sums.topk(beam_size)\nreturn best, parents, tokens[parents]",
         "You took one continuation from each beam, and the best of these; the best two may continue the same beam."),
        ("tokens by beams", "scores[:, None] + next_log_probs", "scores + next_log_probs.T",
         "Your table is [vocab_size, n_beams], so the flat index counts the other way: put the beams in the rows."),
        ("flat tokens", "flat % vocab_size", "flat",
         "Your tokens are indices of the flat table; the token is the remainder, index % vocab_size."),
        ("no sum", "scores[:, None] + ", "", "You ranked the new tokens alone; add each beam's score so far."),
        ("swapped", "flat // vocab_size, flat % vocab_size", "flat % vocab_size, flat // vocab_size",
         "parents and tokens are swapped: parent = index // vocab_size, token = index % vocab_size."),
        ("by beams", "next_log_probs.shape[1]", "len(scores)",
         "You divided the flat index by the number of beams; each row has vocab_size entries."),
        ("as many as there were", "topk(beam_size)", "topk(len(scores))",
         "You kept as many prefixes as you were given; keep beam_size of them."),
    ),
    returns=("new_scores", "parents", "tokens"), part="beam_step",
)  # fmt: skip


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


def _unpruned(next_log_probs, bos_id, eos_id, max_new_tokens):
    if len(next_log_probs([bos_id])) ** max_new_tokens > 10**6:
        raise Endless
    return most_probable(next_log_probs, bos_id, eos_id, max_new_tokens)


def _greedy_sentence(next_log_probs, bos_id, eos_id, max_new_tokens):
    ids, total = [bos_id], 0.0
    while ids[-1] != eos_id and len(ids) <= max_new_tokens:
        gain, token = next_log_probs(ids).max(0)
        ids, total = [*ids, int(token)], total + float(gain)
    return ids, total


def _best_mean(next_log_probs, bos_id, eos_id, max_new_tokens):
    """Compare sentences by the mean log-probability of their tokens."""
    best = -INF, [], -INF

    def visit(ids, score):
        nonlocal best
        if ids[-1] == eos_id:
            best = max(best, (score / (len(ids) - 1), ids, score))
        elif len(ids) <= max_new_tokens:
            for token, gain in enumerate(next_log_probs(ids).tolist()):
                if (score + gain) / max_new_tokens > best[0]:
                    visit([*ids, token], score + gain)

    visit([bos_id], 0.0)
    return best[1:]


EXERCISE_5 = Exercise(
    "14.5", "Search them all", 20, 3, most_probable, _search_cases,
    slips(
        "next_log_probs, bos_id, eos_id, max_new_tokens", """
            best = [], -math.inf

            def visit(ids, score):
                nonlocal best
                if ids[-1] == eos_id:
                    best = ids, score
                elif len(ids) <= max_new_tokens:
                    choices = enumerate(next_log_probs(ids).tolist())
                    for token, gain in sorted(choices, key=lambda choice: -choice[1]):
                        if score + gain <= best[1]:
                            break
                        visit([*ids, token], score + gain)

            visit([bos_id], 0.0)
            return best
        """,
        ("stops without sorting", "sorted(choices, key=lambda choice: -choice[1])", "choices",
         "You stop at the first token that is not good enough, but they are not sorted: later ones may be better."),
        ("bos counted", "<= max_new_tokens", "< max_new_tokens",
         "You counted bos_id among max_new_tokens, so the longest sentences are missing."),
        ("cut counts", "ids[-1] == eos_id", "ids[-1] == eos_id or len(ids) > max_new_tokens",
         "You let a prefix that was cut off at max_new_tokens compete; a sentence ends in eos_id."),
    )
    + (
        Mistake("greedy", _greedy_sentence,
                "That is the greedy sentence: go back to each prefix and try the next most probable tokens, too."),
        Mistake("no pruning", _unpruned,
                "Trying all sentences takes too long: give a prefix up as soon as it is less probable than the best "
                "whole sentence so far."),
        Mistake("per token", _best_mean, "You compared the mean log-probability per token; compare the sums."),
    ),
    returns=("ids", "log_probability"),
)  # fmt: skip

# 14.6 Whose error? ----------------------------------------------------------------------------------------------------


def whose_error(found, right, next_log_probs):
    """Return "none", "search" or "model": whose error it is that a search returned `found` where `right` is right.

    found, right: lists of ids from bos to eos. next_log_probs: a function that takes a list of ids and returns the
    log-probabilities [vocab_size] of the token that follows. "search": the model gives `right` more probability.
    "model": it gives `right` less, so no search for the most probable sentence would return it. "none": they are equal.
    """
    if found == right:
        return "none"
    totals = []
    for sentence in (found, right):
        total = 0.0
        for place in range(1, len(sentence)):
            total += next_log_probs(sentence[:place])[sentence[place]].item()
        totals.append(total)
    return "search" if totals[1] > totals[0] else "model"


def _error_cases():
    def case(label, seed, vocab_size, found, right):
        return Case(label, (found, right, _distribution(seed, vocab_size, 2, lambda n: n - 3.0)))

    return [
        case("the right sentence is longer and less probable", 300, 7, [1, 6, 5, 4, 0, 0, 2], [1, 6, 5, 4, 5, 5, 5, 2]),
        case("the right sentence is shorter and less probable", 300, 7, [1, 6, 5, 4, 0, 0, 2], [1, 4, 0, 2]),
        case("less probable, but more per token", 389, 7, [1, 5, 0, 4, 4, 2], [1, 5, 0, 4, 4, 3, 2]),
        case("more probable, of one length", 340, 5, [1, 1, 1, 0, 3, 2], [1, 1, 1, 0, 0, 2]),
        case("more probable, though less at the first difference", 302, 11, [1, 7, 4, 8, 6, 8, 2], [1, 7, 4, 7, 2]),
        case("more probable, with an unlikely token early", 321, 11, [1, 3, 7, 8, 3, 7, 2], [1, 3, 7, 8, 0, 2]),
        case("more probable, with an unlikely last token", 352, 7, [1, 1, 6, 0, 0, 2], [1, 1, 6, 0, 2]),
        case("what greedy decoding says is right", 300, 7, [1, 6, 5, 4, 5, 5, 5, 2], [1, 6, 5, 4, 0, 0, 2]),
        case("found is right", 300, 7, [1, 6, 5, 4, 0, 0, 2], [1, 6, 5, 4, 0, 0, 2]),
    ]


def _first_difference(found, right, next_log_probs):
    """Compare the tokens at the first place where the sentences differ."""
    if found == right:
        return "none"
    place = next(i for i, pair in enumerate(zip(found, right)) if pair[0] != pair[1])  # noqa: B905
    logs = next_log_probs(found[:place])
    return "search" if logs[right[place]] > logs[found[place]] else "model"


EXERCISE_6 = Exercise(
    "14.6", "Whose error?", 6, 2, whose_error, _error_cases,
    slips(
        "found, right, next_log_probs", """
            def total(ids):
                return sum(float(next_log_probs(ids[:i])[ids[i]]) for i in range(1, len(ids)))

            if found == right:
                return "none"
            return "search" if total(right) > total(found) else "model"
        """,
        ("the other way round", "total(right) > total(found)", "total(right) < total(found)",
         "You have them the other way round: if the model gives the right sentence more probability, a better search "
         "would not have returned the other one."),
        ("nothing wrong", 'if found == right:\n    return "none"\n', "",
         "Where the search returned the right sentence there is no error at all."),
        ("per token", "for i in range(1, len(ids)))", "for i in range(1, len(ids))) / len(ids)",
         "You compared means per token. A search for the most probable sentence compares the sums."),
        ("the end left out", "range(1, len(ids)))", "range(1, len(ids) - 1))",
         "You left out the last token: that the sentence ends there has a probability, too."),
        ("the last word alone", "range(1, len(ids)))", "range(len(ids) - 1, len(ids)))",
         "You compared the probability of the last token only. A sentence's is the product of all of them."),
        ("logarithms multiplied", "return sum(float(next_log_probs(ids[:i])[ids[i]]) for i in range(1, len(ids)))",
         "return math.prod(float(next_log_probs(ids[:i])[ids[i]]) for i in range(1, len(ids)))",
         "You multiplied logarithms: probabilities are multiplied, their logarithms are added."),
    )
    + (
        Mistake("first difference", _first_difference,
                "You compared the two at the first token in which they differ. What comes after it counts, too."),
        Mistake("always the model", lambda found, right, next_log_probs: "none" if found == right else "model",
                "A wrong sentence is not always the model's error: the right one may have more probability."),
    ),
)  # fmt: skip

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5, EXERCISE_6)
