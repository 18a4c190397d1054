"""The exercises of notebook 17: bug clinic."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, integers, normal

# 17.1 The loss reported, and the loss per real token -----------------------------------------------------------------


def reported_and_real(losses, labels, pad_id):
    """Return two numbers: the mean loss over all places, and the mean loss per real token.

    losses: [batch, tgt_len], -ln p of the label in each place, padding included. labels: ids [batch, tgt_len].
    """
    pairs = list(zip(losses.flatten().tolist(), labels.flatten().tolist(), strict=True))
    real = [loss for loss, label in pairs if label != pad_id]
    return sum(loss for loss, _ in pairs) / len(pairs), sum(real) / len(real)


def _loss_cases():
    def case(label, seed, lengths, tgt_len, pad_id=0):
        shape = (len(lengths), tgt_len)
        labels = integers(seed, shape, 3, 13)
        for row, length in enumerate(lengths):
            labels[row, length:] = pad_id
        return Case(label, (normal(seed, shape, dtype=torch.float64)[0].abs(), labels, pad_id))

    losses = normal(1726, (2, 4), dtype=torch.float64)[0].abs()
    return [
        case("lengths 3 and 1", 1721, [3, 1], 5),
        case("no padding", 1722, [7, 7, 7], 7),
        case("one long, four short", 1723, [11, 2, 2, 2, 2], 11),
        case("padding is id 2", 1724, [5, 3, 2], 7, 2),
        Case("ids below that of the padding", (losses, torch.tensor([[1, 2, 9, 5], [7, 5, 5, 5]]), 5)),
        case("as many rows as places", 1725, [2, 3, 5], 3 + 2 - 2),
    ]


def _swapped_means(losses, labels, pad_id):
    return losses[labels != pad_id].mean(), losses.mean()


def _mean_over_padding(losses, labels, pad_id):
    return losses.mean(), losses[labels == pad_id].mean()


def _divided_by_all_places(losses, labels, pad_id):
    return losses.mean(), losses[labels != pad_id].sum() / losses.numel()


def _mean_of_row_means(losses, labels, pad_id):
    real = labels != pad_id
    return losses.mean(), ((losses * real).sum(dim=1) / real.sum(dim=1)).mean()


def _divided_by_rows(losses, labels, pad_id):
    return losses.mean(), losses[labels != pad_id].sum() / len(losses)


def _sums_of_losses(losses, labels, pad_id):
    return losses.sum(), losses[labels != pad_id].sum()


def _padding_is_0(losses, labels, pad_id):
    return losses.mean(), losses[labels != 0].mean()


EXERCISE_1 = Exercise(
    "17.1",
    "The loss reported, and the loss per real token",
    6,
    1,
    reported_and_real,
    _loss_cases,
    (
        Mistake("swapped", _swapped_means, "The two numbers are exchanged."),
        Mistake(
            "padding instead",
            _mean_over_padding,
            "The second number is the mean over the padding; the real tokens are the others.",
        ),
        Mistake(
            "divided by all",
            _divided_by_all_places,
            "You summed over the real tokens, but divided by all places.",
        ),
        Mistake(
            "mean of means",
            _mean_of_row_means,
            "That is the mean over the rows of each row's mean; short rows then weigh more per token.",
        ),
        Mistake(
            "by row",
            _divided_by_rows,
            "You divided by the number of rows; divide by the number of real tokens.",
        ),
        Mistake(
            "sums",
            _sums_of_losses,
            "These are sums; divide each by the number of its places.",
        ),
        Mistake("id 0", _padding_is_0, "Padding has the id pad_id, which need not be 0."),
        Mistake(
            "greater",
            lambda losses, labels, pad_id: (losses.mean(), losses[labels > pad_id].mean()),
            "You left out every id up to pad_id; only pad_id itself is padding.",
        ),
    ),
    returns=("reported", "real"),
)


# 17.2 The same every time? -------------------------------------------------------------------------------------------


def same_every_time(forward, x, times):
    """Return "same" if the model gives one and the same output in evaluation, else "random".

    forward: called as forward(x, training) -> output, any shape. x: a tensor. times: how often to call it.
    """
    outputs = [forward(x, False) for _ in range(times)]
    return "same" if all(torch.equal(outputs[0], output) for output in outputs[1:]) else "random"


def _noisy(seed, where, p=0.5, honest=False, size=1.0):
    """Return a pretend model that is random in the entries `where` of its output, honest if in training alone."""
    factors = normal(seed, (7,))[0]

    def forward(x, training):
        output, hit = x * factors + 1, torch.rand(()) < p
        if training or not honest:
            output[where] += size * (torch.rand(output[where].shape) + 1) if p == 1 or hit else 0
        return output

    return forward


class _Alternating:
    """A pretend model that counts its calls, and answers every other one differently."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x, training):
        self.calls += 1
        return x + 1 + self.calls % 2


