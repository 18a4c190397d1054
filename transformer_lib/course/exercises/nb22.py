"""The exercises of notebook 22: drafted tokens, int8 weights, pages of a cache, and one block of a backward pass."""

from __future__ import annotations

import math

import torch

from .model import Case, Exercise, Mistake, integers, normal

# 22.1 Which drafted tokens stand -------------------------------------------------------------------------------------


def tokens_that_stand(drafted, checked, eos_id):
    """Return the ids that one call of the target adds to the sentence, as a list: what greedy decoding would write.

    drafted: a list of γ ids, the draft's proposal. checked: a list of γ + 1 ids; checked[i] is the target's best token
    after the sentence so far and drafted[:i]. Drafted tokens stand up to the first with which the target disagrees;
    then comes one token of the target's own. Nothing comes after eos_id.
    """
    standing = []
    for place, token in enumerate(checked):
        standing.append(token)
        if token == eos_id or place == len(drafted) or drafted[place] != token:
            return standing
    raise ValueError("checked must have one id more than drafted")


def _drafted_case(label, seed, count, agree, eos_at=(), eos_id=2):
    """Return a case whose first `agree` of `count` drafted tokens are the target's; it disagrees at the next.

    eos_at puts ends of the sentence among the target's tokens. Where there is room, both agree once more further on.
    """
    checked = integers(seed, (count + 1,), 3, 50).tolist()
    drafted = [token if place < agree else token + 50 for place, token in enumerate(checked[:count])]
    if count > agree + 1:
        drafted[agree + 1] = checked[agree + 1]
    for place in eos_at:
        checked[place] = eos_id
        if place < agree:
            drafted[place] = eos_id
    return Case(label, (drafted, checked, eos_id))


def _drafted_cases():
    return [
        _drafted_case("2 of 4 stand", 2200, 4, 2),
        _drafted_case("none of 3 stands", 2201, 3, 0),
        _drafted_case("all of 5 stand", 2202, 5, 5),
        _drafted_case("the second of 5 ends the sentence, and all agree", 2203, 5, 5, eos_at=(1,), eos_id=7),
        _drafted_case("the target ends where the draft goes on", 2204, 7, 3, eos_at=(3,)),
        _drafted_case("the last of 3 ends the sentence", 2205, 3, 3, eos_at=(2,)),
        _drafted_case("nothing was drafted", 2206, 0, 0),
        _drafted_case("4 of 7 stand, and one agrees later", 2207, 7, 4),
        _drafted_case("the end twice, and all agree", 2208, 5, 5, eos_at=(2, 3)),
    ]


def _agreeing(drafted, checked):
    count = 0
    while count < len(drafted) and drafted[count] == checked[count]:
        count += 1
    return count


def _to_eos(ids, eos_id):
    return ids[: ids.index(eos_id) + 1] if eos_id in ids else ids


def _standing(ids, count=_agreeing, end=_to_eos):
    """Return what stands, each slip a switch: `ids(drafted, checked, count)` are the tokens before the end is cut."""

    def function(drafted, checked, eos_id):
        return end(list(ids(drafted, checked, count(drafted, checked))), eos_id)

    return function


