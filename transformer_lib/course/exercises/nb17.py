"""The exercises of notebook 17: bug clinic."""

from __future__ import annotations

import torch
from torch import nn

from .model import Case, Exercise, integers, normal
from .slips import slips

# 17.1 The same every time? -------------------------------------------------------------------------------------------


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
        Case("the rows are swapped", (_swapping, x, 29)),
        Case("a small difference", (_noisy(1746, slice(None), 1, size=1e-4), x, 3)),
        Case("every other call is different, without random numbers", (_Alternating(), x, 4)),
        Case("the input comes back", (lambda x, training: x.clone(), x, 3)),
    ]


EXERCISE_1 = Exercise(
    "17.1", "The same every time?", 6, 1, same_every_time, _repeat_cases,
    slips(
        "forward, x, times", """
            outputs = []
            for _ in range(times):
                outputs.append(forward(x, False))
            alike = all(torch.equal(outputs[0], output) for output in outputs[1:])
            return "same" if alike else "random"
        """,
        ("in training", "False", "True",
         "You called it with training=True, where dropout belongs. Ask for evaluation."),
        ("seeded", "    outputs.append", "    torch.default_generator.manual_seed(0)\n    outputs.append",
         "You set the seed before each call, so that chance repeats itself and cannot be seen."),
        ("two calls", "range(times)", "range(2)", "Two calls may agree by luck: call it as often as times says."),
        ("sums", "torch.equal(outputs[0], output)", "torch.isclose(outputs[0].sum(), output.sum())",
         "You compared one number of each output, such as its sum; entries that are swapped leave that as it is."),
        ("coarse", "torch.equal(outputs[0], output)", "torch.allclose(outputs[0], output, atol=1e-2)",
         "Your tolerance hides small differences; outputs that are the same agree in every digit."),
        ("always random", "torch.equal(outputs[0], output)", "outputs[0] is output",
         'You return "random" whatever happens: compare the numbers, for example with torch.equal.'),
    ),
)  # fmt: skip


# 17.2 Does the future leak? ------------------------------------------------------------------------------------------


def future_effect(model, tokens, other):
    """Return the largest absolute change of a row of logits when only later tokens are replaced, a number.

    model: called as model(tokens) -> logits [batch, tgt_len, vocab_size]. tokens: ids [batch, tgt_len].
    other: ids of that shape, different at every position. For each position t from 1 on (counted from 0), replace the
    tokens t, t + 1, … by those of other, and look at the logits before t.
    """
    before, largest = model(tokens), 0.0
    for t in range(1, tokens.shape[1]):
        after = model(torch.cat([tokens[:, :t], other[:, t:]], dim=1))
        largest = max(largest, (after - before)[:, :t].abs().max().item())
    return largest


def _reader(seed, vocab, width, may_see):
    """Return a pretend model: each position is the mean of what it may see; tokens and positions have vectors."""
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


def _cancelling(tokens):
    """Return rows that are their tokens, but for the first: it is the sum of the second token and the last."""
    rows = tokens[..., None].double()
    return torch.cat([(rows[:, 1] + rows[:, -1])[:, None], rows[:, 1:]], dim=1)


def _first_row_only(tokens):
    """Return ones, but for the first row, which is the last token."""
    rows = torch.ones(*tokens.shape, 2, dtype=torch.float64)
    rows[:, 0] = tokens[:, -1:].double()
    return rows


def _pair_of_rows(seed):
    tokens = integers(seed, (2, 5), 0, 11)
    return tokens, (tokens + 1 + integers(seed + 1, (2, 5), 0, 7)) % 11