def _swapping(x, training):
    return x if torch.rand(()) < 0.6 else x.flip(0)


def _repeat_cases():
    x = normal(1741, (3, 7))[0].abs()
    last = (slice(2, 3), slice(5, 7))
    return [
        Case("no dropout", (lambda x, training: x * 2, x, 3)),
        Case("dropout in training only", (_noisy(1742, slice(None), 1, honest=True), x, 3)),
        Case("dropout always", (_noisy(1743, slice(None), 1), x, 2)),
        Case("random in the last entries", (_noisy(1744, last, 1), x, 5)),
        Case("random, but in a third of the calls", (_noisy(1745, slice(None), 0.3), x, 41)),
        Case("the rows change places", (_swapping, x, 29)),
        Case("a small difference", (_noisy(1746, slice(None), 1, size=1e-4), x, 3)),
        Case("every other call is different, without random numbers", (_Alternating(), x, 4)),
        Case("the input comes back", (lambda x, training: x.clone(), x, 3)),
    ]


def _repeats(training=False, alike=torch.equal, seeded=False, calls=lambda times: times):
    def function(forward, x, times):
        outputs = []
        for _ in range(calls(times)):
            if seeded:
                torch.default_generator.manual_seed(0)
            outputs.append(forward(x, training))
        return "same" if all(alike(outputs[0], output) for output in outputs[1:]) else "random"

    return function


def _swapped_words(forward, x, times):
    return {"same": "random", "random": "same"}[same_every_time(forward, x, times)]


EXERCISE_2 = Exercise(
    "17.2",
    "The same every time?",
    8,
    1,
    same_every_time,
    _repeat_cases,
    (
        Mistake(
            "in training",
            _repeats(training=True),
            "You called it with training=True; dropout is right there. Ask for evaluation.",
        ),
        Mistake(
            "seeded",
            _repeats(seeded=True),
            "You set the seed before each call, so that chance repeats itself and cannot be seen.",
        ),
        Mistake(
            "two calls",
            _repeats(calls=lambda times: 2),
            "Two calls may agree by luck: call it as often as times says.",
        ),
        Mistake(
            "sums",
            _repeats(alike=lambda a, b: bool(torch.isclose(a.sum(), b.sum()))),
            "You compared the sums of the outputs; entries that change places leave a sum as it is.",
        ),
        Mistake(
            "first row",
            _repeats(alike=lambda a, b: torch.equal(a[0], b[0])),
            "You compared only the beginning of the outputs; compare all entries.",
        ),
        Mistake(
            "coarse",
            _repeats(alike=lambda a, b: torch.allclose(a, b, atol=1e-2)),
            "Your tolerance hides small differences; outputs that are the same agree in every digit.",
        ),
        Mistake(
            "always same",
            lambda forward, x, times: "same",
            'You say "same" whatever comes: see that the outputs of two calls are really compared.',
        ),
        Mistake(
            "always random",
            lambda forward, x, times: "random",
            'You say "random" whatever comes: compare the numbers, for example with torch.equal.',
        ),
        Mistake("exchanged", _swapped_words, "The two words are exchanged."),
        Mistake(
            "with the input",
            lambda forward, x, times: same_every_time(
                lambda _, t: forward(x, t) if torch.equal(forward(x, t), x) else torch.rand(2), x, times
            ),
            "You compared the output with the input; compare outputs with one another.",
        ),
    ),
)