EXERCISE_1 = Exercise(
    "22.1",
    "Which drafted tokens stand",
    10,
    2,
    tokens_that_stand,
    _drafted_cases,
    (
        Mistake(
            "no token of the target's",
            _standing(lambda drafted, checked, n: drafted[:n]),
            "The target's own token is missing: after the tokens that stand comes one more, which its call has found "
            "anyway.",
        ),
        Mistake(
            "none when all stand",
            _standing(lambda drafted, checked, n: (drafted[:n] + checked[n : n + 1])[: max(len(drafted), n)]),
            "Where every drafted token stands, the target's own token is missing: checked has one id more, and it is "
            "free.",
        ),
        Mistake(
            "none but when all stand",
            _standing(lambda drafted, checked, n: drafted[:n] + (checked[n:] if n == len(drafted) else [])),
            "You add the target's own token only where all drafted tokens stand; where it disagrees, its token "
            "replaces the wrong one.",
        ),
        Mistake(
            "the wrong token, too",
            _standing(lambda drafted, checked, n: drafted[: n + 1] if n < len(drafted) else checked),
            "You kept the drafted token with which the target disagrees; at that place its own token comes.",
        ),
        Mistake(
            "the wrong token and the correction",
            _standing(lambda drafted, checked, n: drafted[: n + 1] + checked[n : n + 1]),
            "You kept the drafted token with which the target disagrees, and its correction behind it; the "
            "correction takes its place.",
        ),
        Mistake(
            "the target's last token",
            _standing(lambda drafted, checked, n: drafted[:n] + checked[-1:]),
            "You always add checked[-1]; where the target disagrees earlier, that token follows a prefix that does "
            "not stand. Its own token is the one at the first disagreement.",
        ),
        Mistake(
            "one place late",
            _standing(lambda drafted, checked, n: drafted[:n] + checked[n + 1 : n + 2]),
            "The target's own token comes from one place too late: checked[i] is what follows drafted[:i].",
        ),
        Mistake(
            "compared one place off",
            _standing(
                lambda drafted, checked, n: drafted[:n] + checked[n : n + 1],
                count=lambda drafted, checked: _agreeing(drafted, checked[1:]),
            ),
            "You compare drafted[i] with checked[i + 1]; the target's word about drafted[i] is checked[i].",
        ),
        Mistake(
            "all that the target says",
            _standing(lambda drafted, checked, n: checked),
            "You take all of checked. Behind the first disagreement its tokens follow a prefix that does not stand.",
        ),
        Mistake(
            "every agreement counts",
            _standing(
                lambda drafted, checked, n: checked[: n + 1],
                count=lambda drafted, checked: sum(a == b for a, b in zip(drafted, checked, strict=False)),
            ),
            "You count agreements behind the first disagreement, too; there both tokens follow a prefix that does not "
            "stand.",
        ),
        Mistake(
            "agreements picked out",
            _standing(
                lambda drafted, checked, n: (
                    [a for a, b in zip(drafted, checked, strict=False) if a == b] + checked[n : n + 1]
                )
            ),
            "You keep drafted tokens that agree behind the first disagreement; they follow a prefix that does not "
            "stand.",
        ),
        Mistake(
            "on after eos",
            _standing(lambda drafted, checked, n: checked[: n + 1], end=lambda ids, eos_id: ids),
            "You go on after eos_id; the sentence ends with it, even if more drafted tokens agree.",
        ),
        Mistake(
            "one token behind eos",
            lambda drafted, checked, eos_id: (
                _to_eos(drafted[: _agreeing(drafted, checked)], eos_id)
                + checked[len(_to_eos(drafted[: _agreeing(drafted, checked)], eos_id)) :][:1]
            ),
            "You add the target's token behind eos_id, too; where eos_id stands, the sentence ends with it.",
        ),
        Mistake(
            "up to the last eos",
            _standing(
                lambda drafted, checked, n: checked[: n + 1],
                end=lambda ids, eos_id: ids[: len(ids) - ids[::-1].index(eos_id)] if eos_id in ids else ids,
            ),
            "You cut at the last eos_id; the sentence ends with the first.",
        ),
        Mistake(
            "without eos",
            _standing(
                lambda drafted, checked, n: checked[: n + 1],
                end=lambda ids, eos_id: ids[: ids.index(eos_id)] if eos_id in ids else ids,
            ),
            "You leave eos_id out; greedy decoding writes it as the last token.",
        ),
        Mistake(
            "a count",
            lambda drafted, checked, eos_id: _agreeing(drafted, checked),
            "You return how many drafted tokens stand; return the ids that are added to the sentence.",
        ),
    ),
    part="tokens_that_stand",
)


# 22.2 Accept or replace ----------------------------------------------------------------------------------------------


def acceptance(p, q):
    """Return (accept, residual), both [vocab_size], which make a token drawn from q a token drawn from p.

    p: the target's probabilities [vocab_size]; q: the draft's. A drafted token stands with the probability
    accept[token], which is as high as possible; where q is 0 it is 1. If it does not stand, another is drawn from the
    probabilities residual, so that in the end each token comes with its probability in p. Where nothing is ever
    refused, residual is p.
    """
    accept = [min(1.0, float(a / b)) if b > 0 else 1.0 for a, b in zip(p, q, strict=True)]
    missing = [max(float(a - b), 0.0) for a, b in zip(p, q, strict=True)]
    total = sum(missing)
    residual = [value / total for value in missing] if total > 0 else p.tolist()
    return torch.tensor(accept, dtype=p.dtype), torch.tensor(residual, dtype=p.dtype)


def _probabilities(values):
    values = values.clone()
    return values / values.sum()


def _drawing_case(label, seed, size, p_zeros=(), q_zeros=(), equal=False):
    """Return two distributions over `size` tokens, in float64, with zeros at the given places."""
    p, q = (values.exp() for values in normal(seed, (size,), (size,), dtype=torch.float64))
    p[list(p_zeros)], q[list(q_zeros)] = 0.0, 0.0
    p, q = _probabilities(p), _probabilities(q)
    return Case(label, (p, p.clone() if equal else q))


