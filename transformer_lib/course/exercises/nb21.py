"""The exercises of notebook 21: a score for heads that copy, two ways to ask a head, and a predictor that counts."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, integers, normal

INF = float("inf")


# 21.1 The induction score --------------------------------------------------------------------------------------------


def induction_score(weights, period):
    """Return the induction score of each head, [n_heads].

    weights: [batch, n_heads, seq_len, seq_len], rows are queries; every sequence repeats itself with this period. The
    score is the mean weight of the key at t - period + 1, over all sequences and all queries t from period on.
    """
    queries = range(period, weights.shape[2])
    found = [weights[:, :, t, t - period + 1] for t in queries]
    return torch.stack(found).mean(dim=0).mean(dim=0)


def _causal_weights(seed, batch, n_heads, seq_len):
    (scores,) = normal(seed, (batch, n_heads, seq_len, seq_len))
    causal = torch.ones(seq_len, seq_len, dtype=torch.bool).tril()
    return (1.5 * scores).masked_fill(~causal, -INF).softmax(dim=-1)


def _score_cases():
    def case(label, seed, sizes, period):
        return Case(label, (_causal_weights(seed, *sizes), period))

    return [
        case("one sequence of 7, one head, period 3", 2110, (1, 1, 7), 3),
        case("2 sequences of 11, 3 heads, period 5", 2111, (2, 3, 11), 5),
        case("5 sequences of 13, 2 heads, period 4", 2112, (5, 2, 13), 4),
        case("7 sequences of 19, 4 heads, period 11", 2113, (7, 4, 19), 11),
        case("3 sequences of 8, 2 heads, a single query to count", 2114, (3, 2, 8), 7),
    ]


def _scored(key=lambda t, period: t - period + 1, first=lambda period: period, reduce=None):
    """Return the score with its slips as switches; `reduce` gets [batch, n_heads, queries]."""

    def function(weights, period):
        queries = torch.arange(first(period), weights.shape[2])
        found = weights[:, :, queries, key(queries, period).clamp(min=0)]
        return found.mean(dim=(0, 2)) if reduce is None else reduce(found, weights)

    return function


def _all_repetitions(weights, period):
    n = weights.shape[2]
    queries, keys = torch.arange(n)[:, None], torch.arange(n)
    wanted = (keys <= queries) & ((queries - keys + 1) % period == 0) & (queries >= period)
    return (weights * wanted).sum(-1)[:, :, period:].mean(dim=(0, 2))


def _share_of_firsts(weights, period):
    queries = torch.arange(period, weights.shape[2])
    hits = weights[:, :, period:].argmax(-1) == queries - period + 1
    return hits.to(weights).mean(dim=(0, 2))


EXERCISE_1 = Exercise(
    "21.1",
    "The induction score",
    8,
    2,
    induction_score,
    _score_cases,
    (
        Mistake(
            "the same letter",
            _scored(key=lambda t, period: t - period),
            "You took the key one period back, where the same letter stands; an induction head looks at the one "
            "after it.",
        ),
        Mistake(
            "the letter before",
            _scored(key=lambda t, period: t - period - 1),
            "Your key stands before the earlier occurrence; an induction head looks at the one after it.",
        ),
        Mistake(
            "one query too early",
            _scored(first=lambda period: period - 1),
            "Your mean begins at query period - 1, one too early: its letter has not come before. (The diagonal has "
            "one entry too many.)",
        ),
        Mistake(
            "one query too late",
            _scored(first=lambda period: period + 1),
            "Your mean begins one query too late: the first that counts is t = period.",
        ),
        Mistake(
            "without the last query",
            _scored(reduce=lambda found, weights: found[:, :, : max(1, found.shape[2] - 1)].mean(dim=(0, 2))),
            "The last query is left out; the mean runs over all t from period to seq_len - 1.",
        ),
        Mistake(
            "the second time alone",
            lambda weights, period: _scored()(weights[:, :, : 2 * period], period),
            "You count the second time only, up to 2 · period - 1; every query from period on counts.",
        ),
        Mistake(
            "the sum",
            _scored(reduce=lambda found, weights: found.mean(dim=0).sum(dim=-1)),
            "You added over the queries; the score is their mean.",
        ),
        Mistake(
            "divided by the length",
            _scored(reduce=lambda found, weights: found.mean(dim=0).sum(dim=-1) / weights.shape[2]),
            "You divided by seq_len, but only seq_len - period queries count.",
        ),
        Mistake(
            "swapped",
            lambda weights, period: _scored()(weights.mT, period),
            "All your scores are 0. A causal head gives no weight to later keys; rows are queries, columns are keys.",
        ),
        Mistake(
            "previous token",
            _scored(key=lambda t, period: t - 1),
            "That is the weight of the previous token, t - 1; the induction score asks for t - period + 1.",
        ),
        Mistake(
            "heads joined",
            _scored(reduce=lambda found, weights: found.mean()),
            "You averaged over the heads, too; each head has a score of its own.",
        ),
        Mistake(
            "sequences apart",
            _scored(reduce=lambda found, weights: found.mean(dim=-1)),
            "Each sequence still has its own score; take the mean over them, too: [n_heads].",
        ),
        Mistake(
            "one per sequence",
            _scored(reduce=lambda found, weights: found.mean(dim=(1, 2))),
            "You have one score per sequence; the heads are axis 1.",
        ),
        Mistake(
            "one per query",
            _scored(reduce=lambda found, weights: found.mean(dim=0)),
            "Each query still has its own weight; take the mean over the queries, too: [n_heads].",
        ),
        Mistake(
            "the first sequence alone",
            _scored(reduce=lambda found, weights: found[0].mean(dim=-1)),
            "Only the first sequence is counted; take the mean over all.",
        ),
        Mistake(
            "the last query alone",
            _scored(reduce=lambda found, weights: found[:, :, -1].mean(dim=0)),
            "Only the last query is counted; take the mean over all queries from period on.",
        ),
        Mistake(
            "the largest",
            _scored(reduce=lambda found, weights: found.amax(dim=(0, 2))),
            "You took the largest weight; the score is the mean.",
        ),
        Mistake(
            "every repetition",
            _all_repetitions,
            "You added the weights after every earlier occurrence; only the newest one, a single period back, counts.",
        ),
        Mistake(
            "how often it is first",
            _share_of_firsts,
            "You counted how often this key has the largest weight; the score is the mean of the weights themselves.",
        ),
    ),
    part="induction_score",
)


# 21.2 Take a head away -----------------------------------------------------------------------------------------------


def ablate_head(heads, head):
    """Return the outputs of all heads, with one replaced by its mean over all sequences and positions.

    heads: [batch, n_heads, seq_len, d_v], which stay as they are; head: which one, from 0. The mean is one vector of
    d_v numbers, and stands at every position of every sequence.
    """
    kept = [heads[:, other] for other in range(heads.shape[1])]
    mean = kept[head].flatten(0, 1).mean(dim=0)
    kept[head] = mean.expand_as(kept[head])
    return torch.stack(kept, dim=1)


def _ablation_cases():
    def case(label, seed, sizes, head):
        return Case(label, (normal(seed, sizes)[0] + 0.5, head))

    return [
        case("one sequence, one head", 2140, (1, 1, 3, 2), 0),
        case("2 sequences, 3 heads, the last one", 2141, (2, 3, 5, 2), 2),
        case("5 sequences, 2 heads, the first one", 2142, (5, 2, 7, 3), 0),
        case("3 sequences, 4 heads, one between", 2143, (3, 4, 11, 5), 2),
        case("as many sequences as heads and positions", 2144, (3, 3, 3, 3), 1),
    ]


def _ablated(value=lambda taken: taken.mean(dim=(0, 1)), chosen=lambda n, head: torch.arange(n) == head):
    """Return `heads` with the chosen ones replaced; `value` gets one head [batch, seq_len, d_v]."""

    def function(heads, head):
        n = heads.shape[1]
        new = torch.stack([value(heads[:, i]).expand_as(heads[:, i]) for i in range(n)], dim=1)
        return torch.where(chosen(n, head)[:, None, None], new, heads)

    return function


def _other_axis(axis):
    def function(heads, head):
        rows = heads.select(axis, min(head, heads.shape[axis] - 1))
        new = rows.flatten(0, -2).mean(dim=0).expand_as(rows)
        return heads.select_scatter(new, axis, min(head, heads.shape[axis] - 1))

    return function


def _mean_of_the_others(heads, head):
    return heads.select_scatter(heads.mean(dim=1), 1, head)


def _in_place(heads, head):
    heads[:, head] = heads[:, head].mean(dim=(0, 1))
    return heads


EXERCISE_2 = Exercise(
    "21.2",
    "Take a head away",
    8,
    1,
    ablate_head,
    _ablation_cases,
    (
        Mistake(
            "zeros",
            _ablated(value=lambda taken: 0 * taken),
            "The head is replaced by zeros; here it is to be replaced by its mean, which later layers are used to.",
        ),
        Mistake(
            "a mean per sequence",
            _ablated(value=lambda taken: taken.mean(dim=1, keepdim=True)),
            "Each sequence has its own mean, which still says something about it; average over the sequences, too.",
        ),
        Mistake(
            "a mean per position",
            _ablated(value=lambda taken: taken.mean(dim=0, keepdim=True)),
            "Each position has its own mean; average over the positions, too.",
        ),
        Mistake(
            "one number",
            _ablated(value=lambda taken: taken.mean()),
            "The mean is a single number; it must be one vector, with a mean for each of the d_v features.",
        ),
        Mistake(
            "a mean over features",
            _ablated(value=lambda taken: taken.mean(dim=-1, keepdim=True)),
            "You averaged over the features; average over sequences and positions, and keep the features apart.",
        ),
        Mistake(
            "all heads",
            _ablated(chosen=lambda n, head: torch.ones(n, dtype=torch.bool)),
            "All heads are replaced; the others stay as they are.",
        ),
        Mistake(
            "all but this one",
            _ablated(chosen=lambda n, head: torch.arange(n) != head),
            "This head is kept and the others are replaced; it is the other way round.",
        ),
        Mistake(
            "the first head",
            _ablated(chosen=lambda n, head: torch.arange(n) == 0),
            "You replaced head 0, whichever was asked for.",
        ),
        Mistake(
            "counted from 1",
            _ablated(chosen=lambda n, head: torch.arange(n) == max(head - 1, 0)),
            "You replaced the head before; heads count from 0.",
        ),
        Mistake(
            "a sequence for a head",
            _other_axis(0),
            "You replaced a sequence; the heads are axis 1.",
        ),
        Mistake(
            "a position for a head",
            _other_axis(2),
            "You replaced a position in every head; the heads are axis 1.",
        ),
        Mistake(
            "the mean of the heads",
            _mean_of_the_others,
            "You averaged over the heads; the mean is that of this head alone, over sequences and positions.",
        ),
        Mistake(
            "nothing replaced",
            lambda heads, head: heads.clone(),
            "Nothing is replaced: the result is heads as they came.",
        ),
        Mistake(
            "the mean taken off",
            lambda heads, head: (
                heads
                - _ablated(chosen=lambda n, h: torch.ones(n, dtype=torch.bool))(heads, head)
                * (torch.arange(heads.shape[1]) == head)[:, None, None]
            ),
            "You subtracted the mean; what is left is just what varies. Put the mean in place of the head.",
        ),
        Mistake(
            "the head alone",
            lambda heads, head: _ablated()(heads, head)[:, head],
            "You returned only the replaced head; return all of them.",
        ),
        Mistake(
            "another sequence's",
            lambda heads, head: heads.select_scatter(heads[:1, head].expand_as(heads[:, head]), 1, head),
            "The head of the first sequence stands in all of them; put the mean there.",
        ),
    ),
    gradients=("heads",),
    part="ablate_head",
)


# 21.3 What each head says --------------------------------------------------------------------------------------------


def head_contributions(heads, W_O, W_U, letters):
    """Return what each head adds to the logit of the letter of each position: [n_heads, seq_len].

    heads: [n_heads, seq_len, d_v], each head's output before heads are merged; W_O: [n_heads · d_v, d_model], for
    merged @ W_O; W_U: [d_model, vocab_size], for x @ W_U, which makes the logits; letters: [seq_len], whole numbers.
    The sum over the heads is the logit that the whole attention adds.
    """
    n_heads, seq_len, d_v = heads.shape
    rows = []
    for head in range(n_heads):
        logits = heads[head] @ W_O[head * d_v : (head + 1) * d_v] @ W_U
        rows.append(torch.stack([logits[t, int(letters[t])] for t in range(seq_len)]))
    return torch.stack(rows)


def _contribution_cases():
    def case(label, seed, n_heads, seq_len, d_v, d_model, vocab_size):
        tensors = normal(seed, (n_heads, seq_len, d_v), (n_heads * d_v, d_model), (d_model, vocab_size))
        return Case(label, (*tensors, integers(seed, (seq_len,), 0, vocab_size)))

    return [
        case("one head of 3 features", 2130, 1, 2, 3, 3, 5),
        case("2 heads of 3 features, 5 positions", 2131, 2, 5, 3, 6, 7),
        case("3 heads of 2 features, 7 positions", 2132, 3, 7, 2, 6, 11),
        case("4 heads of 5 features, d_model 20", 2133, 4, 11, 5, 20, 13),
        case("2 heads of 3 features into d_model 11", 2134, 2, 3, 3, 11, 5),
        case("as many heads as features", 2135, 3, 5, 3, 9, 7),
    ]


def _picked(logits, letters):
    """Take from [n_heads, seq_len, vocab_size] the letter of each position."""
    return logits[:, torch.arange(len(letters)), letters]


def _blocks(W_O, n_heads):
    return W_O.unflatten(0, (n_heads, -1))


def _contributed(blocks=_blocks, letters=lambda ids: ids, last=lambda found, W_U: found):
    def function(heads, W_O, W_U, ids):
        found = _picked(heads @ blocks(W_O, len(heads)) @ W_U, letters(ids))
        return last(found, W_U)

    return function


def _all_of_w_o(heads, W_O, W_U, letters):
    """Every head through the sum of all blocks."""
    return _picked(heads @ _blocks(W_O, len(heads)).sum(0) @ W_U, letters)


def _merged(heads, W_O, W_U, letters):
    logits = heads.transpose(0, 1).flatten(1) @ W_O @ W_U
    return logits[torch.arange(len(letters)), letters]


def _badly_merged(heads, W_O, W_U, letters):
    """A reshape without a transpose, then each head alone in it."""
    alone = torch.zeros(len(heads), *heads.shape)
    for head in range(len(heads)):
        alone[head, head] = 1
    pieces = (alone * heads).reshape(len(heads), heads.shape[1], -1)
    return _picked(pieces @ W_O @ W_U, letters)


def _positions(count):
    return torch.arange(count)


EXERCISE_3 = Exercise(
    "21.3",
    "What each head says",
    12,
    3,
    head_contributions,
    _contribution_cases,
    (
        Mistake(
            "an even share",
            lambda heads, W_O, W_U, letters: _merged(heads, W_O, W_U, letters).expand(len(heads), -1) / len(heads),
            "Every head got the same share of the sum; each goes through its own rows of W_O.",
        ),
        Mistake(
            "the sum alone",
            _merged,
            "You returned what all heads add together; keep them apart: [n_heads, seq_len].",
        ),
        Mistake(
            "all rows for each",
            _all_of_w_o,
            "Every head went through all rows of W_O added up; head i has the rows i · d_v to (i + 1) · d_v - 1.",
        ),
        Mistake(
            "rows dealt in turn",
            _contributed(blocks=lambda W_O, n: W_O.unflatten(0, (-1, n)).transpose(0, 1)),
            "You dealt the rows of W_O out in turn; merging puts the heads side by side, so a head's rows follow each "
            "other.",
        ),
        Mistake(
            "the first rows for each",
            _contributed(blocks=lambda W_O, n: _blocks(W_O, n)[:1]),
            "Every head went through the first rows of W_O, those of head 0; each has its own.",
        ),
        Mistake(
            "reversed blocks",
            _contributed(blocks=lambda W_O, n: _blocks(W_O, n).flip(0)),
            "The rows of W_O are handed out in reverse; head 0 has the first ones.",
        ),
        Mistake(
            "merged by reshape",
            _badly_merged,
            "You merged heads by a reshape alone, which mixes positions; transpose heads and positions first.",
        ),
        Mistake(
            "all letters",
            lambda heads, W_O, W_U, letters: heads @ _blocks(W_O, len(heads)) @ W_U,
            "You returned the logits of all letters; pick letters[t] at position t.",
        ),
        Mistake(
            "the next letter",
            _contributed(letters=lambda ids: ids.roll(-1)),
            "You shifted the letters by one; letters[t] is already the one asked for at position t.",
        ),
        Mistake(
            "every letter at every position",
            lambda heads, W_O, W_U, letters: (heads @ _blocks(W_O, len(heads)) @ W_U)[..., letters],
            "You picked all letters at every position; pick letters[t] at position t alone, with two indices.",
        ),
        Mistake(
            "position as letter",
            _contributed(letters=lambda ids: torch.zeros_like(ids)),
            "You picked the logit of letter 0 everywhere; pick letters[t].",
        ),
        Mistake(
            "positions averaged",
            _contributed(last=lambda found, W_U: found.mean(dim=1)),
            "You averaged over the positions; return one number per head and position.",
        ),
        Mistake(
            "transposed",
            _contributed(last=lambda found, W_U: found.T),
            "The axes are swapped: heads come first, [n_heads, seq_len].",
        ),
        Mistake(
            "shares",
            _contributed(last=lambda found, W_U: found / found.sum(dim=0)),
            "You divided by the sum over the heads; the contributions themselves are asked for.",
        ),
        Mistake(
            "absolute values",
            _contributed(last=lambda found, W_U: found.abs()),
            "You took absolute values; a head may also speak against a letter.",
        ),
        Mistake(
            "log-softmaxed",
            lambda heads, W_O, W_U, letters: _picked((heads @ _blocks(W_O, len(heads)) @ W_U).log_softmax(-1), letters),
            "You normalised over the letters; a contribution is the raw sum.",
        ),
        Mistake(
            "softmaxed",
            lambda heads, W_O, W_U, letters: _picked((heads @ _blocks(W_O, len(heads)) @ W_U).softmax(-1), letters),
            "You took a softmax of each head's logits; only logits add up.",
        ),
    ),
    gradients=("heads", "W_O", "W_U"),
)


# 21.4 Counting in context --------------------------------------------------------------------------------------------


def bigram_in_context(ids, vocab_size):
    """Return probabilities [batch, seq_len, vocab_size] of the next letter, counted within the sequence itself.

    ids: [batch, seq_len]. At position t, let n be how often the letter ids[t] has been followed by any letter so far,
    itself included, and c(a) how often by a; position t itself is the last that has been read. Then the letter a has
    the probability (c(a) + 1) / (n + vocab_size).
    """
    batch, seq_len = ids.shape
    found = torch.ones(batch, seq_len, vocab_size)
    for b, row in enumerate(ids.tolist()):
        for t, letter in enumerate(row):
            for before, after in zip(row[:t], row[1 : t + 1], strict=True):
                found[b, t, after] += before == letter
    return found / found.sum(dim=-1, keepdim=True)


def _counting_cases():
    def case(label, ids, vocab_size):
        return Case(label, (ids, vocab_size))

    return [
        case("a b a b a of two letters", torch.tensor([[0, 1, 0, 1, 0]]), 2),
        case("2 sequences of 11, 3 letters", integers(2120, (2, 11), 0, 3), 3),
        case("7 sequences of 13, 5 letters", integers(2121, (7, 13), 0, 5), 5),
        case("3 sequences of 17, 4 letters", integers(2122, (3, 17), 0, 4), 4),
        case("letters that come only once", torch.tensor([[3, 0, 4, 1, 2]]), 7),
        case("a single letter to start from", torch.tensor([[2], [0], [1]]), 3),
    ]


def _one_hot(ids, vocab_size):
    return torch.nn.functional.one_hot(ids, vocab_size).to(torch.get_default_dtype())


def _counts(ids, vocab_size, last=0):
    """Return c [batch, seq_len, vocab_size] at each t, from pairs (s, s + 1) with s + 1 <= t + last."""
    letters = _one_hot(ids, vocab_size)
    n = ids.shape[1]
    pairs = torch.zeros(len(ids), n + 1, vocab_size, vocab_size)
    pairs[:, 1:n] = letters[:, :-1, :, None] * letters[:, 1:, None, :]  # the pair that is complete at s + 1
    so_far = pairs.cumsum(dim=1)
    at = (torch.arange(n) + last).clamp(0, n)
    return (letters[:, :, None] @ so_far[:, at])[:, :, 0]


def _counted(add=1.0, last=0, total=lambda c, v: c.sum(-1, keepdim=True) + v):
    def function(ids, vocab_size):
        c = _counts(ids, vocab_size, last)
        return (c + add) / total(c, vocab_size)

    return function


def _without_adding(ids, vocab_size):
    c = _counts(ids, vocab_size)
    n = c.sum(-1, keepdim=True)
    return torch.where(n > 0, c / n.clamp(min=1), 1 / vocab_size)


def _unigram(ids, vocab_size):
    c = _one_hot(ids, vocab_size).cumsum(dim=1)
    return (c + 1) / (c.sum(-1, keepdim=True) + vocab_size)


def _backwards(ids, vocab_size):
    letters = _one_hot(ids, vocab_size)
    pairs = letters[:, 1:, :, None] * letters[:, :-1, None, :]
    so_far = torch.cat([torch.zeros(len(ids), 1, vocab_size, vocab_size), pairs], dim=1).cumsum(dim=1)
    c = (letters[:, :, None] @ so_far)[:, :, 0]
    return (c + 1) / (c.sum(-1, keepdim=True) + vocab_size)


def _whole_sequence(ids, vocab_size):
    letters = _one_hot(ids, vocab_size)
    pairs = letters[:, :-1].mT @ letters[:, 1:]
    c = letters @ pairs
    return (c + 1) / (c.sum(-1, keepdim=True) + vocab_size)


def _batch_pooled(ids, vocab_size):
    c = _counts(ids, vocab_size)
    letters = _one_hot(ids, vocab_size)
    pairs = torch.zeros(ids.shape[1], vocab_size, vocab_size)
    pairs[1:] = torch.einsum("bsi,bsj->sij", letters[:, :-1], letters[:, 1:])
    c = torch.einsum("bti,tij->btj", letters, pairs.cumsum(0))
    return (c + 1) / (c.sum(-1, keepdim=True) + vocab_size)


def _never_reset(ids, vocab_size):
    """One table for all sequences, filled one sequence after the other."""
    table, found = torch.zeros(vocab_size, vocab_size), torch.empty(*ids.shape, vocab_size)
    for b, row in enumerate(ids.tolist()):
        for t, letter in enumerate(row):
            if t > 0:
                table[row[t - 1], letter] += 1
            found[b, t] = (table[letter] + 1) / (table[letter].sum() + vocab_size)
    return found


def _wrapped(ids, vocab_size):
    """At t = 0 the letter before is taken to be the last one, ids[:, -1]."""
    c = _counts(ids, vocab_size)
    letters = _one_hot(ids, vocab_size)
    c = c + letters[:, :1] * (ids == ids[:, -1:])[..., None]
    return (c + 1) / (c.sum(-1, keepdim=True) + vocab_size)


def _itself(ids, vocab_size):
    c = _counts(ids, vocab_size).sum(-1, keepdim=True) * _one_hot(ids, vocab_size)
    return (c + 1) / (c.sum(-1, keepdim=True) + vocab_size)


def _presence(ids, vocab_size):
    c = (_counts(ids, vocab_size) > 0).to(torch.get_default_dtype())
    return (c + 1) / (c.sum(-1, keepdim=True) + vocab_size)


def _newest_alone(ids, vocab_size):
    before = _counts(ids, vocab_size)
    newest = torch.zeros_like(before)
    for b, row in enumerate(ids.tolist()):
        for t, letter in enumerate(row):
            earlier = [s for s in range(t) if row[s] == letter]
            if earlier:
                newest[b, t, row[earlier[-1] + 1]] = 1
    return (newest + 1) / (newest.sum(-1, keepdim=True) + vocab_size)


EXERCISE_4 = Exercise(
    "21.4",
    "Counting in context",
    12,
    2,
    bigram_in_context,
    _counting_cases,
    (
        Mistake(
            "nothing added",
            _without_adding,
            "The counts are not increased by 1, so a pair that has not come yet gets 0 as soon as its first letter "
            "was followed by another.",
        ),
        Mistake(
            "0 / 0",
            lambda ids, v: _counts(ids, v) / _counts(ids, v).sum(-1, keepdim=True),
            "A letter that comes for the first time has n = 0: add 1 to each count, and vocab_size to n.",
        ),
        Mistake(
            "unigram, nothing added",
            lambda ids, v: _one_hot(ids, v).cumsum(dim=1) / torch.arange(1, ids.shape[1] + 1)[:, None],
            "That is the unigram predictor; count only what followed the letter that stands at t, and add 1.",
        ),
        Mistake(
            "peeks at the next letter",
            _counted(last=1),
            "At position t you count the pair of t and t + 1, too; but the letter at t + 1 is the one to be predicted.",
        ),
        Mistake(
            "one pair late",
            _counted(last=-1),
            "At position t the pair of t - 1 and t is missing; both letters have been read.",
        ),
        Mistake(
            "the whole sequence",
            _whole_sequence,
            "You count over the whole sequence; at position t only what stands up to t is known.",
        ),
        Mistake(
            "unigram",
            _unigram,
            "You count the letters, whatever stands before them; only those after an occurrence of ids[t] count.",
        ),
        Mistake(
            "backwards",
            _backwards,
            "You count what stood before the letter ids[t]; what followed it is asked for.",
        ),
        Mistake(
            "divided by n",
            _counted(total=lambda c, v: c.sum(-1, keepdim=True).clamp(min=1)),
            "1 is added to each count, but you divide by n alone; the sum must be 1, so divide by n + vocab_size.",
        ),
        Mistake(
            "n + 1",
            _counted(total=lambda c, v: c.sum(-1, keepdim=True) + 1),
            "You divide by n + 1; since 1 is added to each of the vocab_size counts, divide by n + vocab_size.",
        ),
        Mistake(
            "the present one in n",
            _counted(total=lambda c, v: c.sum(-1, keepdim=True) + 1 + v),
            "Your n counts the present occurrence, too, which nothing has followed yet.",
        ),
        Mistake(
            "not divided",
            _counted(total=lambda c, v: 1.0),
            "You returned counts, plus 1; divide them by n + vocab_size.",
        ),
        Mistake(
            "every pair in the total",
            _counted(total=lambda c, v: torch.arange(c.shape[1])[None, :, None] + v),
            "You divide by the number of all pairs so far; n counts only those that begin with ids[t].",
        ),
        Mistake(
            "1 / vocab_size added",
            lambda ids, v: _counted(add=1 / v, total=lambda c, v: c.sum(-1, keepdim=True) + 1)(ids, v),
            "You add 1 / vocab_size to each count; the formula adds 1.",
        ),
        Mistake(
            "the batch as one text",
            _batch_pooled,
            "Your counts are those of all sequences together; each sequence has its own.",
        ),
        Mistake(
            "never reset",
            _never_reset,
            "Your table goes on from one sequence to the next; each begins with nothing counted.",
        ),
        Mistake(
            "wrapped round",
            _wrapped,
            "You count a pair at t = 0, of the last letter and the first: the index t - 1 is -1 there.",
        ),
        Mistake(
            "the letter itself",
            _itself,
            "You count the letter ids[t] in place of the one that followed it.",
        ),
        Mistake(
            "whether, not how often",
            _presence,
            "You note only whether a pair has come; count how often.",
        ),
        Mistake(
            "the newest occurrence alone",
            _newest_alone,
            "Only the newest occurrence of the letter is counted; all earlier ones are.",
        ),
        Mistake(
            "logarithms",
            lambda ids, v: _counted()(ids, v).log(),
            "You returned logarithms; probabilities are asked for.",
        ),
        Mistake(
            "the last position alone",
            lambda ids, v: _counted()(ids, v)[:, -1],
            "Only the last position has a prediction; return one for every position.",
        ),
    ),
)

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4)
