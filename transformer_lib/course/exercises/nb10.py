"""The exercises of notebook 10: the encoder."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, integers, normal

# 10.1 One encoder layer ----------------------------------------------------------------------------------------------


def encoder_layer(x, attention, feed_forward, norm_1, norm_2):
    """Return x after one post-norm encoder layer, the paper's.

    x: [batch, seq_len, d_model]; the other four are functions of one tensor of that shape and return one:
    the two sub-layers, and the norms that follow the first and the second residual sum.
    Returns [batch, seq_len, d_model].
    """
    after_attention = norm_1(torch.stack([x, attention(x)]).sum(dim=0))
    return norm_2(torch.stack([after_attention, feed_forward(after_attention)]).sum(dim=0))


def _mixing(seed, d_model):
    """Return a sub-layer that lets tokens exchange something: a blend over the sentence, then a matrix."""
    matrix = normal(seed, (d_model, d_model))[0] / d_model**0.5

    def attention(x):
        weights = torch.softmax(x @ x.mT / d_model**0.5, dim=-1)
        return weights @ x @ matrix.to(x)

    return attention


def _by_row(seed, d_model):
    """Return a sub-layer that works on each token alone."""
    matrix = normal(seed, (d_model, d_model))[0] / d_model**0.5
    return lambda x: torch.relu(x @ matrix.to(x)) + 0.5


def _norm(gain):
    """Return a layer norm with a gain, so that the two norms can be told apart."""
    return lambda x: gain * torch.layer_norm(x, x.shape[-1:]) + 0.1


def _layer_case(label, seed, *shape):
    d_model = shape[-1]
    parts = (_mixing(seed + 1, d_model), _by_row(seed + 2, d_model), _norm(0.7), _norm(1.3))
    return Case(label, (normal(seed, shape)[0], *parts))


def _layer_cases():
    return [
        _layer_case("1 sentence of 2 tokens, d_model 3", 100, 1, 2, 3),
        _layer_case("2 sentences of 5 tokens, d_model 7", 104, 2, 5, 7),
        _layer_case("one token", 108, 3, 1, 5),
        _layer_case("a long sentence", 112, 1, 11, 3),
        _layer_case("3 sentences of 7 tokens, d_model 13", 116, 3, 7, 13),
    ]


def _post_norm(x, first, second, norm_1, norm_2):
    middle = norm_1(x + first(x))
    return norm_2(middle + second(middle))


def _no_residual(x, attention, feed_forward, norm_1, norm_2):
    return norm_2(feed_forward(norm_1(attention(x))))


def _pre_norm(x, attention, feed_forward, norm_1, norm_2):
    middle = x + attention(norm_1(x))
    return middle + feed_forward(norm_2(middle))


def _one_residual(x, attention, feed_forward, norm_1, norm_2):
    return norm_2(x + feed_forward(norm_1(attention(x))))


def _residual_from_x(x, attention, feed_forward, norm_1, norm_2):
    return norm_2(x + feed_forward(norm_1(x + attention(x))))


def _sum_carried_on(x, attention, feed_forward, norm_1, norm_2):
    middle = x + attention(x)
    return norm_2(middle + feed_forward(norm_1(middle)))


def _side_by_side(x, attention, feed_forward, norm_1, norm_2):
    return norm_2(norm_1(x + attention(x)) + feed_forward(x))


def _norm_before_sum(x, attention, feed_forward, norm_1, norm_2):
    middle = x + norm_1(attention(x))
    return middle + norm_2(feed_forward(middle))


def _last_norm_missing(x, attention, feed_forward, norm_1, norm_2):
    middle = norm_1(x + attention(x))
    return middle + feed_forward(middle)


def _first_norm_missing(x, attention, feed_forward, norm_1, norm_2):
    middle = x + attention(x)
    return norm_2(middle + feed_forward(middle))


EXERCISE_1 = Exercise(
    "10.1",
    "One encoder layer",
    10,
    2,
    encoder_layer,
    _layer_cases,
    (
        Mistake(
            "pre-norm",
            _pre_norm,
            "That is the pre-norm layer: the norm stands before the sub-layer. Here it follows the sum.",
        ),
        Mistake("no residuals", _no_residual, "The residual sums are missing: each sub-layer's input is added."),
        Mistake("one residual", _one_residual, "x is not added to what the attention returns."),
        Mistake(
            "from x",
            _residual_from_x,
            "The second sum adds x; it must add what the feed-forward network was given, the first norm's output.",
        ),
        Mistake(
            "no second residual",
            lambda x, a, f, n, m: m(f(n(x + a(x)))),
            "What the feed-forward network was given is not added to its result.",
        ),
        Mistake(
            "sum carried on",
            _sum_carried_on,
            "You added the sum before its norm; the second residual adds what norm_1 returned.",
        ),
        Mistake(
            "side by side", _side_by_side, "The feed-forward network read x; it reads what the first norm returned."
        ),
        Mistake("norm before sum", _norm_before_sum, "You normalised the sub-layer's output; normalise the sum."),
        Mistake("no last norm", _last_norm_missing, "The norm after the second sum is missing."),
        Mistake("no first norm", _first_norm_missing, "The norm after the first sum is missing."),
        Mistake(
            "one norm twice",
            lambda x, a, f, n, m: _post_norm(x, a, f, n, n),
            "norm_1 is used twice; the second sum has a norm of its own, norm_2.",
        ),
        Mistake(
            "swapped sub-layers",
            lambda x, a, f, n, m: _post_norm(x, f, a, n, m),
            "The feed-forward network comes first; attention must.",
        ),
        Mistake(
            "swapped norms",
            lambda x, a, f, n, m: _post_norm(x, a, f, m, n),
            "The two norms are swapped; each has a gain of its own.",
        ),
        Mistake(
            "no first residual",
            lambda x, a, f, n, m: m((y := n(a(x))) + f(y)),
            "What attention was given, x, is not added to its result.",
        ),
    ),
    gradients=("x",),
    part="encoder_layer",
)


# 10.2 The stack ------------------------------------------------------------------------------------------------------


def encoder_stack(x, layers, final_norm):
    """Return the memory: x after all layers, first to last, and after final_norm if there is one.

    x: [batch, seq_len, d_model]; layers: list of functions; final_norm: a function, or None (post-norm stacks).
    Returns [batch, seq_len, d_model].
    """
    for number in range(len(layers)):
        x = layers[number](x)
    return x if final_norm is None else final_norm(x)


def _layer(seed, d_model):
    row = _by_row(seed, d_model)
    return lambda x: x + row(x) * (1 + 0.1 * seed)


_LAYERS = {(seed, d_model): _layer(seed, d_model) for seed in range(2, 19) for d_model in (3, 5, 7)}


def _stack_case(label, seed, n_layers, final_norm, *shape):
    layers = [_LAYERS[seed + i, shape[-1]] for i in range(1, n_layers + 1)]
    return Case(label, (normal(seed, shape)[0], layers, _norm(1.3) if final_norm else None))


def _stack_cases():
    return [
        _stack_case("2 layers, no final norm", 1, 2, False, 1, 2, 3),
        _stack_case("3 layers and a final norm", 5, 3, True, 2, 5, 7),
        _stack_case("one layer", 9, 1, False, 2, 3, 5),
        _stack_case("one layer and a final norm", 11, 1, True, 3, 2, 5),
        _stack_case("5 layers", 13, 5, False, 2, 7, 3),
    ]


def _apply(x, layers):
    for layer in layers:
        x = layer(x)
    return x


def _finish(x, final_norm):
    return x if final_norm is None else final_norm(x)


def _norm_each(x, layers, final_norm):
    for layer in layers:
        x = _finish(layer(x), final_norm)
    return x


EXERCISE_2 = Exercise(
    "10.2",
    "The stack",
    6,
    1,
    encoder_stack,
    _stack_cases,
    (
        Mistake(
            "last layer only",
            lambda x, layers, n: _finish(layers[-1](x), n),
            "Only the last layer's work is in the result: each layer must get what the one before returned.",
        ),
        Mistake(
            "all from x",
            lambda x, layers, n: _finish(sum(layer(x) for layer in layers), n),
            "You gave x to every layer and added the results; each layer feeds the next.",
        ),
        Mistake(
            "first layer again",
            lambda x, layers, n: _finish(_apply(x, layers[:1] * len(layers)), n),
            "The first layer was used every time; each layer has its own weights.",
        ),
        Mistake(
            "backwards",
            lambda x, layers, n: _finish(_apply(x, layers[::-1]), n),
            "The layers ran in the opposite order.",
        ),
        Mistake("one too few", lambda x, layers, n: _finish(_apply(x, layers[:-1]), n), "The last layer was left out."),
        Mistake("no final norm", lambda x, layers, n: _apply(x, layers), "The final norm is missing."),
        Mistake("norm after each", _norm_each, "The final norm comes once, after the last layer."),
        Mistake(
            "norm first",
            lambda x, layers, n: _apply(_finish(x, n), layers),
            "The final norm came first; it closes the stack.",
        ),
        Mistake(
            "extra residual",
            lambda x, layers, n: _finish(x + _apply(x, layers), n),
            "You added x once more around the whole stack; the residual sums are inside the layers.",
        ),
    ),
    gradients=("x",),
)


# 10.3 What an encoder costs ------------------------------------------------------------------------------------------


def encoder_parameters(d_model, n_heads, d_ff, n_layers, norm_first):
    """Return the number of parameters of an encoder stack, without embeddings.

    Attention has W_Q, W_K, W_V, W_O without biases; heads have width d_model / n_heads. Feed-forward: two
    matrices, two biases. Each of a layer's two norms has a gain and a bias. A pre-norm stack (norm_first) ends
    with one more norm.
    """
    per_layer = 4 * d_model**2 + 2 * d_model * d_ff + d_ff + d_model + 4 * d_model
    return n_layers * per_layer + (2 * d_model if norm_first else 0)


def _count_cases():
    return [
        Case("d_model 4, 2 heads, d_ff 6, one layer", (4, 2, 6, 1, False)),
        Case("a pre-norm stack of 3", (15, 3, 7, 3, True)),
        Case("the base model's encoder", (512, 8, 2048, 6, False)),
        Case("one layer, pre-norm", (11, 1, 5, 1, True)),
        Case("d_ff smaller than d_model", (14, 7, 3, 5, False)),
    ]


def _count(layer, ends=lambda m: 2 * m):
    """Return a count from a formula of (d_model, n_heads, d_ff) for one layer."""

    def function(d_model, n_heads, d_ff, n_layers, norm_first):
        return n_layers * layer(d_model, n_heads, d_ff) + (ends(d_model) if norm_first else 0)

    return function


def _right(m, h, f):
    return encoder_parameters(m, h, f, 1, False)


EXERCISE_3 = Exercise(
    "10.3",
    "What an encoder costs",
    10,
    2,
    encoder_parameters,
    _count_cases,
    (
        Mistake(
            "times heads",
            _count(lambda m, h, f: _right(m, h, f) + 4 * m * m * (h - 1)),
            "You counted the four matrices once per head; the heads share their columns, so d_model² each "
            "(notebook 08).",
        ),
        Mistake(
            "one head's width",
            _count(lambda m, h, f: _right(m, h, f) - 4 * m * m + 4 * m * (m // h)),
            "You counted one head's columns only; there are n_heads of that width.",
        ),
        Mistake(
            "three matrices",
            _count(lambda m, h, f: _right(m, h, f) - m * m),
            "Attention has four matrices; W_O is missing.",
        ),
        Mistake(
            "attention biases",
            _count(lambda m, h, f: _right(m, h, f) + 4 * m),
            "You gave the attention biases; here it has none.",
        ),
        Mistake(
            "no feed-forward biases",
            _count(lambda m, h, f: _right(m, h, f) - f - m),
            "The feed-forward network's two biases are missing: d_ff and d_model numbers.",
        ),
        Mistake(
            "one matrix",
            _count(lambda m, h, f: _right(m, h, f) - m * f),
            "The feed-forward network has two matrices, d_model × d_ff and d_ff × d_model.",
        ),
        Mistake(
            "one norm",
            _count(lambda m, h, f: _right(m, h, f) - 2 * m),
            "Each layer has two norms, one for each sub-layer.",
        ),
        Mistake(
            "gains only",
            _count(lambda m, h, f: _right(m, h, f) - 2 * m, lambda m: m),
            "A norm has a gain and a bias, d_model numbers each.",
        ),
        Mistake(
            "shared",
            lambda m, h, f, n, first: encoder_parameters(m, h, f, 1, first),
            "You counted one layer; every layer has weights of its own.",
        ),
        Mistake(
            "no final norm",
            lambda m, h, f, n, first: encoder_parameters(m, h, f, n, False),
            "With norm_first the stack ends with one more norm.",
        ),
        Mistake(
            "always a final norm",
            lambda m, h, f, n, first: encoder_parameters(m, h, f, n, True),
            "Only a pre-norm stack has a final norm.",
        ),
    ),
)


# 10.4 Who reads whom? ------------------------------------------------------------------------------------------------


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


def _encode(kind, seed, d_model):
    """Return a map on [seq_len, d_model] whose rows read all rows, only themselves, earlier ones, or the next one."""
    matrix = normal(seed, (d_model, d_model))[0]

    def encode(x):
        n = len(x)
        seen = {
            "all": torch.ones(n, n),
            "self": torch.eye(n),
            "past": torch.ones(n, n).tril(),
            "next": torch.eye(n) + torch.eye(n).roll(1, dims=1).triu(),
        }[kind]
        return torch.tanh(seen.to(x) @ x @ matrix.to(x) / n)

    return encode


def _unchanged(x):
    return x.clone()


def _only_feature(place):
    """Return an encoder in which a change shows in one feature alone."""
    return lambda x: torch.eye(x.shape[1])[place].to(x) * x.cumsum(dim=0).sum(dim=1, keepdim=True)


def _first_row_fixed(x):
    """Encode so that the first row reads nobody, and is read by all others."""
    return torch.cat([torch.ones_like(x[:1]), x.cumsum(dim=0)[1:]])


def _opposite_features(x):
    """Return an encoder in which two features move by opposite amounts, so that their sum stays."""
    moved = x.cumsum(dim=0).sum(dim=1, keepdim=True)
    return torch.cat([moved, -moved], dim=1)


def _faint(size):
    """Return an encoder in which every row moves by `size` times the change of any row."""
    return lambda x: (x * size).sum(dim=0, keepdim=True).expand(len(x), -1)


def _above_zero(x):
    return torch.relu(x)


def _influence_cases():
    def case(label, kind, seed, seq_len, d_model):
        x, amount = normal(seed, (seq_len, d_model), (d_model,))
        return Case(label, (_encode(kind, seed, d_model), x, amount))

    small = normal(145, (3, 2), (2,))
    return [
        case("2 tokens, each reads itself and the past", "past", 140, 2, 3),
        case("5 tokens, all read all", "all", 141, 5, 2),
        case("3 tokens, each alone", "self", 142, 3, 5),
        case("7 tokens, each reads itself and the next", "next", 143, 7, 3),
        case("one token", "all", 144, 1, 2),
        Case("3 tokens, an encoder that changes nothing", (_unchanged, *small)),
        Case("a change shows in the first feature only", (_only_feature(0), *small)),
        Case("a change shows in the last feature only", (_only_feature(-1), *small)),
        Case("two features move by opposite amounts", (_opposite_features, *small)),
        Case("the first row reads nobody", (_first_row_fixed, *small)),
        Case("moves of a ten-millionth do not count", (_faint(1e-7), *normal(146, (3, 5)), torch.ones(5))),
        Case("moves of a hundred-thousandth count", (_faint(1e-5), *normal(147, (3, 2)), torch.ones(2))),
        Case("nothing is added", (_encode("all", 148, 3), *normal(148, (2, 3)), torch.zeros(3))),
        Case("numbers above zero alone are read", (_above_zero, torch.full((2, 3), -1.0), torch.full((3,), 1.5))),
        Case("a start at zero", (_above_zero, torch.zeros(3, 2), torch.full((2,), 0.5))),
        Case("signs alone are read", (torch.sign, torch.ones(2, 3), torch.full((3,), -3.0))),
    ]


def _perturb(encode, x, amount, spread):
    before = encode(x)
    return [encode(x + spread(j, x)[:, None] * amount) - before for j in range(len(x))]


def _one(j, x):
    return (torch.arange(len(x)) == j).to(x)


def _grid(encode, x, amount, spread=_one, reduce=torch.any):
    return torch.stack([reduce(d.abs() > 1e-6, dim=1) for d in _perturb(encode, x, amount, spread)], dim=1)


def _judged(moved):
    """Return the right grid, but for what is asked of each output's change."""
    return lambda e, x, a: torch.stack([moved(d) for d in _perturb(e, x, a, _one)], dim=1)


