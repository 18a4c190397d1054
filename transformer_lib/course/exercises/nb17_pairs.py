"""Exercises of notebook 17, continued: instruments that compare two passes."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, integers, normal


def same_every_time(forward, x, times):
    """Return "same" if the model gives one and the same output in evaluation, else "random".

    forward: called as forward(x, training) -> output, any shape. x: a tensor. times: how often to call it.
    """
    outputs = [forward(x, False) for _ in range(times)]
    return "same" if all(torch.equal(outputs[0], output) for output in outputs[1:]) else "random"


def padding_effect(model, ids, pad_id, extra):
    """Return the largest absolute change at real places when `extra` padding tokens are put behind, a number.

    model: called as model(ids) -> rows [batch, len, d]. ids: [batch, len], shorter rows already end in pad_id.
    """
    batch, length = ids.shape
    longer = torch.full((batch, length + extra), pad_id)
    longer[:, :length] = ids
    change = model(longer)[:, :length] - model(ids)
    return max(change[row, place].abs().max().item() for row, place in (ids != pad_id).nonzero().tolist())


def order_effect(encode, ids, order):
    """Return how far an encoder is from not noticing the order, a number: 0 if it does not notice it.

    encode: called as encode(ids) -> memory [batch, seq_len, d]. ids: [batch, seq_len]. order: [seq_len], the places
    in a new order. Token ids[:, order[i]] comes to place i; return the largest absolute difference between its row of
    memory there and its row of memory before.
    """
    before, after = encode(ids), encode(ids[:, order])
    return max((after[:, i] - before[:, place]).abs().max().item() for i, place in enumerate(order.tolist()))


def _noisy(seed, where, p=0.5, honest=False):
    """A pretend model that is random in the entries `where` of its output, honest if in training alone."""
    factors = normal(seed, (7,))[0]

    def forward(x, training):
        output, hit = x * factors + 1, torch.rand(()) < p
        if training or not honest:
            output[where] += torch.rand(output[where].shape) + 1 if p == 1 or hit else 0
        return output

    return forward


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


def _mixer(seed, pad_id, *, masked, positions=True, vocab=11, width=3):
    """A pretend encoder: each row is its own vector and the mean of those that it sees."""
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
    ]


def _padded(
    pad=lambda ids, p, extra: torch.nn.functional.pad(ids, (0, extra), value=p),
    cut=lambda rows, n: rows[:, :n],
    real=lambda ids, p: ids != p,
    size=lambda d: d.abs().max().item(),
):
    def function(model, ids, pad_id, extra):
        change = cut(model(pad(ids, pad_id, extra)), ids.shape[1]) - model(ids)
        return size(change[real(ids, pad_id)])

    return function


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


def _ordered(
    permute=lambda ids, o: ids[:, o],
    back=lambda m, o: m[:, o],
    after=lambda m, o: m,
    size=lambda d: d.abs().max().item(),
):
    return lambda encode, ids, order: size(after(encode(permute(ids, order)), order) - back(encode(ids), order))


EXERCISES = (
    Exercise(
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
                "first row", _repeats(alike=lambda a, b: torch.equal(a[0], b[0])), "You compared the first row only."
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
    ),
    Exercise(
        "17.5",
        "Moved by padding?",
        10,
        2,
        padding_effect,
        _padding_cases,
        (
            Mistake(
                "padding places too",
                _padded(real=lambda ids, p: torch.ones_like(ids, dtype=torch.bool)),
                "You compared the rows of padding too; nobody reads these, so they may change.",
            ),
            Mistake(
                "in front",
                _padded(lambda ids, p, extra: torch.nn.functional.pad(ids, (extra, 0), value=p)),
                "You put the padding in front; put it behind.",
            ),
            Mistake(
                "front, cut there",
                _padded(
                    lambda ids, p, extra: torch.nn.functional.pad(ids, (extra, 0), value=p),
                    lambda rows, n: rows[:, -n:],
                ),
                "With padding in front every token changes its place, and positions alone move the rows.",
            ),
            Mistake(
                "id 0",
                _padded(lambda ids, p, extra: torch.nn.functional.pad(ids, (0, extra))),
                "You padded with 0; the padding has the id pad_id.",
            ),
            Mistake(
                "real is not 0",
                _padded(real=lambda ids, p: ids != 0),
                "You took all ids but 0 for real tokens; padding has the id pad_id.",
            ),
            Mistake(
                "first sentence",
                lambda model, ids, pad_id, extra: _padded(
                    cut=lambda rows, n: rows[:1, :n], real=lambda ids, p: (ids != p)[:1]
                )(lambda x: model(x)[:1], ids, pad_id, extra),
                "You looked at the first sentence of the batch only.",
            ),
            Mistake(
                "one token",
                _padded(lambda ids, p, extra: torch.nn.functional.pad(ids, (0, 1), value=p)),
                "You put one padding token behind, not as many as extra says.",
            ),
            Mistake(
                "last rows",
                _padded(cut=lambda rows, n: rows[:, -n:]),
                "You compared the last rows of the longer batch; the same tokens are its first rows.",
            ),
            Mistake(
                "signed",
                _padded(size=lambda d: d.max().item()),
                "Without the absolute value a change downwards goes unseen.",
            ),
            Mistake("mean", _padded(size=lambda d: d.abs().mean().item()), "That is a mean; take the largest change."),
        ),
        rtol=1e-5,
    ),
    Exercise(
        "17.6",
        "Does it notice the order?",
        12,
        2,
        order_effect,
        _order_cases,
        (
            Mistake(
                "not put back",
                _ordered(back=lambda m, o: m),
                "You compared place with place, where different tokens stand now; follow each token.",
            ),
            Mistake(
                "wrong way back",
                _ordered(back=lambda m, o: m, after=lambda m, o: m[:, o]),
                "You applied the order a second time; the token at place i came from place order[i].",
            ),
            Mistake(
                "batch",
                _ordered(lambda ids, o: ids[o], lambda m, o: m[o]),
                "ids[order] picks sentences of the batch; the tokens are the second axis: ids[:, order].",
            ),
            Mistake(
                "nothing exchanged", _ordered(lambda ids, o: ids, lambda m, o: m), "You encoded the same ids twice."
            ),
            Mistake(
                "means",
                _ordered(back=lambda m, o: m.mean(dim=1), after=lambda m, o: m.mean(dim=1)),
                "You compared means over the tokens; each token has a row of its own.",
            ),
            Mistake(
                "signed",
                _ordered(size=lambda d: d.max().item()),
                "Without the absolute value a change downwards goes unseen.",
            ),
            Mistake(
                "mean change",
                _ordered(size=lambda d: d.abs().mean().item()),
                "That is the mean difference; take the largest.",
            ),
        ),
        rtol=1e-5,
    ),
)