# 17.3 Does the future leak? ------------------------------------------------------------------------------------------


def future_effect(model, tokens, other):
    """Return the largest absolute change of a row of logits when only later tokens are exchanged, a number.

    model: called as model(tokens) -> logits [batch, tgt_len, vocab_size]. tokens: ids [batch, tgt_len].
    other: ids of that shape, different in every place. For each place t from 1 on, exchange tokens t, t + 1, … for
    those of other, and look at the logits of the places before t.
    """
    before, largest = model(tokens), 0.0
    for t in range(1, tokens.shape[1]):
        after = model(torch.cat([tokens[:, :t], other[:, t:]], dim=1))
        largest = max(largest, (after - before)[:, :t].abs().max().item())
    return largest


def _reader(seed, vocab, width, may_see):
    """Return a pretend model: each place is the mean of what it may see, a vector per token and another per place."""
    table, places = normal(seed, (vocab, width), (32, width))

    def model(tokens):
        n = tokens.shape[1]
        see = may_see(torch.arange(n)[:, None], torch.arange(n)[None, :]).to(table)
        see = see / see.sum(dim=1, keepdim=True).clamp(min=1)
        return see @ (table[tokens] * (1 + places[:n] ** 2))

    return model


def _signed(seed):
    """Return a pretend model whose earlier rows can only grow when the last token changes from 0 to 1."""
    table = normal(seed, (5, 3))[0]

    def model(tokens):
        return table[tokens] - 2.0 * tokens[:, -1][:, None, None]

    return model


def _future_cases():
    def case(label, seed, shape, may_see):
        tokens = integers(seed, shape, 0, 11)
        return Case(label, (_reader(seed, 11, 3, may_see), tokens, (tokens + 1 + integers(seed + 1, shape, 0, 7)) % 11))

    return [
        case("reads itself and earlier tokens", 1701, (2, 5), lambda i, j: j <= i),
        case("reads everything", 1702, (3, 5), lambda i, j: (j >= 0) & (i >= 0)),
        case("reads itself and later tokens", 1703, (2, 7), lambda i, j: j >= i),
        case("reads its right neighbour", 1704, (5, 7), lambda i, j: (j == i) | (j == i + 1)),
        case("only the first place peeks, at the second", 1705, (3, 11), lambda i, j: (j <= i) | ((i == 0) & (j == 1))),
        Case("rows can only fall", (_signed(1706), integers(1706, (2, 3), 0, 1), integers(1707, (2, 3), 1, 2))),
    ]


def _largest(change):
    return change.abs().max().item()


def _spliced(first, second, t):
    """Return one sentence up to place t and the other from there on."""
    return torch.cat([first[:, :t], second[:, t:]], dim=1)


def _changes(model, tokens, other):
    """Return pairs of t and the change of all rows when the tokens from t on are replaced."""
    before = model(tokens)
    return [(t, model(_spliced(tokens, other, t)) - before) for t in range(1, tokens.shape[1])]


def _all_rows(model, tokens, other):
    return max(_largest(change) for _, change in _changes(model, tokens, other))


def _one_row_too_many(model, tokens, other):
    return max(_largest(change[:, : t + 1]) for t, change in _changes(model, tokens, other))


def _past_exchanged(model, tokens, other):
    before, places = model(tokens), range(1, tokens.shape[1])
    return max(_largest((model(_spliced(other, tokens, t)) - before)[:, :t]) for t in places)


def _effect_of_the_past(model, tokens, other):
    before, places = model(tokens), range(1, tokens.shape[1])
    return max(_largest((model(_spliced(other, tokens, t)) - before)[:, t:]) for t in places)