def _drawing_cases():
    return [
        Case(
            "three words",
            (torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64), torch.tensor([0.2, 0.7, 0.1], dtype=torch.float64)),
        ),
        _drawing_case("7 words", 2210, 7),
        _drawing_case("the draft never says 2 of 5 words", 2211, 5, q_zeros=(1, 4)),
        _drawing_case("the target never says 3 of 11 words", 2212, 11, p_zeros=(0, 5, 6)),
        _drawing_case("a word that neither says", 2213, 5, p_zeros=(2,), q_zeros=(2, 3)),
        _drawing_case("no word in common", 2214, 5, p_zeros=(0, 1), q_zeros=(2, 3, 4)),
        _drawing_case("both the same", 2215, 7, equal=True),
        _drawing_case("both the same, and a word that neither says", 2216, 7, p_zeros=(3,), equal=True),
    ]


def _quotient(a, b):
    return torch.where(b > 0, a / torch.where(b > 0, b, 1), 1.0)


def _accept(p, q):
    return _quotient(p, q).clamp(max=1)


def _normalised(values, p):
    return values / values.sum() if values.sum() > 0 else p.clone()


def _residual(p, q):
    return _normalised((p - q).clamp(min=0), p)


EXERCISE_2 = Exercise(
    "22.2",
    "Accept or replace",
    12,
    3,
    acceptance,
    _drawing_cases,
    (
        Mistake(
            "drawn from p again",
            lambda p, q: (_accept(p, q), p.clone()),
            "You replace a refused token by one drawn from p. Tokens of which the draft has too much would come too "
            "often: they stand already with all their probability in p. Only what is still missing may be drawn.",
        ),
        Mistake(
            "not normalised",
            lambda p, q: (
                _accept(p, q),
                (p - q).clamp(min=0) if (p - q).clamp(min=0).sum() > 0 else p.clone(),
            ),
            "The residual does not sum to 1; divide it by its sum.",
        ),
        Mistake(
            "never normalised",
            lambda p, q: (_accept(p, q), (p - q).clamp(min=0)),
            "The residual does not sum to 1; divide it by its sum. Where that is 0, return p.",
        ),
        Mistake(
            "absolute differences",
            lambda p, q: (_accept(p, q), _normalised((p - q).abs(), p)),
            "The residual has tokens of which the draft has too much: take max(0, p - q), not |p - q|.",
        ),
        Mistake(
            "q minus p",
            lambda p, q: (_accept(p, q), _normalised((q - p).clamp(min=0), p)),
            "The residual is the wrong way round: the tokens that are still missing are those with p above q.",
        ),
        Mistake(
            "p where it is larger",
            lambda p, q: (_accept(p, q), _normalised(torch.where(p > q, p, 0), p)),
            "The residual has the right tokens, but with their probabilities in p; missing of each is only p - q.",
        ),
        Mistake(
            "the likeliest",
            lambda p, q: (_accept(p, q), (torch.arange(len(p)) == p.argmax()).to(p)),
            "The residual always gives the target's best token; that is greedy, not a draw from p.",
        ),
        Mistake(
            "softmax of the differences",
            lambda p, q: (_accept(p, q), (p - q).clamp(min=0).softmax(0)),
            "The residual is a softmax of probabilities; divide max(0, p - q) by its sum.",
        ),
        Mistake(
            "no minimum",
            lambda p, q: (_quotient(p, q), _residual(p, q)),
            "Some of your accept are above 1, which is no probability: take min(1, p / q).",
        ),
        Mistake(
            "upside down",
            lambda p, q: (torch.where(q > 0, (q / torch.where(p > 0, p, 1e-300)).clamp(max=1), 1.0), _residual(p, q)),
            "The quotient is upside down: a token is refused when the draft has more of it than the target, so p / q.",
        ),
        Mistake(
            "upside down, and 0 / 0",
            lambda p, q: ((q / p).clamp(max=1), _residual(p, q)),
            "The quotient is upside down: a token is refused when the draft has more of it than the target, so p / q, "
            "and 1 where q is 0.",
        ),
        Mistake(
            "the smaller of the two",
            lambda p, q: (torch.minimum(p, q), _residual(p, q)),
            "min(p, q) is how often a token is drafted and stands. accept is asked for the tokens that have been "
            "drafted: divide by q.",
        ),
        Mistake(
            "p itself",
            lambda p, q: (p.clone(), _residual(p, q)),
            "You accept a drafted token with its probability in p. It was drafted with probability q, so it would "
            "stand with p · q.",
        ),
        Mistake(
            "all or nothing",
            lambda p, q: ((p >= q).to(p), _residual(p, q)),
            "You refuse every token of which the draft has more than the target; it is to be refused only sometimes, "
            "so that p of its q stands.",
        ),
        Mistake(
            "one number",
            lambda p, q: (torch.minimum(p, q).sum(), _residual(p, q)),
            "accept is a single number, how often any token stands; return one for each token.",
        ),
        Mistake(
            "0 / 0",
            lambda p, q: ((p / q).clamp(max=1), _residual(p, q)),
            "accept is NaN where neither has a word: 0 / 0. Where q is 0, accept is 1.",
        ),
        Mistake(
            "0 where it is never drafted",
            lambda p, q: (torch.where(q > 0, _accept(p, q), 0.0), _residual(p, q)),
            "accept is 0 where q is 0; return 1 there.",
        ),
        Mistake(
            "0 where neither has it",
            lambda p, q: ((p / q).clamp(max=1).nan_to_num(0.0), _residual(p, q)),
            "accept is 0 where neither has the word; where q is 0, return 1.",
        ),
        Mistake(
            "nothing missing",
            lambda p, q: (_accept(p, q), (p - q).clamp(min=0) / (p - q).clamp(min=0).sum()),
            "The residual is NaN where both distributions are the same: nothing is missing, so its sum is 0. Return p "
            "there.",
        ),
        Mistake(
            "neither is taken care of",
            lambda p, q: ((p / q).clamp(max=1), (p - q).clamp(min=0) / (p - q).clamp(min=0).sum()),
            "There are two quotients 0 / 0: accept where q is 0 (return 1), and the residual where both distributions "
            "are the same (return p).",
        ),
        Mistake(
            "swapped",
            lambda p, q: (_residual(p, q), _accept(p, q)),
            "The two results are swapped: accept comes first.",
        ),
    ),
    returns=("accept", "residual"),
)


