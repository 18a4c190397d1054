"""The exercises of notebook 10: the encoder."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, normal

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

    def feed_forward(x):
        return torch.relu(x @ matrix.to(x)) + 0.5

    return feed_forward


def _norm(gain):
    """Return a layer norm with a gain, so that the two norms can be told apart."""

    def norm(x):
        return gain * torch.layer_norm(x, x.shape[-1:]) + 0.1

    return norm


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
    5,
    1,
    encoder_layer,
    _layer_cases,
    (
        Mistake(
            "pre-norm",
            _pre_norm,
            "That is the pre-norm layer: the norm stands before the sub-layer. Here it follows the sum.",
        ),
        Mistake(
            "no norms",
            lambda x, a, f, n, m: (y := x + a(x)) + f(y),
            "The norms are missing: norm_1 takes the first sum, norm_2 the second.",
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
            "half a layer",
            lambda x, a, f, n, m: n(x + a(x)),
            "That is the first sub-layer; the feed-forward network follows, with a sum and a norm of its own.",
        ),
        Mistake(
            "before its norm",
            lambda x, a, f, n, m: m(n(x + a(x)) + f(x + a(x))),
            "The feed-forward network read the first sum before its norm; it reads what norm_1 returned.",
        ),
        Mistake(
            "adds the attention",
            lambda x, a, f, n, m: m(a(x) + f(n(x + a(x)))),
            "The second sum adds what attention returned; it must add what the feed-forward network was given.",
        ),
        Mistake(
            "second norm before sum",
            lambda x, a, f, n, m: (y := n(x + a(x))) + m(f(y)),
            "You normalised what the feed-forward network returned; norm_2 normalises the second sum.",
        ),
        Mistake(
            "first norm before sum",
            lambda x, a, f, n, m: m((y := x + n(a(x))) + f(y)),
            "You normalised what attention returned; norm_1 normalises the first sum.",
        ),
        Mistake(
            "x once more",
            lambda x, a, f, n, m: m(x + (y := n(x + a(x))) + f(y)),
            "x is added a second time; the second sum has two terms.",
        ),
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


# 10.2 Who reads whom? ------------------------------------------------------------------------------------------------


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


def _faint_in_one_feature(size):
    """Return an encoder as `_faint`, in which the first feature alone moves."""
    return lambda x: _faint(size)(x) * torch.eye(x.shape[1])[0].to(x)


def _last_feature_read(x):
    """Encode so that every row is moved by the last feature of any row, and by nothing else."""
    return x[:, -1:].sum(dim=0).expand(x.shape)


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
        Case("moves of a billionth do not count", (_faint(1e-9), *normal(149, (3, 2)), torch.ones(2))),
        Case(
            "a move of a hundred-thousandth in one feature of 20 counts",
            (_faint_in_one_feature(1e-5), *normal(151, (2, 20)), torch.ones(20)),
        ),
        Case(
            "amount is 0 in the first feature, the last alone is read",
            (_last_feature_read, *normal(152, (2, 2)), torch.tensor([0.0, 1.0])),
        ),
        Case("nothing is added", (_encode("all", 148, 3), *normal(148, (2, 3)), torch.zeros(3))),
        Case("numbers above zero alone are read", (_above_zero, torch.full((2, 3), -1.0), torch.full((3,), 1.5))),
        Case(
            "a start at zero, an encoder that changes nothing", (_unchanged, torch.zeros(3, 2), torch.full((2,), 0.5))
        ),
        Case(
            "a start at zero, numbers above zero alone are read",
            (_above_zero, torch.zeros(3, 2), torch.full((2,), 0.5)),
        ),
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


def _compared_with_the_last(encode, x, amount):
    before, columns = encode(x), []
    for j in range(len(x)):
        now = encode(x + _one(j, x)[:, None] * amount)
        columns.append(((now - before).abs() > 1e-6).any(dim=1))
        before = now
    return torch.stack(columns, dim=1)


def _moved_by(encode, x, change):
    """Return the grid when each row in turn is replaced by `change(row)`."""
    before, columns = encode(x), []
    for j in range(len(x)):
        other = torch.cat([x[:j], change(x[j])[None], x[j + 1 :]])
        columns.append(((encode(other) - before).abs() > 1e-6).any(dim=1))
    return torch.stack(columns, dim=1)


def _slopes(encode, x, amount):
    """Return the grid of what has a slope, by autograd, in place of what moves."""
    slopes = torch.autograd.functional.jacobian(encode, x)  # [output, feature, input, feature]
    return (slopes.abs() > 1e-6).any(dim=3).any(dim=1)


def _kept_changes(encode, x, amount):
    return _grid(encode, x, amount, lambda j, x: (torch.arange(len(x)) <= j).to(x))


EXERCISE_2 = Exercise(
    "10.2",
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
        Mistake(
            "always the diagonal",
            lambda e, x, a: _grid(e, x, a) | torch.eye(len(x), dtype=torch.bool),
            "A row need not have an influence on its own output; measure the diagonal as well.",
        ),
        Mistake(
            "compared with the last change",
            _compared_with_the_last,
            "You compared with the result of the change before; compare with encode(x), the unchanged x, each time.",
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
            "mean",
            _judged(lambda d: d.abs().mean(dim=1) > 1e-6),
            "You took the mean over the features; one number that moves by more than 1e-6 is enough.",
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
            "first number of amount",
            lambda e, x, a: _moved_by(e, x, lambda row: row + a[0]),
            "You added the first number of amount alone; the whole of amount is added to the row, feature by feature.",
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
        Mistake("slopes", _slopes, "Those are slopes at x; add amount, which may be large, and compare the results."),
        Mistake(
            "set to zero",
            lambda e, x, a: _moved_by(e, x, torch.zeros_like),
            "You set the row to zero; add amount to it.",
        ),
    ),
)


# 10.3 Reach ----------------------------------------------------------------------------------------------------------


def reach(mask, n_layers):
    """Return who can have an influence on whom after n_layers layers: boolean [seq_len, seq_len], [output, input].

    mask: boolean [seq_len, seq_len], mask[i, j] True = token i may attend to token j, in every layer; n_layers: at
    least 0. A token always keeps its own information, by the residual connection.
    """
    known = torch.eye(len(mask), dtype=torch.bool)
    for _ in range(n_layers):
        # what the tokens that i reads knew before, and what i itself knew
        gathered = (mask[:, :, None] & known[None, :, :]).any(dim=1)
        known = known | gathered
    return known


def _chain(seq_len):
    """Return the mask in which each token reads only the next one, and not itself."""
    return torch.ones(seq_len, seq_len).triu(1).tril(1).bool()


def _some(seed, seq_len, threshold=1.0):
    """Return a mask in which about a sixth of the entries are True, the diagonal not spared."""
    return normal(seed, (seq_len, seq_len))[0] > threshold


def _reach_cases():
    chain = _chain(5)
    return [
        Case("2 tokens, the first reads the second", (_chain(2), 1)),
        Case("a chain of 5, 2 layers", (chain, 2)),
        Case("a chain of 5, 3 layers", (chain, 3)),
        Case("a chain of 7, 2 layers", (_chain(7), 2)),
        Case("no layer at all", (torch.ones(3, 3, dtype=torch.bool), 0)),
        Case("one token that may not attend to itself", (torch.zeros(1, 1, dtype=torch.bool), 2)),
        Case("each token reads its neighbours", (chain | chain.T, 2)),
        Case("a causal mask", (torch.ones(7, 7).tril().bool(), 3)),
        Case("11 tokens, a random mask, 2 layers", (_some(150, 11), 2)),
        Case("13 tokens, a random mask, 3 layers", (_some(151, 13, 1.2), 3)),
        Case("everybody reads everybody, 80 layers", (torch.ones(2, 2, dtype=torch.bool), 80)),
    ]


def _steps(mask, n_layers, own=True, at_start=True):
    """Return the reach by a loop; `own`: a layer keeps what a token knew; `at_start`: it begins with itself."""
    eye = torch.eye(len(mask), dtype=torch.bool)
    step = (mask | eye if own else mask).double()
    known = (eye if at_start else mask).double()
    for _ in range(n_layers):
        known = ((step @ known) > 0).double()
    return known.bool()


def _squared(mask, n_layers):
    known = mask | torch.eye(len(mask), dtype=torch.bool)
    for _ in range(n_layers):
        known = (known.double() @ known.double()) > 0
    return known


def _in_place(mask, n_layers):
    known = torch.eye(len(mask), dtype=torch.bool)
    for _ in range(n_layers):
        for i in range(len(mask)):
            for j in range(len(mask)):
                if mask[i, j]:
                    known[i] |= known[j]
    return known


def _diagonal_at_the_end(mask, n_layers):
    return _steps(mask, n_layers, own=False) | torch.eye(len(mask), dtype=torch.bool)


def _counted(mask, n_layers):
    """Return the numbers of paths."""
    return torch.linalg.matrix_power((mask | torch.eye(len(mask), dtype=torch.bool)).double(), n_layers)


def _overflowing(mask, n_layers):
    step = (mask | torch.eye(len(mask), dtype=torch.bool)).long()
    known = torch.eye(len(mask), dtype=torch.long)
    for _ in range(n_layers):
        known = step @ known
    return known > 0


EXERCISE_3 = Exercise(
    "10.3",
    "Reach",
    10,
    2,
    reach,
    _reach_cases,
    (
        Mistake(
            "not itself",
            lambda m, n: _steps(m, n, own=False),
            "You follow paths of exactly n_layers steps; a residual connection lets information also stay where it is.",
        ),
        Mistake(
            "without the diagonal",
            lambda m, n: _steps(m, n) & ~torch.eye(len(m), dtype=torch.bool),
            "A token keeps its own information, whatever the mask says: the diagonal is True.",
        ),
        Mistake(
            "transposed",
            lambda m, n: _steps(m, n).T,
            "Your grid is transposed: the row is the token that reads, the column the one that is read.",
        ),
        Mistake(
            "one layer", lambda m, n: _steps(m, min(n, 1)), "That is the reach of one layer, however many there are."
        ),
        Mistake(
            "the mask", lambda m, n: m, "That is the mask itself; n_layers and the residual connection are not used."
        ),
        Mistake(
            "one layer too many",
            lambda m, n: _steps(m, n + 1),
            "One layer too many: with no layer at all, each token knows itself alone.",
        ),
        Mistake(
            "one layer too few",
            lambda m, n: _steps(m, max(n - 1, 0)),
            "One layer too few: each of the n_layers layers takes one step.",
        ),
        Mistake(
            "starts from the mask",
            lambda m, n: _steps(m, n, at_start=False),
            "You began with the mask and then took n_layers steps more; begin with each token knowing itself.",
        ),
        Mistake(
            "at least one layer",
            lambda m, n: _steps(m, max(n, 1)),
            "With no layer at all nobody has read anything: each token knows itself alone. Begin there.",
        ),
        Mistake(
            "diagonal at the end",
            _diagonal_at_the_end,
            "You followed paths of exactly n_layers steps, and added the diagonal at the end; information can stay "
            "where it is in every layer.",
        ),
        Mistake(
            "in place",
            _in_place,
            "Within a layer you use rows that the same layer has changed; all tokens read what was known before it.",
        ),
        Mistake(
            "squared",
            _squared,
            "You square the grid each time, which doubles the steps; each layer adds a single step.",
        ),
        Mistake(
            "all the way",
            lambda m, n: _steps(m, len(m)),
            "You followed the paths to their end; n_layers layers take n_layers steps.",
        ),
        Mistake(
            "both ways",
            lambda m, n: _steps(m | m.T, n),
            "You let tokens be read back: mask[i, j] does not say that j may read i.",
        ),
        Mistake("paths", _counted, "Those are numbers of paths; asked for is whether there is any."),
        Mistake(
            "overflow",
            _overflowing,
            "The numbers of paths have outgrown the integers; ask after every layer whether there is any path.",
        ),
        Mistake(
            "one path only",
            lambda m, n: _counted(m, n) == 1,
            "You ask for exactly one path; several will do as well.",
        ),
        Mistake("unreached", lambda m, n: ~_steps(m, n), "True must mean that the input can have an influence."),
    ),
)


# 10.4 The mean of the others -----------------------------------------------------------------------------------------


def mean_of_others(x, mask, places):
    """Return one vector per sentence: the mean of its vectors over the real tokens but one.

    x: [batch, src_len, d_model]; mask: boolean [batch, 1, 1, src_len] as of tl.padding_mask, True = a real token;
    places: [batch] integers from 0, the token to leave out, which is a real one. Each sentence has at least two real
    tokens. Returns [batch, d_model].
    """
    rows = []
    for vectors, real, place in zip(x, mask[:, 0, 0], places.tolist(), strict=True):
        kept = [vector for i, vector in enumerate(vectors) if real[i] and i != place]
        rows.append(torch.stack(kept).sum(dim=0) / len(kept))
    return torch.stack(rows)


def _mask(lengths, src_len):
    return (torch.arange(src_len) < torch.tensor(lengths)[:, None])[:, None, None]


def _mean_cases():
    small = torch.tensor([[[1.0, 2.0], [5.0, 7.0], [4.0, 4.0]]])
    return [
        Case("2 real tokens and 1 of padding", (small, _mask([2], 3), torch.tensor([0]))),
        Case(
            "sentences of 2, 5 and 3 tokens", (normal(160, (3, 5, 7))[0], _mask([2, 5, 3], 5), torch.tensor([1, 3, 0]))
        ),
        Case("no padding", (normal(161, (2, 3, 5))[0], _mask([3, 3], 3), torch.tensor([2, 0]))),
        Case("much padding", (normal(162, (2, 11, 3))[0] + 1, _mask([3, 2], 11), torch.tensor([2, 0]))),
        Case("padding in front", (normal(163, (2, 7, 2))[0], _mask([2, 5], 7).flip(-1), torch.tensor([6, 3]))),
    ]


def _without(weigh, count=lambda kept, real: kept.sum(dim=1)):
    """Return a mean with other weights, weigh(kept, real), and another count; both are [batch, src_len, 1]."""

    def function(x, mask, places):
        real = mask[:, 0, 0, :, None].to(x)
        kept = real.clone()
        kept[torch.arange(len(x)), places] = 0
        return (x * weigh(kept, real)).sum(dim=1) / count(kept, real)

    return function


def _kept(kept, real):
    return kept


def _struck_from_all(x, mask, places):
    kept = mask[:, 0, 0, :, None].to(x)
    kept[:, places] = 0
    return (x * kept).sum(dim=1) / kept.sum(dim=1).clamp(min=1)


def _counted_from_one(x, mask, places):
    kept = mask[:, 0, 0] & (torch.arange(x.shape[1]) != places[:, None] - 1)
    return (x * kept[..., None]).sum(dim=1) / kept.sum(dim=1, keepdim=True)


def _moved_place(shift):
    def function(x, mask, places):
        return _without(_kept)(x, mask, (places + shift) % x.shape[1])

    return function


EXERCISE_4 = Exercise(
    "10.4",
    "The mean of the others",
    8,
    2,
    mean_of_others,
    _mean_cases,
    (
        Mistake(
            "with the token",
            _without(lambda kept, real: real, lambda kept, real: real.sum(dim=1)),
            "The token at places is still in your mean.",
        ),
        Mistake(
            "with the padding",
            _without(lambda kept, real: kept + 1 - real, lambda kept, real: (kept + 1 - real).sum(dim=1)),
            "The padding's vectors are in your mean; mask is True at the real tokens.",
        ),
        Mistake(
            "divided by src_len",
            _without(_kept, lambda kept, real: real.shape[1]),
            "You divided by src_len; divide by the number of tokens that you kept.",
        ),
        Mistake(
            "divided by all real tokens",
            _without(_kept, lambda kept, real: real.sum(dim=1)),
            "You divided by the number of real tokens; one of them was left out.",
        ),
        Mistake(
            "divided by all but one",
            _without(_kept, lambda kept, real: real.shape[1] - 1),
            "You divided by src_len − 1; sentences have padding, so count the tokens that you kept.",
        ),
        Mistake(
            "whole batch",
            _without(_kept, lambda kept, real: kept.sum() / len(kept)),
            "You divided every sentence by the mean count of the batch; each has its own.",
        ),
        Mistake("no division", _without(_kept, lambda kept, real: 1), "That is the sum; divide it by the count."),
        Mistake(
            "inverted",
            _without(lambda kept, real: 1 - real, lambda kept, real: (1 - real).sum(dim=1).clamp(min=1)),
            "You averaged the padding: True marks the real tokens.",
        ),
        Mistake(
            "the token itself",
            _without(lambda kept, real: real - kept, lambda kept, real: 1),
            "That is the vector of the token to leave out; asked for is the mean of the others.",
        ),
        Mistake(
            "struck from all",
            _struck_from_all,
            "kept[:, places] strikes out the places of all sentences in every sentence; index the batch as well.",
        ),
        Mistake(
            "one place for all",
            lambda x, m, p: _without(_kept)(x, m, p[:1].expand(len(p))),
            "You left out the first sentence's place in every sentence.",
        ),
        Mistake(
            "plain mean",
            lambda x, m, p: x.mean(dim=1),
            "That is the mean of all rows, with the padding and the token at places.",
        ),
        Mistake(
            "padding in the sum",
            _without(lambda kept, real: kept + 1 - real),
            "The padding's vectors are in your sum; the count is right.",
        ),
        Mistake(
            "subtracted from the mean",
            lambda x, m, p: _without(lambda k, r: r, lambda k, r: r.sum(dim=1))(x, m, p) - x[torch.arange(len(x)), p],
            "You subtracted the token's vector from the mean; take it out of the sum, and divide by one less.",
        ),
        Mistake(
            "counted from 1, nothing for 0",
            _counted_from_one,
            "You left out the token before, or none where the place is 0: places count from 0.",
        ),
        Mistake("counted from 1", _moved_place(-1), "You left out the token before: places count from 0."),
        Mistake("the token after", _moved_place(1), "You left out the token after the one at places."),
        Mistake(
            "zeros count",
            lambda x, m, p: _without(_kept)(x, m, p) * 0 + _without(_kept)(x, m, p).mean(dim=1, keepdim=True),
            "You averaged over the features as well; the tokens are axis 1.",
        ),
    ),
    gradients=("x",),
)

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4)