def _last_token_only(model, tokens, other):
    t, change = _changes(model, tokens, other)[-1]
    return _largest(change[:, :t])


def _one_token_at_a_time(model, tokens, other):
    before, found = model(tokens), []
    for t in range(1, tokens.shape[1]):
        changed = tokens.clone()
        changed[:, t] = other[:, t]
        found.append(_largest((model(changed) - before)[:, :t]))
    return max(found)


def _one_token_too_late(model, tokens, other):
    before, places = model(tokens), range(1, tokens.shape[1])
    return max(_largest((model(_spliced(tokens, other, t + 1)) - before)[:, :t]) for t in places)


def _second_token_on_only(model, tokens, other):
    t, change = _changes(model, tokens, other)[0]
    return _largest(change[:, :t])


def _signed_effect(model, tokens, other):
    return max(change[:, :t].max().item() for t, change in _changes(model, tokens, other))


def _mean_effect(model, tokens, other):
    return max(change[:, :t].abs().mean().item() for t, change in _changes(model, tokens, other))


EXERCISE_3 = Exercise(
    "17.3",
    "Does the future leak?",
    10,
    1,
    future_effect,
    _future_cases,
    (
        Mistake(
            "all rows",
            _all_rows,
            "You look at all rows; those from t on have read an exchanged token and may change.",
        ),
        Mistake(
            "one row too many",
            _one_row_too_many,
            "One row too many: place t has read the exchanged token itself. Look at the places before t.",
        ),
        Mistake(
            "past exchanged",
            _past_exchanged,
            "You exchanged the earlier tokens; leave these and exchange those from t on.",
        ),
        Mistake(
            "later rows of an earlier change",
            _effect_of_the_past,
            "That is how much the past acts on later rows, as it should; ask it the other way round.",
        ),
        Mistake(
            "last token only",
            _last_token_only,
            "You exchanged the last token only; a leak between earlier places goes unseen.",
        ),
        Mistake(
            "one token at a time",
            _one_token_at_a_time,
            "You exchanged token t alone; exchange all from t on, so that their effects come together.",
        ),
        Mistake(
            "one token too late",
            _one_token_too_late,
            "You kept token t too; the first one to exchange is t itself.",
        ),
        Mistake("second token on only", _second_token_on_only, "You tried t = 1 only; every t has to be tried."),
        Mistake(
            "signed",
            _signed_effect,
            "Without the absolute value a change downwards goes unseen.",
        ),
        Mistake(
            "mean",
            _mean_effect,
            "That is a mean change; one row that leaks is enough, so take the largest.",
        ),
        Mistake(
            "first sentence",
            lambda model, tokens, other: future_effect(model, tokens[:1], other[:1]),
            "You looked at the first sentence of the batch only.",
        ),
    ),
    rtol=1e-5,
)


# 17.4 Over which axis do the weights sum to one? ---------------------------------------------------------------------


def sums_to_one_over(weights):
    """Return over which axis attention weights sum to one: "keys", "queries", "both" or "neither".

    weights: [n_heads, q_len, k_len]. "keys": each row, one for each query, sums to one. "queries": each column does.
    Rows or columns of zeros alone (fully masked) do not count against it. All heads must agree.
    """
    over_keys = all(abs(s - 1) < 1e-4 or s == 0 for head in weights.tolist() for s in map(sum, head))
    over_queries = all(abs(s - 1) < 1e-4 or s == 0 for head in weights.mT.tolist() for s in map(sum, head))
    if over_keys and over_queries:
        return "both"
    return "keys" if over_keys else "queries" if over_queries else "neither"