# 22.3 Eight bits -----------------------------------------------------------------------------------------------------


def quantize(weight):
    """Return (codes, scales) of a weight [out, in]: whole numbers in int8 [out, in], and a scale for each row [out].

    A row's scale is its largest absolute value, divided by 127; of a row of zeros it is 1. The codes are the row
    divided by its scale, rounded to the nearest whole number, so that codes · scale is as near to the row as it gets.
    """
    codes, scales = [], []
    for row in weight:
        largest = max(abs(value) for value in row.tolist())
        scale = torch.tensor(largest, dtype=weight.dtype) / 127 if largest else torch.tensor(1, dtype=weight.dtype)
        scales.append(scale)
        codes.append(torch.round(row / scale))
    return torch.stack(codes).to(torch.int8), torch.stack(scales)


def _weight_case(label, seed, shape, factors=None, zero=()):
    weight = normal(seed, shape)[0]
    if factors is not None:
        weight = weight * torch.tensor(factors, dtype=weight.dtype)[:, None]
    weight[list(zero)] = 0
    return Case(label, (weight,))


def _weight_cases():
    return [
        Case("2 × 3, by hand", (torch.tensor([[1.27, -0.5, 0.1], [0.02, 0.0, -0.0254]]),)),
        _weight_case("3 × 5, rows of very different size", 2220, (3, 5), (0.01, 1.0, 100.0)),
        _weight_case("a row of zeros", 2221, (3, 7), zero=(1,)),
        Case("largest where it is negative", (-normal(2222, (5, 3))[0].abs() - torch.tensor([0.0, 0.5, 3.0]),)),
        _weight_case("7 × 7", 2223, (7, 7), (3.0, 0.2, 1.0, 5.0, 0.1, 2.0, 0.7)),
        _weight_case("11 × 2", 2224, (11, 2)),
    ]


def _scales(weight):
    largest = weight.abs().amax(dim=1)
    return torch.where(largest > 0, largest / 127, 1.0)


def _int8(values):
    return values.clamp(-32768, 32767).to(torch.int16).to(torch.int8)  # what does not fit wraps around


def _eight(scales=_scales, whole=torch.round, codes=_int8, give=lambda scales: scales):
    """Return codes and scales, each slip a switch."""

    def function(weight):
        used = scales(weight)
        return codes(whole(weight / used[:, None])), give(used)

    return function


def _by_column(weight):
    largest = weight.abs().amax(dim=0)
    scales = torch.where(largest > 0, largest / 127, 1.0)
    return torch.round(weight / scales).to(torch.int8), scales


def _for_all(weight):
    return (weight.abs().max() / 127).expand(len(weight)).clone()


def _shifted(weight):
    low, high = weight.amin(dim=1, keepdim=True), weight.amax(dim=1, keepdim=True)
    scales = torch.where(high > low, (high - low) / 255, 1.0)
    return (torch.round((weight - low) / scales) - 128).to(torch.int8), scales[:, 0]