def _future_cases():
    def case(label, seed, shape, may_see):
        tokens = integers(seed, shape, 0, 11)
        return Case(label, (_reader(seed, 11, 3, may_see), tokens, (tokens + 1 + integers(seed + 1, shape, 0, 7)) % 11))

    return [
        case("reads itself and earlier tokens", 1701, (2, 5), lambda i, j: j <= i),
        case("reads everything", 1702, (3, 5), lambda i, j: (j >= 0) & (i >= 0)),
        case("reads itself and later tokens", 1703, (2, 7), lambda i, j: j >= i),
        case("reads its right neighbour", 1704, (5, 7), lambda i, j: (j == i) | (j == i + 1)),
        case(
            "only the first position peeks, at the second", 1705, (3, 11), lambda i, j: (j <= i) | ((i == 0) & (j == 1))
        ),
        Case("two changes that cancel", (_cancelling, torch.tensor([[3, 5, 2, 4]]), torch.tensor([[2, 4, 7, 5]]))),
        Case("the first row reads the last token, no other reads any", (_first_row_only, *_pair_of_rows(1708))),
        Case("rows can only fall", (_signed(1706), integers(1706, (2, 3), 0, 1), integers(1707, (2, 3), 1, 2))),
    ]


EXERCISE_2 = Exercise(
    "17.2", "Does the future leak?", 10, 2, future_effect, _future_cases,
    slips(
        "model, tokens, other", """
            before, changes = model(tokens), []
            for t in range(1, tokens.shape[1]):
                replaced = torch.cat([tokens[:, :t], other[:, t:]], dim=1)
                change = (model(replaced) - before)[:, :t]
                changes.append(change.abs().max().item())
            return max(changes)
        """,
        ("all rows", "before)[:, :t]", "before)",
         "You look at all rows; those from t on have read a replaced token and may change."),
        ("one row too many", "before)[:, :t]", "before)[:, : t + 1]",
         "One row too many: position t has read the replaced token itself. Look at the positions before t."),
        ("last token only", "range(1, tokens.shape[1])", "[tokens.shape[1] - 1]",
         "You replaced the last token only; a leak between earlier positions goes unseen."),
        ("one token at a time", "other[:, t:]", "other[:, t : t + 1], tokens[:, t + 1 :]",
         "You replaced token t alone; replace all from t on, so that their effects can add up."),
        ("signed", ".abs()", "", "Without the absolute value a change downwards goes unseen."),
        ("written into tokens", "torch.cat([tokens[:, :t], other[:, t:]], dim=1)",
         "tokens\n    replaced[:, t:] = other[:, t:]",
         "You write into tokens, so what was replaced stays replaced: take a fresh copy for each t, tokens.clone()."),
    ),
    rtol=1e-5,
)  # fmt: skip


# 17.3 What stands still? ---------------------------------------------------------------------------------------------


def standing_still(model, step):
    """Return the names of the parameters in which no entry has changed after one training step, a list.

    model: an nn.Module. step: a function without arguments that takes one training step, in place. The names come in
    the order of model.named_parameters().
    """
    before = [(name, weight.tolist()) for name, weight in model.named_parameters()]
    step()
    return [name for name, values in before if model.get_parameter(name).tolist() == values]


class _Stack(nn.Module):
    """A pretend model: two maps, a norm with running statistics and a gain; the names are not in alphabetical order."""

    def __init__(self, seed):
        super().__init__()
        self.table = nn.Embedding(5, 3)
        self.map = nn.Linear(3, 2)
        self.norm = nn.BatchNorm1d(2)
        self.gain = nn.Parameter(torch.ones(7))
        self.frozen = nn.Parameter(torch.ones(3), requires_grad=False)  # never moves
        for number, weight in enumerate(self.parameters()):
            weight.data.copy_(integers(seed + 30 * number, tuple(weight.shape), 1, 9))  # so that sums are exact


def _stepping(seed, change, gradients):
    """Return a model and a step that calls change(name, weight) for every parameter.

    gradients: the names that have a gradient afterwards.
    """
    model = _Stack(seed)

    def step():
        for name, weight in model.named_parameters():
            if name == "frozen":
                continue
            weight.grad = torch.ones_like(weight) if name in gradients else None
            with torch.no_grad():
                change(name, weight)

    return model, step


NAMES = tuple(name for name, _ in _Stack(1771).named_parameters())


def _moved(*still):
    """Return a change that moves all but these."""
    return lambda name, weight: None if name in still else weight.add_(0.5)


def _balanced(name, weight):
    """Change one weight in a way that keeps its sum."""
    if name == "map.weight":
        weight[0, 0] += 1
        weight[1, 1] -= 1


def _last_entry(name, weight):
    if name != "norm.bias":
        weight.view(-1)[-1] += 1