def _weights_cases():
    def over(axis, seed, *shape):
        return torch.softmax(2 * normal(seed, shape)[0], dim=axis)

    masked = over(-1, 1713, 2, 5, 3)
    masked[:, 2] = 0
    gone = over(-2, 1714, 3, 5, 7)
    gone[:, :, 4] = 0
    mixed = torch.stack([over(-1, 1715, 5, 5), over(-2, 1716, 5, 5)])
    late = over(-1, 1717, 3, 7, 5)
    late[:, 1:] = over(-2, 1718, 3, 6, 5)
    slightly, little = over(-1, 1731, 2, 3, 5), over(-1, 1732, 2, 3, 5)
    slightly[1, 2] *= 0.998
    little[0, 1] *= 0.2
    return [
        Case("softmax over the keys, 2 heads", (over(-1, 1711, 2, 3, 5),)),
        Case("softmax over the queries, 3 heads", (over(-2, 1712, 3, 5, 2),)),
        Case("over the keys, one query may see nothing", (masked,)),
        Case("over the queries, one key is seen by nobody", (gone,)),
        Case("one head each way", (mixed,)),
        Case("only the first query is right", (late,)),
        Case("all weights 1 / 3, three by three", (torch.full((2, 3, 3), 1 / 3),)),
        Case(
            "rows sum to 0.5 in one head and to 1.5 in the other",
            (over(-1, 1719, 2, 3, 5) * torch.tensor([0.5, 1.5])[:, None, None],),
        ),
        Case("one row sums to 0.998", (slightly,)),
        Case("one row sums to 0.2", (little,)),
    ]


def _is_one_or_0(sums):
    return ((sums - 1).abs() < 1e-4) | (sums == 0)


def _name_of(over_keys, over_queries):
    if over_keys and over_queries:
        return "both"
    return "keys" if over_keys else "queries" if over_queries else "neither"


def _judged(weights, fine):
    """Return the answer of whoever judges the sums [n_heads, …] by `fine`."""
    return _name_of(fine(weights.sum(dim=-1)), fine(weights.sum(dim=-2)))


def _axes_swapped(weights):
    return sums_to_one_over(weights.mT)


def _zeros_count(weights):
    return _judged(weights, lambda sums: bool(((sums - 1).abs() < 1e-4).all()))


def _exactly_one(weights):
    return _judged(weights, lambda sums: bool(((sums == 1) | (sums == 0)).all()))


def _one_on_average(weights):
    return _judged(weights, lambda sums: bool((sums.mean() - 1).abs() < 1e-4))


def _any_head(weights):
    return _judged(weights, lambda sums: bool(_is_one_or_0(sums).all(dim=-1).any()))


def _first_query(weights):
    return "both" if sums_to_one_over(weights) == "both" else sums_to_one_over(weights[:, :1, :])


def _first_head(weights):
    return sums_to_one_over(weights[:1])


def _mean_of_heads(weights):
    return sums_to_one_over(weights.mean(dim=0, keepdim=True))


def _never_both(weights):
    return {"both": "keys"}.get(sums_to_one_over(weights), sums_to_one_over(weights))


EXERCISE_4 = Exercise(
    "17.4",
    "Over which axis do the weights sum to one?",
    8,
    1,
    sums_to_one_over,
    _weights_cases,
    (
        Mistake(
            "swapped",
            _axes_swapped,
            "The names are exchanged: a sum over the last axis is a sum over the keys.",
        ),
        Mistake(
            "zeros count",
            _zeros_count,
            "A query that may see nothing has a row of zeros; that is no fault.",
        ),
        Mistake(
            "exactly one",
            _exactly_one,
            "In floating point a sum may be 0.9999999: compare with a tolerance.",
        ),
        Mistake(
            "on average",
            _one_on_average,
            "That is the mean of the sums; each of them has to be one.",
        ),
        Mistake(
            "any head",
            _any_head,
            "All heads must agree; you were content with one of them.",
        ),
        Mistake(
            "first query and key",
            _first_query,
            "You looked at the first query only.",
        ),
        Mistake("first head", _first_head, "You looked at the first head only; all heads must agree."),
        Mistake(
            "mean of heads",
            _mean_of_heads,
            "You took the mean of the heads first; sums of 0.5 and 1.5 then pass. Look at each head.",
        ),
        Mistake("never both", _never_both, 'When rows and columns both sum to one, the answer is "both".'),
        Mistake(
            "coarse",
            lambda weights: _judged(weights, lambda sums: bool((((sums - 1).abs() < 1e-2) | (sums == 0)).all())),
            "Your tolerance is too large: rounding moves a sum by about a millionth, not by a hundredth.",
        ),
        Mistake(
            "small rows",
            lambda weights: _judged(weights, lambda sums: bool((((sums - 1).abs() < 1e-4) | (sums < 0.5)).all())),
            "You leave out rows with a small sum; only those without any weight do not count.",
        ),
    ),
)