EXERCISE_3 = Exercise(
    "22.3",
    "Eight bits",
    8,
    1,
    quantize,
    _weight_cases,
    (
        Mistake(
            "one scale for all",
            _eight(_for_all),
            "You used one scale for the whole matrix, its largest entry; a row of small numbers keeps hardly any "
            "digit. Each row has a scale of its own.",
        ),
        Mistake(
            "one scale, as a number",
            lambda weight: (torch.round(weight / _for_all(weight)[:1]).to(torch.int8), _for_all(weight)[0]),
            "You used one scale for the whole matrix, and return a single number; each row has a scale of its own.",
        ),
        Mistake(
            "by columns",
            _by_column,
            "Your scales belong to columns; each output, a row of the weight, has one: the largest over dim=1.",
        ),
        Mistake(
            "128",
            _eight(lambda weight: _scales(weight) * torch.where(weight.abs().amax(dim=1) > 0, 127 / 128, 1)),
            "Your scale is the largest divided by 128. Then the largest positive entry becomes 128, which int8 does "
            "not hold: it ends at 127, and 128 wraps around to -128.",
        ),
        Mistake(
            "128, clamped",
            _eight(
                lambda weight: _scales(weight) * torch.where(weight.abs().amax(dim=1) > 0, 127 / 128, 1),
                codes=lambda values: values.clamp(-128, 127).to(torch.int8),
            ),
            "Your scale is the largest divided by 128; it is to be divided by 127, the largest number that int8 holds.",
        ),
        Mistake(
            "255",
            _eight(lambda weight: _scales(weight) * torch.where(weight.abs().amax(dim=1) > 0, 127 / 255, 1)),
            "Your scale is the largest divided by 255; int8 goes to 127, and beyond it codes wrap around.",
        ),
        Mistake(
            "cut off",
            _eight(whole=torch.trunc),
            "You cut the digits off behind the point, as .to(torch.int8) does by itself; round to the nearest first.",
        ),
        Mistake(
            "rounded down",
            _eight(whole=torch.floor),
            "You rounded down; round to the nearest.",
        ),
        Mistake(
            "largest without its sign",
            _eight(lambda weight: torch.where(weight.amax(dim=1) != 0, weight.amax(dim=1) / 127, 1.0)),
            "You took the largest entry, not the largest absolute value; where a negative one is larger, it does not "
            "fit.",
        ),
        Mistake(
            "0 / 0",
            lambda weight: (
                torch.round(weight / _scales(weight)[:, None]).to(torch.int8),
                weight.abs().amax(dim=1) / 127,
            ),
            "The scale of a row of zeros is to be 1; yours is 0, or nearly 0.",
        ),
        Mistake(
            "not whole",
            lambda weight: (weight / _scales(weight)[:, None], _scales(weight)),
            "The codes are not rounded; they must be whole numbers, stored in int8.",
        ),
        Mistake(
            "whole, but floats",
            lambda weight: (torch.round(weight / _scales(weight)[:, None]), _scales(weight)),
            "The codes are whole numbers, but stored in floating point, so nothing is saved: convert them by "
            ".to(torch.int8).",
        ),
        Mistake(
            "the weight again",
            lambda weight: (
                torch.round(weight / _scales(weight)[:, None]) * _scales(weight)[:, None],
                _scales(weight),
            ),
            "You multiplied the codes by their scale again; that is how they are used. Return the codes.",
        ),
        Mistake(
            "scales as a column",
            _eight(give=lambda scales: scales[:, None]),
            "The scales have the shape [out, 1]; return [out], one number for each row.",
        ),
        Mistake(
            "one over the scale",
            _eight(give=lambda scales: 1 / scales),
            "The codes are right, but the scales are upside down: codes · scale is to be the row.",
        ),
        Mistake(
            "the largest for the scale",
            _eight(give=lambda scales: torch.where(scales == 1, 1.0, scales * 127)),
            "The codes are right, but as scales you return the largest values; divide them by 127.",
        ),
        Mistake(
            "from the smallest to the largest",
            _shifted,
            "You spread each row from its smallest to its largest entry; here 0 stays 0, and the scale is the largest "
            "absolute value / 127.",
        ),
        Mistake(
            "swapped",
            lambda weight: _eight()(weight)[::-1],
            "The two results are swapped: codes come first.",
        ),
    ),
    returns=("codes", "scales"),
)


# 22.4 A cache in pages -----------------------------------------------------------------------------------------------