def _slightly(name, weight):
    if name != "table.weight":
        weight.mul_(1 + 1e-6)


def _still_cases():
    def case(label, seed, change, gradients=NAMES):
        return Case(label, _stepping(seed, change, gradients))

    return [
        case("all but the frozen one move", 1772, _moved()),
        case("three stand still", 1773, _moved("map.weight", "gain")),
        case("one moves, and its sum stays", 1775, _balanced),
        case("one entry of each moves", 1776, _last_entry),
        case("all but the frozen one move, some of them without a gradient", 1778, _moved(), ("gain", "map.bias")),
        case("a small step", 1779, _slightly),
    ]


EXERCISE_3 = Exercise(
    "17.3", "What stands still?", 10, 2, standing_still, _still_cases,
    slips(
        "model, step", """
            weights = dict(model.named_parameters())
            before = {name: weight.detach().clone() for name, weight in weights.items()}
            step()
            return [name for name, weight in weights.items() if torch.equal(weight, before[name])]
        """,
        ("no copies", ".detach().clone()", "",
         "Before and after are the same tensors: keep copies (.detach().clone()), and call step() between."),
        ("without gradient", "torch.equal(weight, before[name])", "weight.grad is None",
         "You asked which have no gradient; one with a gradient may stand still, when no optimizer has it."),
        ("tolerance", "torch.equal", "torch.allclose",
         "torch.allclose overlooks a small step: what stands still agrees in every digit (torch.equal)."),
        ("sums", "torch.equal(weight, before[name])", "torch.equal(weight.sum(), before[name].sum())",
         "You compared sums, and changes may cancel in a sum: compare every entry."),
        ("buffers", "dict(model.named_parameters())", "model.state_dict()",
         "state_dict() has buffers too, such as running means; take model.named_parameters()."),
        ("frozen ones", "torch.equal(weight, before[name])", "not weight.requires_grad",
         "You looked at requires_grad; a parameter that could move may stand still all the same. Compare its values."),
    ),
    items="names",
)  # fmt: skip


# 17.4 The first difference -------------------------------------------------------------------------------------------


def first_difference(model, reference, inputs, tolerance):
    """Return the name of the first module, in the order in which they finish, whose outputs differ; "" if none do.

    model, reference: called as model(*inputs); their modules have the same names, each is called at most once, and
    returns a tensor. inputs: a tuple. Outputs differ if some entry does by more than tolerance.
    """
    runs = []
    for one in (model, reference):
        run = []
        handles = [
            module.register_forward_hook(lambda module, args, output, name=name, run=run: run.append((name, output)))
            for name, module in one.named_modules()
            if name
        ]
        one(*inputs)
        for handle in handles:
            handle.remove()
        runs.append(run)
    for (name, output), (_, other) in zip(*runs, strict=True):
        if any(
            abs(a - b) > tolerance for a, b in zip(output.flatten().tolist(), other.flatten().tolist(), strict=True)
        ):
            return name
    return ""


class _Times(nn.Module):
    """x · factor + shift; the two are no parameters."""

    def __init__(self, factor=1.0, shift=0.0):
        super().__init__()
        self.factor, self.shift = factor, shift

    def forward(self, x):
        if len(self._forward_hooks) > 1:
            raise RuntimeError("a hook of an earlier run is still registered: remove your hooks")
        return x * self.factor + self.shift


class _Run(nn.Module):
    """Calls its modules in the order `calls`, one after the other, on the sum of its inputs."""

    def __init__(self, modules, calls, factor=1.0):
        super().__init__()
        self.factor = factor
        for name, module in modules.items():
            self.add_module(name, module)
        self.calls = calls

    def forward(self, *inputs):
        x = sum(inputs)
        for name in self.calls:
            x = self.get_submodule(name)(x)
        return x * self.factor


class _Order(nn.Module):
    """Puts rows into another order."""

    def __init__(self, order):
        super().__init__()
        self.order = order

    def forward(self, x):
        return x[self.order]


def _chain(*factors, calls="abcde"):
    return _Run({name: _Times(factor) for name, factor in zip("abcde", factors, strict=True)}, list(calls))