# 17.5 Moved by padding? ----------------------------------------------------------------------------------------------


def padding_effect(model, ids, pad_id, extra):
    """Return the largest absolute change at real places when `extra` padding tokens are put behind, a number.

    model: called as model(ids) -> rows [batch, len, d]. ids: [batch, len], shorter rows already end in pad_id.
    """
    batch, length = ids.shape
    longer = torch.full((batch, length + extra), pad_id)
    longer[:, :length] = ids
    change = model(longer)[:, :length] - model(ids)
    return max(change[row, place].abs().max().item() for row, place in (ids != pad_id).nonzero().tolist())


def _mixer(seed, pad_id, *, masked, positions=True, vocab=11, width=3):
    """Return a pretend encoder: each row is its own vector and the mean of those that it sees."""
    table, places = normal(seed, (vocab, width), (64, width))

    def model(ids):
        x = table[ids] * (1 + places[: ids.shape[1]] ** 2 if positions else 1)
        seen = (ids != pad_id) if masked else torch.ones_like(ids, dtype=torch.bool)
        return x + (x * seen[..., None]).sum(dim=1, keepdim=True) / seen.sum(dim=1)[:, None, None]

    return model


def _ids(seed, lengths, seq_len, pad_id):
    ids = integers(seed, (len(lengths), seq_len), 4, 11)
    for row, length in enumerate(lengths):
        ids[row, length:] = pad_id
    return ids


def _padding_cases():
    def last_row(ids):  # the row before the end depends on how much follows it
        x = torch.zeros(*ids.shape, 2)
        x[:, -1] = 5.0
        return x

    def second(ids):
        x = torch.zeros(*ids.shape, 2)
        x[:, 1] = float(ids.shape[1])
        return x

    def low_ids(ids):
        return ((ids < 5) * ids.shape[1])[..., None].double()

    def heavier(ids):  # sentence b changes by b for each token that is added
        return (torch.arange(len(ids))[:, None, None] * ids.shape[1]).expand(*ids.shape, 2).double()

    def falling(ids):
        return -torch.full((*ids.shape, 3), float(ids.shape[1]))

    return [
        Case("padding is masked", (_mixer(1751, 0, masked=True), _ids(1751, [5, 3, 2], 5, 0), 0, 2)),
        Case("padding is read", (_mixer(1752, 0, masked=False), _ids(1752, [5, 2], 5, 0), 0, 3)),
        Case("padding is id 3 and is read", (_mixer(1753, 3, masked=False), _ids(1753, [7, 5, 3], 7, 3), 3, 5)),
        Case("padding is id 3 and is masked", (_mixer(1754, 3, masked=True), _ids(1754, [7, 2], 7, 3), 3, 11)),
        Case("only the last place changes", (last_row, _ids(1755, [2, 3, 5], 7, 0), 0, 2)),
        Case("padding is id 3, only the last place changes", (last_row, _ids(1757, [2, 3, 5], 7, 3), 3, 2)),
        Case("the later sentences change most", (heavier, _ids(1758, [5, 3, 2], 5, 0), 0, 3)),
        Case("all rows fall", (falling, _ids(1756, [3, 2], 3, 0), 0, 7)),
        Case("only the second place moves", (second, _ids(1759, [3, 2], 5, 0), 0, 2)),
        Case("ids below that of the padding move", (low_ids, torch.tensor([[1, 9, 2, 5], [9, 8, 3, 5]]), 5, 3)),
    ]