def _compared_with_x(encode, x, amount):
    changed = [encode(x + _one(j, x)[:, None] * amount) for j in range(len(x))]
    return torch.stack([((y - x).abs() > 1e-6).any(dim=1) for y in changed], dim=1)


def _moved_by(encode, x, change):
    """Return the grid when each row in turn is replaced by `change(row)`."""
    before, columns = encode(x), []
    for j in range(len(x)):
        other = torch.cat([x[:j], change(x[j])[None], x[j + 1 :]])
        columns.append(((encode(other) - before).abs() > 1e-6).any(dim=1))
    return torch.stack(columns, dim=1)


def _kept_changes(encode, x, amount):
    return _grid(encode, x, amount, lambda j, x: (torch.arange(len(x)) <= j).to(x))


EXERCISE_4 = Exercise(
    "10.4",
    "Who reads whom?",
    12,
    3,
    influence,
    _influence_cases,
    (
        Mistake(
            "transposed",
            lambda e, x, a: _grid(e, x, a).T,
            "Your grid is transposed: row i is the output, column j the input that was changed.",
        ),
        Mistake(
            "keeps changes",
            _kept_changes,
            "Earlier changes stay in x while you make the next: begin each time from the given x.",
        ),
        Mistake(
            "all rows",
            lambda e, x, a: _grid(e, x, a, lambda j, x: torch.ones(len(x)).to(x)),
            "You changed every row at once; change one row j at a time.",
        ),
        Mistake(
            "any row",
            _judged(lambda d: (d.abs() > 1e-6).any().expand(len(d))),
            "You asked whether any row has moved; ask it for every row on its own, .any(dim=1).",
        ),
        Mistake(
            "diagonal",
            lambda e, x, a: _grid(e, x, a) & torch.eye(len(x), dtype=torch.bool),
            "Only the changed row itself is looked at; ask every output row.",
        ),
        Mistake(
            "not the diagonal",
            lambda e, x, a: _grid(e, x, a) & ~torch.eye(len(x), dtype=torch.bool),
            "A row may influence its own output too; the diagonal counts.",
        ),
        Mistake("unchanged", lambda e, x, a: ~_grid(e, x, a), "True must mean that the output changed."),
        Mistake(
            "compared with x",
            _compared_with_x,
            "You compared with x itself; compare with encode(x), the result before the change.",
        ),
        Mistake(
            "no abs",
            _judged(lambda d: (d > 1e-6).any(dim=1)),
            "A number may also move downwards: take the absolute value before you compare with 1e-6.",
        ),
        Mistake(
            "sum",
            _judged(lambda d: d.sum(dim=1).abs() > 1e-6),
            "Changes of different features can cancel in a sum; ask whether any feature has moved.",
        ),
        Mistake(
            "first feature",
            _judged(lambda d: d[:, 0].abs() > 1e-6),
            "You looked at the first feature alone; ask whether any feature of the row has moved.",
        ),
        Mistake(
            "last feature",
            _judged(lambda d: d[:, -1].abs() > 1e-6),
            "You looked at the last feature alone; ask whether any feature of the row has moved.",
        ),
        Mistake(
            "every feature",
            _judged(lambda d: (d.abs() > 1e-6).all(dim=1)),
            "You asked for every feature of the row to move; one is enough.",
        ),
        Mistake(
            "by feature",
            _judged(lambda d: d.abs() > 1e-6),
            "There is a value per feature; ask whether any feature of the row has moved.",
        ),
        Mistake(
            "how much",
            _judged(lambda d: d.abs().amax(dim=1)),
            "Those are the sizes of the changes; asked for is whether they exceed 1e-6.",
        ),
        Mistake(
            "any difference",
            _judged(lambda d: (d != 0).any(dim=1)),
            "You count every difference; moves of 1e-6 and less do not count.",
        ),
        Mistake(
            "coarse",
            _judged(lambda d: (d.abs() > 1e-2).any(dim=1)),
            "Your tolerance is too large: a move counts from 1e-6 on.",
        ),
        Mistake(
            "put in place",
            lambda e, x, a: _moved_by(e, x, lambda row: a),
            "You put amount in the place of the row; add it to the row.",
        ),
        Mistake(
            "plus one",
            lambda e, x, a: _moved_by(e, x, lambda row: row + 1),
            "You added a number of your own; add the amount that is given.",
        ),
        Mistake(
            "times two",
            lambda e, x, a: _moved_by(e, x, lambda row: 2 * row),
            "You multiplied the row; add amount to it.",
        ),
        Mistake(
            "subtracted",
            lambda e, x, a: _moved_by(e, x, lambda row: row - a),
            "You subtracted amount; add it.",
        ),
        Mistake(
            "set to zero",
            lambda e, x, a: _moved_by(e, x, torch.zeros_like),
            "You set the row to zero; add amount to it.",
        ),
    ),
)


