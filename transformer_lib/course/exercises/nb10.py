"""The exercises of notebook 10: the encoder."""

from __future__ import annotations

import torch

from .model import Case, Exercise, normal
from .slips import slips

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


EXERCISE_1 = Exercise(
    "10.1", "One encoder layer", 5, 1, encoder_layer, _layer_cases,
    slips(
        "x, attention, feed_forward, norm_1, norm_2", """
            for sublayer, norm in ((attention, norm_1), (feed_forward, norm_2)):
                x = norm(x + sublayer(x))
            return x
        """,
        ("pre-norm", "norm(x + sublayer(x))", "x + sublayer(norm(x))",
         "That is the pre-norm layer: the norm comes before the sub-layer. Here it follows the sum."),
        ("no residuals", "x + sublayer(x)", "sublayer(x)",
         "The residual sums are missing: each sub-layer's input is added."),
        ("norm before sum", "norm(x + sublayer(x))", "x + norm(sublayer(x))",
         "You normalised the sub-layer's output; normalise the sum."),
        ("one norm twice", "norm_2", "norm_1", "norm_1 is used twice; the second sum has a norm of its own, norm_2."),
    )
    + slips(
        "x, attention, feed_forward, norm_1, norm_2", """
            summed = x + attention(x)
            middle = norm_1(summed)
            return norm_2(middle + feed_forward(middle))
        """,
        ("from x", "middle + ", "x + ",
         "The second sum adds x; it must add the feed-forward network's input, the first norm's output."),
        ("no second residual", "middle + ", "", "The feed-forward network's input is not added to its result."),
        ("side by side", "feed_forward(middle)", "feed_forward(x)",
         "The feed-forward network read x; it reads what the first norm returned."),
        ("no last norm", "norm_2(middle + feed_forward(middle))", "middle + feed_forward(middle)",
         "The norm after the second sum is missing."),
        ("half a layer", "norm_2(middle + feed_forward(middle))", "middle",
         "That is the first sub-layer; the feed-forward network follows, with a sum and a norm of its own."),
    ),
    gradients=("x",), part="encoder_layer",
)  # fmt: skip


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


def _only_feature(place):
    """Return an encoder in which a change shows in one feature alone."""
    return lambda x: torch.eye(x.shape[1])[place].to(x) * x.cumsum(dim=0).sum(dim=1, keepdim=True)


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
        Case("a change shows in the first feature only", (_only_feature(0), *small)),
        Case("a change shows in the last feature only", (_only_feature(-1), *small)),
        Case("two features move by opposite amounts", (_opposite_features, *small)),
        Case("moves of a ten-millionth do not count", (_faint(1e-7), *normal(146, (3, 5)), torch.ones(5))),
        Case("moves of a hundred-thousandth count", (_faint(1e-5), *normal(147, (3, 2)), torch.ones(2))),
        Case(
            "a move of a hundred-thousandth in one feature of 20 counts",
            (_faint_in_one_feature(1e-5), *normal(151, (2, 20)), torch.ones(20)),
        ),
        Case(
            "amount is 0 in the first feature, the last alone is read",
            (_last_feature_read, *normal(152, (2, 2)), torch.tensor([0.0, 1.0])),
        ),
        Case("numbers above zero alone are read", (torch.relu, torch.full((2, 3), -1.0), torch.full((3,), 1.5))),
        Case("signs alone are read", (torch.sign, torch.ones(2, 3), torch.full((3,), -3.0))),
    ]