def _longer(ids, pad_id, extra):
    return torch.nn.functional.pad(ids, (0, extra), value=pad_id)


def _change(model, ids, longer):
    """Return the change of the first rows when the model reads the longer batch."""
    return model(longer)[:, : ids.shape[1]] - model(ids)


def _padding_places_too(model, ids, pad_id, extra):
    return _largest(_change(model, ids, _longer(ids, pad_id, extra)))


def _padded_in_front(model, ids, pad_id, extra):
    longer = torch.nn.functional.pad(ids, (extra, 0), value=pad_id)
    return _largest(_change(model, ids, longer)[ids != pad_id])


def _padded_and_cut_in_front(model, ids, pad_id, extra):
    longer = torch.nn.functional.pad(ids, (extra, 0), value=pad_id)
    return _largest((model(longer)[:, -ids.shape[1] :] - model(ids))[ids != pad_id])


def _padded_with_0(model, ids, pad_id, extra):
    return _largest(_change(model, ids, _longer(ids, 0, extra))[ids != pad_id])


def _real_is_not_0(model, ids, pad_id, extra):
    return _largest(_change(model, ids, _longer(ids, pad_id, extra))[ids != 0])


def _first_sentence(model, ids, pad_id, extra):
    return _largest(_change(model, ids, _longer(ids, pad_id, extra))[:1][ids[:1] != pad_id])


def _one_padding_token(model, ids, pad_id, extra):
    return padding_effect(model, ids, pad_id, 1)


def _last_rows(model, ids, pad_id, extra):
    rows = model(_longer(ids, pad_id, extra))[:, -ids.shape[1] :]
    return _largest((rows - model(ids))[ids != pad_id])


def _signed_change(model, ids, pad_id, extra):
    return _change(model, ids, _longer(ids, pad_id, extra))[ids != pad_id].max().item()


def _mean_change(model, ids, pad_id, extra):
    return _change(model, ids, _longer(ids, pad_id, extra))[ids != pad_id].abs().mean().item()


EXERCISE_5 = Exercise(
    "17.5",
    "Moved by padding?",
    10,
    2,
    padding_effect,
    _padding_cases,
    (
        Mistake(
            "padding places too",
            _padding_places_too,
            "You compared the rows of padding too; nobody reads these, so they may change.",
        ),
        Mistake(
            "in front",
            _padded_in_front,
            "You put the padding in front; put it behind.",
        ),
        Mistake(
            "front, cut there",
            _padded_and_cut_in_front,
            "With padding in front every token changes its place, and positions alone move the rows.",
        ),
        Mistake(
            "id 0",
            _padded_with_0,
            "You padded with 0; the padding has the id pad_id.",
        ),
        Mistake(
            "real is not 0",
            _real_is_not_0,
            "You took all ids but 0 for real tokens; padding has the id pad_id.",
        ),
        Mistake(
            "first sentence",
            _first_sentence,
            "You looked at the first sentence of the batch only.",
        ),
        Mistake(
            "one token",
            _one_padding_token,
            "You put one padding token behind, not as many as extra says.",
        ),
        Mistake(
            "last rows",
            _last_rows,
            "You compared the last rows of the longer batch; the same tokens are its first rows.",
        ),
        Mistake(
            "signed",
            _signed_change,
            "Without the absolute value a change downwards goes unseen.",
        ),
        Mistake("mean", _mean_change, "That is a mean; take the largest change."),
        Mistake(
            "greater",
            lambda model, ids, pad_id, extra: (
                _largest(change)
                if len(change := _change(model, ids, _longer(ids, pad_id, extra))[ids > pad_id])
                else 0.0
            ),
            "You left out every id up to pad_id; only pad_id itself is padding.",
        ),
        Mistake(
            "first place",
            lambda model, ids, pad_id, extra: _largest(_change(model, ids, _longer(ids, pad_id, extra))[:, 0]),
            "You looked at the first place only.",
        ),
    ),
    rtol=1e-5,
)