def append(pages, table, length, free, row):
    """Return (pages, table, free) after one more token of a sentence has been written into a cache in pages.

    pages: [n_pages, page_size, d], the memory that all sentences share. table: a list of this sentence's pages, in the
    order of its tokens. length: how many tokens it has so far; free: a list of the pages that nobody uses. row: [d],
    to be written behind the sentence's last token. If its pages are full, it gets the first of free, as its last.
    What was given stays as it was.
    """
    size = pages.shape[1]
    table, free, pages = list(table), list(free), pages.detach().clone()
    if length == size * len(table):
        table, free = [*table, free[0]], free[1:]
    pages[table[length // size]][length % size] = row
    return pages, table, free


def _page_case(label, seed, n_pages, size, table, length, free, d=3):
    pages, row = normal(seed, (n_pages, size, d), (d,))
    return Case(label, (pages, list(table), length, list(free), row))


def _page_cases():
    return [
        _page_case("the second token of a page", 2230, 5, 3, [4], 1, [2, 0]),
        _page_case("a new page", 2231, 5, 3, [3, 1], 6, [4, 2, 0]),
        _page_case("the first token of a sentence", 2232, 3, 2, [], 0, [1, 0, 2]),
        _page_case("the last place of a page", 2233, 7, 5, [6, 2], 9, [3, 0]),
        _page_case("pages of one token", 2234, 5, 1, [2, 4], 2, [0, 3]),
        _page_case("the last free page", 2235, 5, 2, [4, 0, 3], 6, [1], d=2),
        _page_case("in the third of four pages' worth", 2236, 11, 4, [9, 1, 5], 10, [7, 3, 2], d=5),
    ]


def _page(
    full=lambda length, size: length % size == 0,
    take=lambda free: (free[0], free[1:]),
    joined=lambda table, page: [*table, page],
    place=lambda table, length, size: (table[length // size], length % size),
    kept=lambda old, new: new,
):
    """Return `append` with one step replaced; `kept` picks the table that is returned."""

    def function(pages, table, length, free, row):
        size, new, left = pages.shape[1], list(table), list(free)
        if full(length, size):
            page, left = take(left)
            new = joined(new, page)
        page, slot = place(new, length, size)
        pages = pages.clone()
        pages[page, slot] = row
        return pages, kept(list(table), new), left

    return function


EXERCISE_4 = Exercise(
    "22.4",
    "A cache in pages",
    10,
    2,
    append,
    _page_cases,
    (
        Mistake(
            "a page for each token",
            _page(full=lambda length, size: True, place=lambda table, length, size: (table[-1], length % size)),
            "Each token gets a new page; a page holds page_size tokens, and the next one is needed only when the last "
            "is full.",
        ),
        Mistake(
            "a page too early",
            _page(full=lambda length, size: length == 0 or (length + 1) % size == 0),
            "You take a new page when the row fills the last one; wait until the next token needs it.",
        ),
        Mistake(
            "no first page",
            _page(full=lambda length, size: length > 0 and length % size == 0),
            "At length 0 there is no page yet: a sentence's first token needs one, too.",
        ),
        Mistake(
            "a page one token off",
            _page(full=lambda length, size: (length + 1) % size == 0),
            "You compare length + 1 with the page's size. The pages are full where length is a multiple of it, and at "
            "length 0 there is none yet.",
        ),
        Mistake(
            "in the page of the same number",
            _page(place=lambda table, length, size: (length // size, length % size)),
            "You write into page number length // page_size of the memory; that is the place in the table, which "
            "says where this sentence's pages lie.",
        ),
        Mistake(
            "one place early",
            _page(place=lambda table, length, size: (table[length // size], length % size - 1)),
            "You write one place too early: the tokens so far have the places 0 to length - 1.",
        ),
        Mistake(
            "in the first page",
            _page(place=lambda table, length, size: (table[0], length % size)),
            "You always write into the sentence's first page; the newest token belongs into its last.",
        ),
        Mistake(
            "always at the beginning of the page",
            _page(place=lambda table, length, size: (table[-1], 0)),
            "You always write to the first place of the page; the place within it is length % page_size.",
        ),
        Mistake(
            "the last free page",
            _page(take=lambda free: (free[-1], free[:-1])),
            "You take the last of free; take the first.",
        ),
        Mistake(
            "still free",
            _page(take=lambda free: (free[0], free)),
            "The page that you take stays in free, and another sentence will take it as well.",
        ),
        Mistake(
            "not in the table",
            _page(kept=lambda old, new: old),
            "The new page is missing in the table that you return, and its token will never be found again.",
        ),
        Mistake(
            "in front of the table",
            _page(joined=lambda table, page: [page, *table]),
            "You put the new page in front of the table; the table has the order of the tokens, so it comes last.",
        ),
        Mistake(
            "one page twice",
            _page(joined=lambda table, page: [*table, page, page]),
            "The new page stands twice in the table.",
        ),
        Mistake(
            "added, not written",
            lambda pages, table, length, free, row: _page()(
                pages,
                table,
                length,
                free,
                row + pages[_page()(pages, table, length, free, row)[1][-1], length % pages.shape[1]],
            ),
            "You add the row to what lay in its place; a page that was used before is not empty. Replace it.",
        ),
        Mistake(
            "memory at its end",
            lambda pages, table, length, free, row: (
                torch.cat([pages, row.expand(1, *pages.shape[1:])]),
                *_page()(pages, table, length, free, row)[1:],
            ),
            "The memory has grown by a page; all pages are there from the beginning. Write into one of them.",
        ),
        Mistake(
            "table and free swapped",
            lambda pages, table, length, free, row: tuple(
                _page()(pages, table, length, free, row)[i] for i in (0, 2, 1)
            ),
            "The last two results are swapped: first the table, then what is left of free.",
        ),
        Mistake(
            "nothing written",
            lambda pages, table, length, free, row: (pages, *_page()(pages, table, length, free, row)[1:]),
            "Table and free are right, but the row is not in the pages that you return.",
        ),
    ),
    returns=("pages", "table", "free"),
)


# 22.5 One block of the backward pass ---------------------------------------------------------------------------------


def block_gradients(g, query, key, value, log_totals, shared, first_query, first_key):
    """Return (g_query, g_key, g_value) that one block of causal attention adds to the gradients.

    query: [q_len, d_k], the sentence's rows from first_query on; key: [k_len, d_k] and value: [k_len, d_v], those from
    first_key on. g: [q_len, d_v], the gradient with respect to these rows' outputs. log_totals: [q_len], the logarithm
    of the sum of e^score over all keys that a row may see; shared: [q_len], g · output. A row sees the keys of its own
    position and before. Scores are divided by √d_k.
    """
    root = math.sqrt(query.shape[1])
    g_query, g_key, g_value = torch.zeros_like(query), torch.zeros_like(key), torch.zeros_like(value)
    for i in range(len(query)):
        for j in range(len(key)):
            if first_key + j > first_query + i:
                continue
            weight = torch.exp(torch.dot(query[i], key[j]) / root - log_totals[i])
            g_score = weight * (torch.dot(g[i], value[j]) - shared[i]) / root
            g_query[i] += g_score * key[j]
            g_key[j] += g_score * query[i]
            g_value[j] += weight * g[i]
    return g_query, g_key, g_value


def _block_case(label, seed, length, queries, keys, d_k=3, d_v=5):
    """Return a block of a sentence of `length` rows; queries and keys are ranges of its positions."""
    g, query, key, value = normal(seed, (length, d_v), (length, d_k), (length, d_k), (length, d_v), dtype=torch.float64)
    scores = (query @ key.T / math.sqrt(d_k)).masked_fill(~torch.ones(length, length).tril().bool(), -math.inf)
    shared = (g * (scores.softmax(-1) @ value)).sum(-1)
    rows, columns = slice(*queries), slice(*keys)
    block = (g[rows], query[rows], key[columns], value[columns], scores.logsumexp(-1)[rows], shared[rows])
    return Case(label, (*block, queries[0], keys[0]))


def _overflowing_case():
    """Return a block whose last key is hidden from every query, with scores of 2,000: e^2000 is infinite."""
    case = _block_case("a later key with scores of 2,000", 2247, 7, (2, 5), (3, 6))
    g, query, key, *others = case.args
    key = key.clone()
    key[-1] = torch.linalg.solve(query, torch.full((3,), 2000 * math.sqrt(3), dtype=key.dtype))
    return Case(case.label, (g, query, key, *others))


def _block_cases():
    return [
        _block_case("queries 4 to 6, keys 0 to 2: all in the past", 2240, 7, (4, 7), (0, 3)),
        _block_case("queries and keys 3 to 5", 2241, 7, (3, 6), (3, 6)),
        _block_case("queries 2 to 6, keys 4 to 5", 2242, 7, (2, 7), (4, 6)),
        _block_case("queries 0 to 1, keys 5 to 9: all in the future", 2243, 11, (0, 2), (5, 10)),
        _block_case("the whole sentence as one block", 2244, 5, (0, 5), (0, 5), 5, 2),
        _block_case("a single query", 2245, 11, (7, 8), (5, 10), 2, 7),
        _block_case("queries and keys 3 to 5, d_k = d_v", 2246, 8, (3, 6), (3, 6), 3, 3),
        _overflowing_case(),
    ]


def _later(q_len, k_len, first_query, first_key):
    return first_key + torch.arange(k_len) > first_query + torch.arange(q_len)[:, None]


def _block(
    mask=lambda later: later,
    later=_later,
    weights=lambda scores, log_totals: (scores - log_totals[:, None]).exp(),
    g_scores=lambda weights, g_weights, shared: weights * (g_weights - shared[:, None]),
    scale=lambda root: (root, root),
    into_value=lambda weights, g_scores: weights,
):
    """Return the gradients of a block, each slip a switch; `scale` gives the divisors of scores and of gradients."""

    def function(g, query, key, value, log_totals, shared, first_query, first_key):
        down, up = scale(math.sqrt(query.shape[1]))
        hidden = mask(later(len(query), len(key), first_query, first_key))
        scores = (query @ key.T / down).masked_fill(hidden, -math.inf)
        seen = weights(scores, log_totals)
        g_scored = g_scores(seen, g @ value.T, shared)
        return g_scored @ key / up, g_scored.T @ query / up, into_value(seen, g_scored).T @ g

    return function


def _hidden_too_late(g, query, key, value, log_totals, shared, first_query, first_key):
    root = math.sqrt(query.shape[1])
    seen = ~_later(len(query), len(key), first_query, first_key)
    weights = (query @ key.T / root - log_totals[:, None]).exp() * seen
    g_scores = weights * (g @ value.T - shared[:, None]) / root
    return g_scores @ key, g_scores.T @ query, weights.T @ g


def _softmax_in_block(scores, log_totals):
    return scores.softmax(-1).nan_to_num(0.0)


EXERCISE_5 = Exercise(
    "22.5",
    "One block of the backward pass",
    12,
    3,
    block_gradients,
    _block_cases,
    (
        Mistake(
            "no mask",
            _block(mask=torch.zeros_like),
            "Queries see later keys: position first_query + i may see first_key + j only up to its own position.",
        ),
        Mistake(
            "hidden after the exponential",
            _hidden_too_late,
            "exp of a later key's score overflows, and inf · 0 is NaN: hide it before the exponential.",
        ),
        Mistake(
            "a mask from the block's corner",
            _block(later=lambda q_len, k_len, first_query, first_key: _later(q_len, k_len, 0, 0)),
            "Your mask counts positions from the corner of the block; they begin at first_query and first_key.",
        ),
        Mistake(
            "not its own position",
            _block(later=lambda q_len, k_len, first_query, first_key: _later(q_len, k_len, first_query, first_key + 1)),
            "A row does not see its own position in your mask; hidden are only the keys behind it.",
        ),
        Mistake(
            "past hidden",
            _block(later=lambda *sizes: ~_later(*sizes)),
            "Your mask is the wrong way round: the future is hidden, not the past.",
        ),
        Mistake(
            "softmax within the block",
            _block(weights=_softmax_in_block),
            "You took the softmax within the block, but a row's weights are shared by all its blocks: "
            "exp(score - log_totals).",
        ),
        Mistake(
            "shared missing",
            _block(g_scores=lambda weights, g_weights, shared: weights * g_weights),
            "The gradient of the softmax is incomplete: subtract shared from g · value before you multiply by the "
            "weights.",
        ),
        Mistake(
            "the block's own sum",
            _block(
                g_scores=lambda weights, g_weights, shared: (
                    weights * (g_weights - (weights * g_weights).sum(-1, keepdim=True))
                )
            ),
            "You subtract the block's own sum of weight · (g · value); the softmax needs the sum over all keys, and "
            "that is shared.",
        ),
        Mistake(
            "added",
            _block(g_scores=lambda weights, g_weights, shared: weights * (g_weights + shared[:, None])),
            "shared is to be subtracted from g · value, not added.",
        ),
        Mistake(
            "not multiplied by the weights",
            _block(
                g_scores=lambda weights, g_weights, shared: torch.where(weights > 0, g_weights - shared[:, None], 0.0)
            ),
            "The weights are missing in the gradient of the scores: weight · (g · value - shared).",
        ),
        Mistake(
            "gradients not divided",
            _block(scale=lambda root: (root, 1)),
            "The gradients of query and key are too large by √d_k: the scores were divided by it, so their gradient "
            "is, too.",
        ),
        Mistake(
            "scores not divided",
            _block(scale=lambda root: (1, root)),
            "Your scores are not divided by √d_k, so exp(score - log_totals) are not the weights.",
        ),
        Mistake(
            "never divided",
            _block(scale=lambda root: (1, 1)),
            "√d_k is missing altogether: the scores are divided by it, and so is their gradient.",
        ),
        Mistake(
            "gradients of the scores for the values",
            _block(into_value=lambda weights, g_scores: g_scores),
            "g_value is made of the gradients of the scores; the values were blended by the weights, so weightsᵀ · g.",
        ),
        Mistake(
            "totals for their logarithms",
            _block(weights=lambda scores, log_totals: scores.exp() / log_totals[:, None]),
            "You divide by log_totals; they are logarithms, so subtract them from the scores before the exponential.",
        ),
        Mistake(
            "g_query and g_key swapped",
            lambda *args: tuple(_block()(*args)[place] for place in (1, 0, 2)),
            "The first two results are swapped: g_query comes first.",
        ),
        Mistake(
            "as query, key, value, but negative",
            lambda *args: tuple(-part for part in _block()(*args)),
            "Every sign is wrong.",
        ),
    ),
    returns=("g_query", "g_key", "g_value"),
)

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5)
