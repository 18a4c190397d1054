"""Exercises of notebook 10, continued: what to do with the memory, and who reads whom."""

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


def influence(encode, x, amount):
    """Return which outputs change when one input changes: boolean [seq_len, seq_len], entry [i, j].

    Entry [i, j] is True when adding amount [d_model] to row j of x moves any number of row i of encode(x) by more
    than 1e-6. x: [seq_len, d_model]; encode: a function of one such tensor that returns one.
    """
    before, columns = encode(x), []
    for j in range(len(x)):
        changed = torch.cat([x[:j], (x[j] + amount)[None], x[j + 1 :]])
        columns.append(((encode(changed) - before).abs() > 1e-6).any(dim=1))
    return torch.stack(columns, dim=1)


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


def _encode(kind, seed, d_model):
    """A map on [seq_len, d_model] whose rows read all rows, none but themselves, earlier ones, or the next one."""
    matrix = normal(seed, (d_model, d_model))[0]

    def encode(x):
        n = len(x)
        seen = {
            "all": torch.ones(n, n), "self": torch.eye(n), "past": torch.ones(n, n).tril(),
            "next": torch.eye(n) + torch.eye(n).roll(1, dims=1).triu(),
        }[kind]  # fmt: skip
        return torch.tanh(seen.to(x) @ x @ matrix.to(x) / n)

    return encode


def _influence_cases():
    def case(label, kind, seed, seq_len, d_model):
        x, amount = normal(seed, (seq_len, d_model), (d_model,))
        return Case(label, (_encode(kind, seed, d_model), x, amount))

    return [
        case("2 tokens, each reads itself and the past", "past", 140, 2, 3),
        case("5 tokens, all read all", "all", 141, 5, 2),
        case("3 tokens, each alone", "self", 142, 3, 5),
        case("7 tokens, each reads itself and the next", "next", 143, 7, 3),
        case("one token", "all", 144, 1, 2),
    ]


def _mean_with(weights):
    def function(memory, mask):
        kept = mask[:, 0, 0, :, None].to(memory)
        return weights(memory, kept)

    return function


def _perturb(encode, x, amount, spread):
    before = encode(x)
    return [encode(x + spread(j, x)[:, None] * amount) - before for j in range(len(x))]


def _one(j, x):
    return (torch.arange(len(x)) == j).to(x)


def _grid(encode, x, amount, spread=_one, reduce=torch.any):
    return torch.stack([reduce(d.abs() > 1e-6, dim=1) for d in _perturb(encode, x, amount, spread)], dim=1)


def _kept_changes(encode, x, amount):
    return _grid(encode, x, amount, lambda j, x: (torch.arange(len(x)) <= j).to(x))


EXERCISES = (
    Exercise(
        "10.4", "Who reads whom?", 12, 3, influence, _influence_cases,
        (
            Mistake("transposed", lambda e, x, a: _grid(e, x, a).T,
                    "Your grid is transposed: row i is the output, column j the input that was changed."),
            Mistake("keeps changes", _kept_changes,
                    "Earlier changes stay in x while you make the next: begin each time from the given x."),
            Mistake("all rows", lambda e, x, a: _grid(e, x, a, lambda j, x: torch.ones(len(x)).to(x)),
                    "You changed every row at once; change one row j at a time."),
            Mistake("diagonal", lambda e, x, a: _grid(e, x, a) & torch.eye(len(x), dtype=torch.bool),
                    "Only the changed row itself is looked at; ask every output row."),
            Mistake("not the diagonal", lambda e, x, a: _grid(e, x, a) & ~torch.eye(len(x), dtype=torch.bool),
                    "A row may influence its own output too; the diagonal counts."),
            Mistake("unchanged", lambda e, x, a: ~_grid(e, x, a), "True must mean that the output changed."),
            Mistake("by feature", lambda e, x, a: torch.stack(
                        [d.abs() > 1e-6 for d in _perturb(e, x, a, _one)], dim=1),
                    "There is a value per feature; ask whether any feature of the row has moved."),
            Mistake("how much", lambda e, x, a: torch.stack(
                        [d.abs().amax(dim=1) for d in _perturb(e, x, a, _one)], dim=1),
                    "Those are the sizes of the changes; asked for is whether they exceed 1e-6."),
        ),
    ),
    Exercise(
        "10.5", "A mean without padding", 8, 1, real_token_mean, _mean_cases,
        (
            Mistake("all positions", _mean_with(lambda m, k: m.mean(dim=1)),
                    "The padding's vectors are in your mean: they depend on the batch that the sentence sits in."),
            Mistake("divided by src_len", _mean_with(lambda m, k: (m * k).mean(dim=1)),
                    "The sum is right; divide it by the number of real tokens, not by src_len."),
            Mistake("inverted", _mean_with(lambda m, k: (m * (1 - k)).sum(1) / (1 - k).sum(1).clamp(min=1)),
                    "You averaged the padding: True marks the real tokens."),
            Mistake("sum", _mean_with(lambda m, k: (m * k).sum(dim=1)), "That is the sum; divide it by the count."),
            Mistake("whole batch", _mean_with(lambda m, k: (m * k).sum(1) / k.sum() * len(m)),
                    "You divided every sentence by the mean length of the batch; each has its own count."),
            Mistake("first token", _mean_with(lambda m, k: m[:, 0]),
                    "That is the first position's vector, not a mean."),
            Mistake("over features", _mean_with(lambda m, k: m.mean(dim=2)),
                    "You averaged over the features; the tokens are axis 1."),
        ),
        gradients=("memory",),
    ),
    Exercise(
        "10.6", "Read one word's vector", 8, 2, sense_scores, _score_cases,
        (
            Mistake("first place", lambda m, p, W, b: m[:, 0] @ W + b,
                    "You read the first position of every sentence; places says where the word stands."),
            Mistake("last place", lambda m, p, W, b: m[:, -1] @ W + b,
                    "You read the last position of every sentence; places says where the word stands."),
            Mistake("mean", lambda m, p, W, b: m.mean(dim=1) @ W + b,
                    "You averaged the sentence; the word's own vector is asked for."),
            Mistake("one place for all", lambda m, p, W, b: m[:, p[0]] @ W + b,
                    "You read the first sentence's place in every sentence."),
            Mistake("cross product", lambda m, p, W, b: m[:, p] @ W + b,
                    "memory[:, places] takes every place in every sentence; pair each sentence with its own place: "
                    "memory[torch.arange(batch), places]."),
            Mistake("one sentence", lambda m, p, W, b: m[0, p] @ W + b,
                    "You read all places in the first sentence."),
            Mistake("no bias", lambda m, p, W, b: m[torch.arange(len(m)), p] @ W, "The bias b is missing."),
            Mistake("softmax", lambda m, p, W, b: (m[torch.arange(len(m)), p] @ W + b).softmax(-1),
                    "Those are probabilities; the scores before the softmax are asked for."),
            Mistake("all scores", lambda m, p, W, b: m @ W + b,
                    "You scored every position; read one per sentence."),
        ),
        gradients=("memory", "W", "b"),
    ),
)