# 17.6 Does it notice the order? --------------------------------------------------------------------------------------


def order_effect(encode, ids, order):
    """Return how far an encoder is from not noticing the order, a number: 0 if it does not notice it.

    encode: called as encode(ids) -> memory [batch, seq_len, d]. ids: [batch, seq_len]. order: [seq_len], the places
    in a new order. Token ids[:, order[i]] comes to place i; return the largest absolute difference between its row of
    memory there and its row of memory before.
    """
    before, after = encode(ids), encode(ids[:, order])
    return max((after[:, i] - before[:, place]).abs().max().item() for i, place in enumerate(order.tolist()))


def _order_cases():
    def case(label, seed, batch, order, **options):
        ids = integers(seed, (batch, len(order)), 0, 11)
        return Case(label, (_mixer(seed, -1, masked=False, **options), ids, torch.tensor(order)))

    def ranks(ids):  # rows that can only grow when turned back
        return (torch.arange(ids.shape[1]) ** 2).expand_as(ids)[..., None].double()

    return [
        case("no positions, 3 tokens in a circle", 1761, 2, [1, 2, 0], positions=False),
        case("positions, 3 tokens in a circle", 1762, 2, [1, 2, 0]),
        case("positions, 7 tokens", 1763, 3, [3, 0, 6, 1, 5, 2, 4]),
        case("no positions, 5 tokens", 1764, 5, [4, 0, 3, 1, 2], positions=False),
        case("positions, as many rows as tokens", 1765, 3, [2, 0, 1]),
        Case("each row is its place, squared", (ranks, integers(1766, (2, 5), 0, 11), torch.tensor([4, 0, 1, 2, 3]))),
    ]


def _place_with_place(encode, ids, order):
    return _largest(encode(ids[:, order]) - encode(ids))


def _ordered_twice(encode, ids, order):
    return _largest(encode(ids[:, order])[:, order] - encode(ids))


def _sentences_ordered(encode, ids, order):
    return _largest(encode(ids[order]) - encode(ids)[order])


def _nothing_exchanged(encode, ids, order):
    return _largest(encode(ids) - encode(ids))


def _means_compared(encode, ids, order):
    return _largest(encode(ids[:, order]).mean(dim=1) - encode(ids).mean(dim=1))


def _signed_difference(encode, ids, order):
    return (encode(ids[:, order]) - encode(ids)[:, order]).max().item()


def _mean_difference(encode, ids, order):
    return (encode(ids[:, order]) - encode(ids)[:, order]).abs().mean().item()


EXERCISE_6 = Exercise(
    "17.6",
    "Does it notice the order?",
    12,
    2,
    order_effect,
    _order_cases,
    (
        Mistake(
            "not put back",
            _place_with_place,
            "You compared place with place, where different tokens stand now; follow each token.",
        ),
        Mistake(
            "wrong way back",
            _ordered_twice,
            "You applied the order a second time; the token at place i came from place order[i].",
        ),
        Mistake(
            "batch",
            _sentences_ordered,
            "ids[order] picks sentences of the batch; the tokens are the second axis: ids[:, order].",
        ),
        Mistake("nothing exchanged", _nothing_exchanged, "You encoded the same ids twice."),
        Mistake(
            "means",
            _means_compared,
            "You compared means over the tokens; each token has a row of its own.",
        ),
        Mistake(
            "signed",
            _signed_difference,
            "Without the absolute value a change downwards goes unseen.",
        ),
        Mistake(
            "mean change",
            _mean_difference,
            "That is the mean difference; take the largest.",
        ),
    ),
    rtol=1e-5,
)

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5, EXERCISE_6)
