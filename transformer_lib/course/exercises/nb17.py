"""The exercises of notebook 17: bug clinic."""

from __future__ import annotations

import torch
from torch import nn

from .model import Case, Exercise, Mistake, integers, normal

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


EXERCISE_1 = Exercise(
    "17.1",
    "The same every time?",
    6,
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
            "You compared one number of each output, such as its sum; entries that are swapped leave that as it is.",
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


def _largest(change):
    return change.abs().max().item()


def _spliced(first, second, t):
    """Return one sentence up to position t and the other from there on."""
    return torch.cat([first[:, :t], second[:, t:]], dim=1)


def _changes(model, tokens, other):
    """Return pairs of t and the change of all rows when the tokens from t on are replaced."""
    before = model(tokens)
    return [(t, model(_spliced(tokens, other, t)) - before) for t in range(1, tokens.shape[1])]


def _all_rows(model, tokens, other):
    return max(_largest(change) for _, change in _changes(model, tokens, other))


def _one_row_too_many(model, tokens, other):
    return max(_largest(change[:, : t + 1]) for t, change in _changes(model, tokens, other))


def _past_replaced(model, tokens, other):
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


def _signed_from_0(model, tokens, other):
    return max(0.0, _signed_effect(model, tokens, other))


def _sum_of_effects(model, tokens, other):
    return sum(_largest(change[:, :t]) for t, change in _changes(model, tokens, other))


def _from_2_on(model, tokens, other):
    return max([0.0, *(_largest(change[:, :t]) for t, change in _changes(model, tokens, other)[1:])])


def _without_the_last(model, tokens, other):
    return max([0.0, *(_largest(change[:, :t]) for t, change in _changes(model, tokens, other)[:-1])])


def _written_into(model, tokens, other):
    """Replace in the tokens themselves: after the first round all from 1 on are gone for good."""
    before, found = model(tokens), []
    for t in range(1, tokens.shape[1]):
        tokens[:, t:] = other[:, t:]
        found.append(_largest((model(tokens) - before)[:, :t]))
    return max(found)


def _mean_effect(model, tokens, other):
    return max(change[:, :t].abs().mean().item() for t, change in _changes(model, tokens, other))


EXERCISE_2 = Exercise(
    "17.2",
    "Does the future leak?",
    10,
    2,
    future_effect,
    _future_cases,
    (
        Mistake(
            "all rows",
            _all_rows,
            "You look at all rows; those from t on have read a replaced token and may change.",
        ),
        Mistake(
            "rows from t on",
            lambda model, tokens, other: max(_largest(change[:, t:]) for t, change in _changes(model, tokens, other)),
            "You look at the rows from t on, which may change; look at those before t.",
        ),
        Mistake(
            "the row before t",
            lambda model, tokens, other: max(
                _largest(change[:, t - 1 : t]) for t, change in _changes(model, tokens, other)
            ),
            "You look at row t - 1 only; all rows before t count.",
        ),
        Mistake(
            "one row too many",
            _one_row_too_many,
            "One row too many: position t has read the replaced token itself. Look at the positions before t.",
        ),
        Mistake(
            "past replaced",
            _past_replaced,
            "You replaced the earlier tokens; leave these and replace those from t on.",
        ),
        Mistake(
            "later rows of an earlier change",
            _effect_of_the_past,
            "That is how much the past acts on later rows, as it should; ask it the other way round.",
        ),
        Mistake(
            "last token only",
            _last_token_only,
            "You replaced the last token only; a leak between earlier positions goes unseen.",
        ),
        Mistake(
            "one token at a time",
            _one_token_at_a_time,
            "You replaced token t alone; replace all from t on, so that their effects come together.",
        ),
        Mistake(
            "one token too late",
            _one_token_too_late,
            "You kept token t too; the first one to replace is t itself.",
        ),
        Mistake("second token on only", _second_token_on_only, "You tried t = 1 only; every t has to be tried."),
        Mistake(
            "signed",
            _signed_effect,
            "Without the absolute value a change downwards goes unseen.",
        ),
        Mistake(
            "signed, from 0 on",
            _signed_from_0,
            "A logit that falls counts as much as one that rises: take the absolute value.",
        ),
        Mistake(
            "sum",
            _sum_of_effects,
            "You added the changes of all t; asked for is the largest of them.",
        ),
        Mistake(
            "from 2 on",
            _from_2_on,
            "You left out t = 1; replace all tokens but the first, too.",
        ),
        Mistake(
            "the last left out",
            _without_the_last,
            "You stop before the last t; replace the last token alone, too.",
        ),
        Mistake(
            "written into tokens",
            _written_into,
            "You write into tokens, so what was replaced stays replaced: take a fresh copy for each t, tokens.clone().",
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


def _stepping(seed, change, gradients, gradient=1.0):
    """Return a model and a step that calls change(name, weight) for every parameter.

    gradients: the names that have a gradient afterwards, with this value in all entries.
    """
    model = _Stack(seed)

    def step():
        for name, weight in model.named_parameters():
            if name == "frozen":
                continue
            weight.grad = torch.full_like(weight, gradient) if name in gradients else None
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


def _all_but_the_first_entry(name, weight):
    if name != "map.bias":
        weight.view(-1)[1:] += 1


def _slightly(name, weight):
    if name != "table.weight":
        weight.mul_(1 + 1e-6)


class _ThereAndBack:
    """A change that the next step takes back."""

    def __init__(self):
        self.amount = 1.0

    def __call__(self, name, weight):
        if name == "table.weight":
            self.amount = -self.amount
        if name != "gain":
            weight.add_(self.amount)


def _still_cases():
    def case(label, seed, change, gradients=NAMES, **options):
        return Case(label, _stepping(seed, change, gradients, **options))

    return [
        case("all but the frozen one move", 1772, _moved()),
        case("three stand still", 1773, _moved("map.weight", "gain")),
        case("nothing moves, with gradients everywhere", 1774, _moved(*NAMES)),
        case("one moves, and its sum stays", 1775, _balanced),
        case("one entry of each moves", 1776, _last_entry),
        case("the first entry of each stays", 1777, _all_but_the_first_entry),
        case("all but the frozen one move, some of them without a gradient", 1778, _moved(), ("gain", "map.bias")),
        case("all but the frozen one move, while all gradients are 0", 1781, _moved(), gradient=0.0),
        case("a small step", 1779, _slightly),
        case("every other step goes back", 1780, _ThereAndBack()),
    ]


def _kept_by_name(model, step):
    before = dict(model.named_parameters())
    step()
    return [name for name, weight in model.named_parameters() if torch.equal(weight, before[name])]


def _compared(same=torch.equal, named=lambda model: model.named_parameters(), steps=1):
    """Return the answer of whoever compares copies by `same`, of what `named` gives, after so many steps."""

    def function(model, step):
        before = {name: weight.detach().clone() for name, weight in named(model)}
        for _ in range(steps):
            step()
        return [name for name, weight in named(model) if same(weight, before[name])]

    return function


def _without_gradient(model, step):
    step()
    return [name for name, weight in model.named_parameters() if weight.grad is None]


def _with_zero_gradient(model, step):
    step()
    return [name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()]


EXERCISE_3 = Exercise(
    "17.3",
    "What stands still?",
    10,
    2,
    standing_still,
    _still_cases,
    (
        Mistake(
            "no copies",
            _kept_by_name,
            "Before and after are the same tensors: keep copies (.detach().clone()), and call step() between.",
        ),
        Mistake(
            "without gradient",
            _without_gradient,
            "You asked which have no gradient; one with a gradient may stand still, when no optimizer has it.",
        ),
        Mistake(
            "zero gradient",
            _with_zero_gradient,
            "You asked about gradients; compare the values before and after the step.",
        ),
        Mistake(
            "tolerance",
            _compared(same=torch.allclose),
            "torch.allclose takes a small step for none: what stands still agrees in every digit (torch.equal).",
        ),
        Mistake(
            "any entry",
            _compared(same=lambda new, old: bool((new == old).any())),
            "You list those in which some entry stays; no entry at all may have changed.",
        ),
        Mistake(
            "sums",
            _compared(same=lambda new, old: torch.equal(new.sum(), old.sum())),
            "You compared sums, and changes may cancel in a sum: compare every entry.",
        ),
        Mistake(
            "first entry",
            _compared(same=lambda new, old: torch.equal(new.view(-1)[0], old.view(-1)[0])),
            "You compared only the first entry of each; compare them all.",
        ),
        Mistake(
            "the movers",
            _compared(same=lambda new, old: not torch.equal(new, old)),
            "These are the ones that move; the others were asked for.",
        ),
        Mistake(
            "buffers",
            _compared(named=lambda model: model.state_dict().items()),
            "state_dict() has buffers too, such as running means; take model.named_parameters().",
        ),
        Mistake(
            "frozen ones",
            lambda model, step: [name for name, weight in model.named_parameters() if not weight.requires_grad],
            "You ask requires_grad; a parameter that could move may stand still all the same. Compare its values.",
        ),
        Mistake(
            "a number",
            lambda model, step: len(standing_still(model, step)),
            "You return how many there are; return their names, in a list.",
        ),
        Mistake("two steps", _compared(steps=2), "You called step() twice; what one step moves, the next may undo."),
        Mistake(
            "sorted",
            lambda model, step: sorted(standing_still(model, step)),
            "You sorted the names; they should come in the order of model.named_parameters().",
        ),
    ),
    items="names",
)


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
        "the end is the same all the same": (_two(1.5, 0.0), _two(1.0, 0.0)),
        "other weights in a module that is never called": (_with_spare(), _with_spare()),
        "one entry, lower": (_three(_Times(1.0, lower)), _three(_Times(1.0))),
        "the block itself, not what is inside": (_block(2.0, 3.0, 2.0), _block(2.0, 3.0)),
        "one entry of the second row, higher": (_three(_Times(1.0, -1000 * lower)), _three(_Times(1.0))),
        "all entries, lower": (_three(_Times(1.0, -0.5)), _three(_Times(1.0))),
        "large outputs that differ by little": (_three(_Times(0.0, 5000.02)), _three(_Times(0.0, 5000.0))),
        "the two rows swapped": (_three(_Order([1, 0])), _three(_Order([0, 1]))),
    }
    cases = [Case(label, (*pair, (x,), 1e-5)) for label, pair in models.items()]
    return [
        *cases,
        Case("the third of five, once more", (*models["the third of five"], (y,), 1e-5)),
        Case("two inputs", (_two(3.0, 2.0), _two(2.0, 2.0), (torch.zeros(2, 3), y), 1e-5)),
        Case("rounding", (_two(1 + 1e-6, 2.0), _two(1.0, 2.0), (x, y), 1e-5)),
        Case(
            "below the tolerance, then above it",
            (_three(_Times(1.0, 1e-3), 100.0), _three(_Times(1.0), 100.0), (x,), 1e-2),
        ),
    ]


def _outputs(model, inputs, *, before=False, take=lambda args, output: output):
    """Return {name: output} in the order of finishing, or, with `before`, that of starting."""
    found, handles = {}, []
    for name, module in model.named_modules():
        if not name:
            continue
        if before:
            handles.append(module.register_forward_pre_hook(lambda module, args, name=name: found.setdefault(name)))
        handles.append(
            module.register_forward_hook(
                lambda module, args, output, name=name: found.update({name: take(args, output)})
            )
        )
    model(*inputs)
    for handle in handles:
        handle.remove()
    return found


def _first(names, one, other, tolerance, far=None):
    far = far or (lambda a, b: (a - b).abs().max() > tolerance)
    return next((name for name in names if name in one and far(one[name], other[name])), "")


def _by_outputs(names=lambda model, found: found, far=None, last=False, **options):
    """Return the answer of whoever goes through `names` and compares by far(a, b, tolerance)."""

    def function(model, reference, inputs, tolerance):
        one, other = (_outputs(part, inputs, **options) for part in (model, reference))
        order = list(names(model, one))
        judge = (lambda a, b: far(a, b, tolerance)) if far else None
        return _first(reversed(order) if last else order, one, other, tolerance, judge)

    return function


def _by_last_name(model, reference, inputs, tolerance):
    last = [name for name, _ in model.named_modules()][-1]
    ends = [list(_outputs(part, inputs).values())[-1] for part in (model, reference)]
    return last if (ends[0] - ends[1]).abs().max() > tolerance else ""


def _parameters_differ(model, reference, inputs, tolerance):
    pairs = zip(model.named_parameters(), reference.named_parameters(), strict=True)
    return next((name.rpartition(".")[0] for (name, a), (_, b) in pairs if (a - b).abs().max() > tolerance), "")


EXERCISE_4 = Exercise(
    "17.4",
    "The first difference",
    10,
    3,
    first_difference,
    _difference_cases,
    (
        Mistake(
            "order of definition",
            _by_outputs(names=lambda model, found: [name for name, _ in model.named_modules()]),
            "You went through the modules in the order of named_modules(); go in the order in which they finish.",
        ),
        Mistake(
            "order of starting",
            _by_outputs(before=True),
            "A block starts before what is inside it and finishes after it; go by the end.",
        ),
        Mistake(
            "top level",
            _by_outputs(names=lambda model, found: [name for name in found if "." not in name]),
            "You looked at the outermost modules only; named_modules() has those inside them too.",
        ),
        Mistake(
            "leaves only",
            _by_outputs(
                names=lambda model, found: [name for name in found if not [*model.get_submodule(name).children()]]
            ),
            "You looked only at modules without modules inside; a block can go wrong between them.",
        ),
        Mistake(
            "late binding",
            _by_last_name,
            "All your hooks write under the last name: bind it when you make the hook, as in name=name.",
        ),
        Mistake(
            "first row",
            _by_outputs(far=lambda a, b, tolerance: (a - b)[0].abs().max() > tolerance),
            "You compared the first row of each output only; compare them all.",
        ),
        Mistake("the last", _by_outputs(last=True), "That is the last one that differs; the first was asked for."),
        Mistake(
            "parameters",
            _parameters_differ,
            "You compared parameters; the weights may all agree, and what is done with them not.",
        ),
        Mistake(
            "inputs",
            _by_outputs(take=lambda args, output: args[0]),
            "You compared what enters each module; compare what comes out.",
        ),
        Mistake(
            "no tolerance",
            _by_outputs(far=lambda a, b, tolerance: not torch.equal(a, b)),
            "You compared every digit; differences up to tolerance do not count.",
        ),
        Mistake(
            "relative tolerance",
            _by_outputs(far=lambda a, b, tolerance: not torch.allclose(a, b, atol=tolerance)),
            "torch.allclose also allows a share of the values, which is much for large ones: set rtol=0.",
        ),
        Mistake(
            "default tolerance",
            lambda model, reference, inputs, tolerance: first_difference(model, reference, inputs, 1e-5),
            "You compared with 1e-5; take the tolerance that is given.",
        ),
        Mistake(
            "signed",
            _by_outputs(far=lambda a, b, tolerance: (a - b).max() > tolerance),
            "Without the absolute value a lower output goes unseen.",
        ),
        Mistake(
            "mean",
            _by_outputs(far=lambda a, b, tolerance: (a - b).abs().mean() > tolerance),
            "You took the mean difference; one entry that differs is enough.",
        ),
        Mistake(
            "sums",
            _by_outputs(far=lambda a, b, tolerance: (a.sum() - b.sum()).abs() > tolerance),
            "You compared sums of outputs; entries that are swapped leave a sum as it is.",
        ),
        Mistake(
            "first input",
            lambda model, reference, inputs, tolerance: first_difference(model, reference, inputs[:1], tolerance),
            "You passed the first input only: call model(*inputs).",
        ),
        Mistake("always empty", lambda *_: "", "You return an empty name whatever comes."),
    ),
)

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
        Case("only the last position changes", (last_row, _ids(1755, [2, 3, 5], 7, 0), 0, 2)),
        Case("only the last position changes, real in one row", (last_row, _ids(1760, [7, 3], 7, 0), 0, 2)),
        Case("only the last position changes, real in the second row", (last_row, _ids(1761, [3, 7], 7, 0), 0, 2)),
        Case("padding is id 3, only the last position changes", (last_row, _ids(1757, [2, 3, 5], 7, 3), 3, 2)),
        Case("the later sentences change most", (heavier, _ids(1758, [5, 3, 2], 5, 0), 0, 3)),
        Case("all rows fall", (falling, _ids(1756, [3, 2], 3, 0), 0, 7)),
        Case("only the second position moves", (second, _ids(1759, [3, 2], 5, 0), 0, 2)),
        Case("ids below that of the padding move", (low_ids, torch.tensor([[1, 9, 2, 5], [9, 8, 3, 5]]), 5, 3)),
    ]


def _longer(ids, pad_id, extra):
    return torch.nn.functional.pad(ids, (0, extra), value=pad_id)


def _change(model, ids, longer):
    """Return the change of the first rows when the model reads the longer batch."""
    return model(longer)[:, : ids.shape[1]] - model(ids)


def _padding_positions_too(model, ids, pad_id, extra):
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


def _positions_of_the_first(model, ids, pad_id, extra):
    return _largest(_change(model, ids, _longer(ids, pad_id, extra))[:, ids[0] != pad_id])


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
    8,
    2,
    padding_effect,
    _padding_cases,
    (
        Mistake(
            "padding positions too",
            _padding_positions_too,
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
            "With padding in front every token changes its position, and that alone moves the rows.",
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
            "the first row's positions",
            _positions_of_the_first,
            "You took the real positions of the first row for all rows; each row has its own.",
        ),
        Mistake(
            "one token",
            _one_padding_token,
            "You put one padding token behind, not as many as extra says.",
        ),
        Mistake(
            "shortest",
            lambda model, ids, pad_id, extra: _largest(
                _change(model, ids, _longer(ids, pad_id, extra))[:, : (ids != pad_id).sum(dim=1).min()]
            ),
            "You looked only as far as the shortest row goes; longer rows have more real positions.",
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
        Mistake(
            "signed, from 0 on",
            lambda *given: max(0.0, _signed_change(*given)),
            "A change downwards counts as much as one upwards: take the absolute value.",
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
            "first position",
            lambda model, ids, pad_id, extra: _largest(_change(model, ids, _longer(ids, pad_id, extra))[:, 0]),
            "You looked at the first position only.",
        ),
    ),
    rtol=1e-5,
)


EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5)