EXERCISE_2 = Exercise(
    "10.2", "Who reads whom?", 12, 3, influence, _influence_cases,
    slips(
        "encode, x, amount", """
            before = encode(x)
            columns = []
            for j in range(len(x)):
                changed = x.clone()
                changed[j] += amount
                difference = (encode(changed) - before).abs()
                columns.append((difference > 1e-6).any(dim=1))
            return torch.stack(columns, dim=1)
        """,
        ("transposed", "columns, dim=1", "columns, dim=0",
         "Your grid is transposed: row i is the output, column j the input that was changed."),
        ("keeps changes", "x.clone()", "x",
         "Earlier changes stay in x while you make the next: start from the given x each time."),
        ("compared with x", "before = encode(x)", "before = x",
         "You compared with x itself; compare with encode(x), the result before the change."),
        ("no abs", ".abs()", "",
         "A number may also move downwards: take the absolute value before you compare with 1e-6."),
        ("sum", "(difference > 1e-6).any(dim=1)", "(encode(changed) - before).sum(dim=1).abs() > 1e-6",
         "Changes of different features can cancel in a sum; ask whether any feature has moved."),
        ("signed sum", "(difference > 1e-6).any(dim=1)", "(encode(changed) - before).sum(dim=1) > 1e-6",
         "You added up the changes with their signs: they can cancel, or sum to less than 0. Ask whether any feature "
         "has moved, up or down."),
        ("every feature", ".any(dim=1)", ".all(dim=1)",
         "You asked for every feature of the row to move; one is enough."),
        ("any difference", " > 1e-6", " != 0", "You count every difference; moves of 1e-6 and less do not count."),
        ("put in place", "+= amount", "= amount", "You replaced the row by amount; add it to the row."),
    ),
)  # fmt: skip


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


EXERCISE_3 = Exercise(
    "10.3", "Reach", 10, 2, reach, _reach_cases,
    slips(
        "mask, n_layers", """
            eye = torch.eye(len(mask), dtype=torch.bool)
            step = mask | eye
            known = eye
            for _ in range(n_layers):
                known = (step.double() @ known.double()) > 0
            return known
        """,
        ("not itself", "mask | eye", "mask",
         "You follow paths of exactly n_layers steps; a residual connection lets information also stay where it is."),
        ("transposed", "return known", "return known.T",
         "Your grid is transposed: the row is the token that reads, the column the one that is read."),
        ("one layer too many", "range(n_layers)", "range(n_layers + 1)",
         "One layer too many: with no layers at all, each token knows only itself."),
        ("squared", "eye\nfor _ in range(n_layers):\n    known = (step.",
         "step\nfor _ in range(n_layers):\n    known = (known.",
         "You square the grid each time, which doubles the steps; each layer adds a single step."),
    )
    + slips(
        "mask, n_layers", """
            eye = torch.eye(len(mask), dtype=torch.bool)
            return torch.linalg.matrix_power((mask | eye).double(), n_layers) > 0
        """,
        ("diagonal at the end", "((mask | eye).double(), n_layers)", "(mask.double(), n_layers) + eye",
         "You followed paths of exactly n_layers steps, and added the diagonal at the end; information can stay "
         "where it is in every layer."),
        ("paths", " > 0", "", "Those are numbers of paths; return whether there is any."),
        ("overflow", ".double()", ".long()",
         "The numbers of paths have outgrown the integers; ask after every layer whether there is any path."),
    )
    + slips(
        "mask, n_layers", """
            known = torch.eye(len(mask), dtype=torch.bool)
            for _ in range(n_layers):
                before = known.clone()
                for i, j in mask.nonzero().tolist():
                    known[i] |= before[j]
            return known
        """,
        ("in place", "known.clone()", "known",
         "Within a layer you use rows that the same layer has changed; all tokens read what was known before it."),
    ),
)  # fmt: skip


# 10.4 Few connections, and everybody hears ---------------------------------------------------------------------------


def few_connections(seq_len):
    """Return a mask with which every token can have an influence on every other within two layers.

    seq_len: at least 2. Returns a boolean mask [seq_len, seq_len], mask[i, j] True = token i may attend to token j, in
    both layers, with at most 2 * (seq_len - 1) True entries. A token keeps its own information without any entry.
    """
    place = torch.arange(seq_len)
    return (place[:, None] == 0) ^ (place == 0)