# 10.5 A mean without padding -----------------------------------------------------------------------------------------


def real_token_mean(memory, mask):
    """Return one vector per sentence: the mean of the memory's vectors over the real tokens only.

    memory: [batch, src_len, d_model]; mask: boolean [batch, 1, 1, src_len] as of tl.padding_mask, True = a real token;
    each sentence has at least one. Returns [batch, d_model].
    """
    rows = [vectors[real].sum(dim=0) / int(real.sum()) for vectors, real in zip(memory, mask[:, 0, 0], strict=True)]
    return torch.stack(rows)


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


def _mean_with(weights):
    def function(memory, mask):
        kept = mask[:, 0, 0, :, None].to(memory)
        return weights(memory, kept)

    return function


EXERCISE_5 = Exercise(
    "10.5",
    "A mean without padding",
    8,
    1,
    real_token_mean,
    _mean_cases,
    (
        Mistake(
            "all positions",
            _mean_with(lambda m, k: m.mean(dim=1)),
            "The padding's vectors are in your mean: they depend on the batch that the sentence sits in.",
        ),
        Mistake(
            "divided by src_len",
            _mean_with(lambda m, k: (m * k).mean(dim=1)),
            "The sum is right; divide it by the number of real tokens, not by src_len.",
        ),
        Mistake(
            "inverted",
            _mean_with(lambda m, k: (m * (1 - k)).sum(1) / (1 - k).sum(1).clamp(min=1)),
            "You averaged the padding: True marks the real tokens.",
        ),
        Mistake("sum", _mean_with(lambda m, k: (m * k).sum(dim=1)), "That is the sum; divide it by the count."),
        Mistake(
            "whole batch",
            _mean_with(lambda m, k: (m * k).sum(1) / k.sum() * len(m)),
            "You divided every sentence by the mean length of the batch; each has its own count.",
        ),
        Mistake("first token", _mean_with(lambda m, k: m[:, 0]), "That is the first position's vector, not a mean."),
        Mistake(
            "over features",
            _mean_with(lambda m, k: m.mean(dim=2)),
            "You averaged over the features; the tokens are axis 1.",
        ),
    ),
    gradients=("memory",),
)