def _block(first, second, factor=1.0):
    """Return two maps inside a block, which multiplies by the factor, and one after it."""
    inner = _Run({"x": _Times(first), "y": _Times(second)}, ["x", "y"], factor)
    return _Run({"one": inner, "two": _Times(3.0)}, ["one", "two"])


def _two(first, second):
    return _Run({"a": _Times(first), "b": _Times(second)}, ["a", "b"])


def _with_spare():
    """Return a model with a module that is never called; its weight is another one each time."""
    return _Run({"spare": nn.Linear(1, 1).requires_grad_(False), "main": _Times(2.0)}, ["main"])


def _three(middle, last=1.0):
    return _Run({"a": _Times(1.0), "b": middle, "c": _Times(last)}, ["a", "b", "c"])


def _difference_cases():
    x, y = normal(1791, (2, 3), (2, 3))
    sound = (1.0, 2.0, 3.0, 0.5, 2.0)
    lower = torch.zeros(2, 3)
    lower[1, 2] = -3e-5
    models = {
        "no difference": (_chain(*sound), _chain(*sound)),
        "the third of five": (_chain(1.0, 2.0, 2.0, 0.5, 2.0), _chain(*sound)),
        "the order of the calls is not that of the definitions": (
            _chain(1.0, 7.0, 3.0, 0.5, 5.0, calls="edcba"),
            _chain(*sound, calls="edcba"),
        ),
        "inside a block": (_block(2.0, 3.0), _block(2.0, 2.0)),
        "inside a block, and gone at its end": (_block(8.0, 0.25), _block(2.0, 1.0)),
        "other weights in a module that is never called": (_with_spare(), _with_spare()),
        "one entry, lower": (_three(_Times(1.0, lower)), _three(_Times(1.0))),
        "the block itself, not what is inside": (_block(2.0, 3.0, 2.0), _block(2.0, 3.0)),
        "all entries, lower": (_three(_Times(1.0, -0.5)), _three(_Times(1.0))),
        "large outputs that differ by little": (_three(_Times(0.0, 5000.02)), _three(_Times(0.0, 5000.0))),
        "the two rows swapped": (_three(_Order([1, 0])), _three(_Order([0, 1]))),
    }
    cases = [Case(label, (*pair, (x,), 1e-5)) for label, pair in models.items()]
    return [
        *cases,
        Case("two inputs", (_two(3.0, 2.0), _two(2.0, 2.0), (torch.zeros(2, 3), y), 1e-5)),
        Case(
            "below the tolerance, then above it",
            (_three(_Times(1.0, 1e-3), 100.0), _three(_Times(1.0), 100.0), (x,), 1e-2),
        ),
    ]


EXERCISE_4 = Exercise(
    "17.4", "The first difference", 10, 3, first_difference, _difference_cases,
    slips(
        "model, reference, inputs, tolerance", """
            def outputs(one):
                found, handles = {}, []
                for name, module in one.named_modules():
                    keep = lambda module, args, output, name=name: found.update({name: output})
                    handles.append(module.register_forward_hook(keep))
                one(*inputs)
                for handle in handles:
                    handle.remove()
                return found

            ours, theirs = outputs(model), outputs(reference)
            differ = [name for name in ours if name and (ours[name] - theirs[name]).abs().max() > tolerance]
            return differ[0] if differ else ""
        """,
        ("order of definition", "name in ours if name", "name, _ in model.named_modules() if name in ours and name",
         "You went through the modules in the order of named_modules(); go in the order in which they finish."),
        ("order of starting", "        keep = lambda",
         "        start = lambda module, args, name=name: found.setdefault(name)\n"
         "        handles.append(module.register_forward_pre_hook(start))\n        keep = lambda",
         "A block starts before what is inside it and finishes after it; go by the end."),
        ("leaves only", "if name and", "if name and not [*model.get_submodule(name).children()] and",
         "You looked only at modules without modules inside; a block can go wrong between them."),
        ("late binding", ", name=name", "",
         "All your hooks write under the last name: bind it when you make the hook, as in name=name."),
        ("parameters", "outputs(model), outputs(reference)",
         "({name.rpartition('.')[0]: w for name, w in one.named_parameters()} for one in (model, reference))",
         "You compared parameters; the weights may all agree while what is done with them does not."),
        ("relative tolerance", "(ours[name] - theirs[name]).abs().max() > tolerance",
         "not torch.allclose(ours[name], theirs[name], atol=tolerance)",
         "torch.allclose also allows a share of the values, which is a lot for large ones: set rtol=0."),
        ("signed", ".abs()", "", "Without the absolute value a lower output goes unseen."),
    ),
)  # fmt: skip