def _entries_allowed(seq_len):
    return 2 * (seq_len - 1)


def _deaf_or_dear(seq_len, mask):
    """Name a pair out of reach, or count what is too much; None if the mask is one that is asked for."""
    if mask.dtype != torch.bool or mask.shape != (seq_len, seq_len):
        return f"Return a boolean mask [{seq_len}, {seq_len}]."
    missing = (~reach(mask, 2)).nonzero().tolist()
    count, allowed = int(mask.sum()), _entries_allowed(seq_len)
    if missing:
        i, j = missing[0]
        others = f", and {len(missing) - 1} more pairs are out of reach" if len(missing) > 1 else ""
        return f"Of {seq_len} tokens, {i} cannot hear of {j} within two layers (counted from 0){others}."
    if count > allowed:
        return f"Every one of {seq_len} tokens hears of all, but it takes {count} entries; {allowed} are enough."
    return None


EXERCISE_4 = Exercise(
    "10.4", "Few connections, and everybody hears", 7, 2, few_connections,
    lambda: [Case(f"{n} tokens", (n,)) for n in (2, 3, 5, 7, 13, 29)],
    slips(
        "seq_len", """
            mask = torch.zeros(seq_len, seq_len, dtype=torch.bool)
            mask[0, 1:] = True
            mask[1:, 0] = True
            return mask
        """,
        ("with the diagonal", "torch.zeros(seq_len, seq_len, dtype=torch.bool)", "torch.eye(seq_len).bool()",
         "Every token attends to itself, too: one entry each that you can save, since the residual connection keeps "
         "what a token knows."),
        ("the first reads itself", "mask[0, 1:]", "mask[0]",
         "Everybody hears, with one entry too many: your first token also attends to itself, where the residual "
         "connection keeps what it knows."),
        ("hears only", "mask[1:, 0] = True\n", "",
         "One token reads all the others, and nobody reads it: what it has gathered stays with it."),
        ("speaks only", "mask[0, 1:] = True\n", "",
         "All read one token, and it reads nobody: it has nothing to tell but itself."),
        ("all", "torch.zeros(seq_len, seq_len, dtype=torch.bool)", "torch.ones(seq_len, seq_len).bool()",
         "Everybody reads everybody: seq_len² entries, and one layer would do. With a second layer, news may go by way "
         "of somebody."),
        ("numbers", "return mask", "return mask.float()", "Return a boolean mask: its entries are True or False."),
    )
    + slips(
        "seq_len", """
            place = torch.arange(seq_len)
            return (place[:, None] == 0) ^ (place == 0)
        """,
        ("neighbours", "(place[:, None] == 0) ^ (place == 0)", "(place[:, None] - place).abs() == 1",
         "Each token reads its two neighbours, so in two layers news travels two places and no further."),
        ("ring", "(place[:, None] == 0) ^ (place == 0)", "(place[:, None] + 1) % seq_len == place",
         "Each token reads the next one, round a ring: within two layers it hears of two others and no more."),
        ("causal", "(place[:, None] == 0) ^ (place == 0)", "place[:, None] > place",
         "Your tokens read earlier ones alone, and no route leads from a later token to an earlier one."),
        ("blocks", "place = torch.arange(seq_len)\nreturn (place[:, None] == 0) ^ (place == 0)",
         "place, size = torch.arange(seq_len), math.isqrt(seq_len - 1) + 1\n"
         "block, inside = place // size, place % size\n"
         "alike = (block[:, None] == block) | (inside[:, None] == inside)\n"
         "return alike & ~torch.eye(seq_len, dtype=torch.bool)",
         "Blocks, and the same place in all blocks: everybody hears, and with far fewer entries than seq_len². It can "
         "be done with fewer still."),
    ),
    judge=_deaf_or_dear,
)  # fmt: skip

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4)