# 10.6 Read one word's vector -----------------------------------------------------------------------------------------


def sense_scores(memory, places, W, b):
    """Return the scores of all senses for one word per sentence, read from that word's own vector.

    memory: [batch, src_len, d_model]; places: [batch] integers, where the word stands; W: [d_model, n_senses];
    b: [n_senses]. Returns [batch, n_senses].
    """
    scores = [vectors[place] @ W + b for vectors, place in zip(memory, places.tolist(), strict=True)]
    return torch.stack(scores)


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


EXERCISE_6 = Exercise(
    "10.6",
    "Read one word's vector",
    8,
    2,
    sense_scores,
    _score_cases,
    (
        Mistake(
            "first place",
            lambda m, p, W, b: m[:, 0] @ W + b,
            "You read the first position of every sentence; places says where the word stands.",
        ),
        Mistake(
            "last place",
            lambda m, p, W, b: m[:, -1] @ W + b,
            "You read the last position of every sentence; places says where the word stands.",
        ),
        Mistake(
            "mean",
            lambda m, p, W, b: m.mean(dim=1) @ W + b,
            "You averaged the sentence; the word's own vector is asked for.",
        ),
        Mistake(
            "one place for all",
            lambda m, p, W, b: m[:, p[0]] @ W + b,
            "You read the first sentence's place in every sentence.",
        ),
        Mistake(
            "cross product",
            lambda m, p, W, b: m[:, p] @ W + b,
            "memory[:, places] takes every place in every sentence; pair each sentence with its own place: "
            "memory[torch.arange(batch), places].",
        ),
        Mistake("one sentence", lambda m, p, W, b: m[0, p] @ W + b, "You read all places in the first sentence."),
        Mistake("no bias", lambda m, p, W, b: m[torch.arange(len(m)), p] @ W, "The bias b is missing."),
        Mistake(
            "softmax",
            lambda m, p, W, b: (m[torch.arange(len(m)), p] @ W + b).softmax(-1),
            "Those are probabilities; the scores before the softmax are asked for.",
        ),
        Mistake("all scores", lambda m, p, W, b: m @ W + b, "You scored every position; read one per sentence."),
    ),
    gradients=("memory", "W", "b"),
)

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5, EXERCISE_6)