# 17.5 Moved by padding? ----------------------------------------------------------------------------------------------


def padding_effect(model, ids, pad_id, extra):
    """Return the largest absolute change at real positions when `extra` padding tokens are put behind, a number.

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

    def low_ids(ids):
        return ((ids < 5) * ids.shape[1])[..., None].double()

    def heavier(ids):  # sentence b changes by b for each token that is added
        return (torch.arange(len(ids))[:, None, None] * ids.shape[1]).expand(*ids.shape, 2).double()

    def falling(ids):
        return -torch.full((*ids.shape, 3), float(ids.shape[1]))

    return [
        Case("padding is masked", (_mixer(1751, 0, masked=True), _ids(1751, [5, 3, 2], 5, 0), 0, 2)),
        Case("padding is read", (_mixer(1752, 0, masked=False), _ids(1752, [5, 2], 5, 0), 0, 3)),
        Case("padding is id 3 and is masked", (_mixer(1754, 3, masked=True), _ids(1754, [7, 2], 7, 3), 3, 11)),
        Case("only the last position changes", (last_row, _ids(1755, [2, 3, 5], 7, 0), 0, 2)),
        Case("only the last position changes, real in one row", (last_row, _ids(1760, [7, 3], 7, 0), 0, 2)),
        Case("padding is id 3, only the last position changes", (last_row, _ids(1757, [2, 3, 5], 7, 3), 3, 2)),
        Case("the later sentences change most", (heavier, _ids(1758, [5, 3, 2], 5, 0), 0, 3)),
        Case("all rows fall", (falling, _ids(1756, [3, 2], 3, 0), 0, 7)),
        Case("ids below that of the padding move", (low_ids, torch.tensor([[1, 9, 2, 5], [9, 8, 3, 5]]), 5, 3)),
    ]


EXERCISE_5 = Exercise(
    "17.5", "Moved by padding?", 8, 2, padding_effect, _padding_cases,
    slips(
        "model, ids, pad_id, extra", """
            padding = torch.full((len(ids), extra), pad_id)
            longer = torch.cat([ids, padding], dim=1)
            change = model(longer)[:, : ids.shape[1]] - model(ids)
            return change[ids != pad_id].abs().max().item()
        """,
        ("padding positions too", "[ids != pad_id]", "",
         "You compared the rows of padding too; they are never used, so they may change."),
        ("front, cut there", "ids, padding], dim=1)\nchange = model(longer)[:, : ids.shape[1]]",
         "padding, ids], dim=1)\nchange = model(longer)[:, extra:]",
         "With padding in front every token changes its position, and that alone moves the rows."),
        ("id 0", "extra), pad_id", "extra), 0", "You padded with 0; the padding has the id pad_id."),
        ("real is not 0", "ids != pad_id", "ids != 0",
         "You took all ids but 0 for real tokens; padding has the id pad_id."),
        ("signed", ".abs()", "", "Without the absolute value a change downwards goes unseen."),
        ("greater", "ids != pad_id", "ids > pad_id",
         "You left out every id up to pad_id; only pad_id itself is padding."),
    ),
    rtol=1e-5,
)  # fmt: skip


# 17.6 The silent fault -----------------------------------------------------------------------------------------------


def silent_fault(part, examine):
    """Return examine(fault) for a fault of your own that rings "alone", and nothing else.

    part: a function of rows [batch, seq_len, d_model] that returns rows of that shape. examine: puts a function of that
    kind in the part's place and returns the names of what rings then, a list out of "repeat", "future", "padding",
    "alone" and "loss". The loss rings when it moves by more than 0.01.
    """

    def fault(x):
        rows = part(x)
        return rows + 0.001 * rows.mean(dim=0, keepdim=True)

    return examine(fault)


class _Bench:
    """A pretend decoder, for `examine`: a table, the part, the mean of each row and the earlier ones, and a head.

    Args:
        seed: of its weights and tokens. batch, length, width: sizes; the first row has its last token padded.
        part: of rows [batch, seq_len, width].
    """

    VOCAB, PAD = 11, 0

    def __init__(self, seed, batch, length, width, part):
        self.table, self.head = normal(seed, (self.VOCAB, width), (width, self.VOCAB), dtype=torch.float64)
        self.ids = integers(seed + 1, (batch, length), 1, self.VOCAB)
        self.ids[0, -1] = self.PAD
        self.labels = integers(seed + 2, (batch, length), 1, self.VOCAB)
        self.part = part

    def _logits(self, ids, part):
        rows = part(self.table[ids])
        return rows.cumsum(dim=1) / torch.arange(1, ids.shape[1] + 1)[:, None] @ self.head / self.head.shape[0] ** 0.5

    def _loss(self, part):
        logits = self._logits(self.ids, part)
        return nn.functional.cross_entropy(logits[self.ids != self.PAD], self.labels[self.ids != self.PAD]).item()

    def __call__(self, fault):
        """Return what rings when the fault is in the part's place."""
        whole, real = self._logits(self.ids, fault), self.ids != self.PAD
        replaced = torch.cat([self.ids[:, :-1], self.ids[:, -1:] % (self.VOCAB - 1) + 1], dim=1)
        longer = nn.functional.pad(self.ids, (0, 2), value=self.PAD)
        each = [self._logits(row[None], fault) for row in self.ids]
        changes = {
            "repeat": self._logits(self.ids, fault) - whole,
            "future": (self._logits(replaced, fault) - whole)[:, :-1],
            "padding": (self._logits(longer, fault)[:, : self.ids.shape[1]] - whole)[real],
            "alone": (torch.cat(each) - whole)[real],
        }
        rings = [name for name, change in changes.items() if not change.abs().max() <= 1e-6]
        moved = self._loss(fault) - self._loss(self.part)
        return rings if abs(moved) <= 0.01 else [*rings, "loss"]


def _bench_case(label, seed, sizes, part):
    return Case(label, (part, _Bench(seed, *sizes, part)))


def _silent_cases():
    return [
        _bench_case("three rows, a ReLU", 17601, (3, 5, 7), torch.relu),
        _bench_case("seven rows, a tanh", 17611, (7, 3, 5), torch.tanh),
        _bench_case("two long rows, a part that doubles", 17621, (2, 11, 3), lambda x: 2 * x),
        _bench_case("one row, whom nobody can disturb: nothing rings", 17641, (1, 5, 3), torch.sigmoid),
        _bench_case("five rows, a norm", 17631, (5, 2, 13), lambda x: x - x.mean(dim=-1, keepdim=True)),
    ]


EXERCISE_6 = Exercise(
    "17.6", "The silent fault", 10, 3, silent_fault, _silent_cases,
    slips(
        "part, examine", """
            def fault(x):
                rows = part(x)
                return rows + 0.002 * rows.roll(1, dims=0)

            return examine(fault)
        """,
        ("too large", "0.002", "1.0", "The loss hears it, too: let the fault do less."),
        ("random", "rows.roll(1, dims=0)", "torch.randn_like(rows)",
         "Chance rings repeat, and with it every other comparison of two passes: do the same each time."),
        ("along the row", "dims=0", "dims=1",
         "You mixed the positions of one row, which is what future and padding listen to. Mix rows of the batch."),
        ("mean of everything", "rows.roll(1, dims=0)", "rows.mean()",
         "Your mean runs over the positions, too, so that future and padding ring. Stay at one position."),
        ("not examined", "examine(fault)", '["alone"]',
         "You wrote the list down. Return what examine says of your fault, also where nothing rings."),
        ("of itself", ".roll(1, dims=0)", "",
         "Nothing rings: each row has changed by itself, and does so in any company. Take something from another row."),
    ),
    items="instruments",
)  # fmt: skip


EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5, EXERCISE_6)
