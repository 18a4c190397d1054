"""The exercises of notebook A: how to check a claim."""

from __future__ import annotations

import math

import torch

from .model import Case, Exercise, normal
from .slips import slips

# A.1 The first counterexample ----------------------------------------------------------------------------------------


def first_counterexample(claim, cases):
    """Return the index of the first case for which the claim is not true, or −1 when there is none.

    claim: a function of one case that returns True or False. cases: a list. Returns an integer, counted from 0.
    """
    for index, case in enumerate(cases):
        if not claim(case):
            return index
    return -1


def _prime(number):
    return number > 1 and all(number % divisor for divisor in range(2, math.isqrt(number) + 1))


def _first_cases():
    drawn = [tuple(row.tolist()) for row in normal(3101, (3,), (5,))]  # not tensors: index() compares them with ==
    rows = [*drawn, (0.5, 2.0), (1.0, -1.0)]
    return [
        Case("n is odd: 7, 5, 2, 9", (lambda n: n % 2 == 1, [7, 5, 2, 9])),
        Case("Euler: n² + n + 41 is prime", (lambda n: _prime(n * n + n + 41), list(range(45)))),
        Case("n (n + 1) is even", (lambda n: n * (n + 1) % 2 == 0, list(range(2, 13)))),
        Case("n is greater than 3: 3, 5, 1", (lambda n: n > 3, [3, 5, 1])),
        Case("no cases at all", (lambda n: False, [])),
        Case("softmax weights never exceed a half", (lambda row: max(torch.tensor(row).softmax(0)) <= 0.5, rows)),
        Case("n is odd: 1, 3, 5, 4", (lambda n: n % 2 == 1, [1, 3, 5, 4])),
    ]


EXERCISE_1 = Exercise(
    "A.1", "The first counterexample", 5, 1, first_counterexample, _first_cases,
    slips(
        "claim, cases", """
            for index, case in enumerate(cases):
                if not claim(case):
                    return index
            return -1
        """,
        ("first that holds", "not ", "",
         "You return the first case for which the claim holds; a counterexample is one where it does not."),
        ("the case", "return index", "return case", "You return the case itself; return its index in the list."),
        ("gives up, in a loop", "return -1", "    return -1",
         "You leave at the first case: `return -1` comes after the loop, not inside it (nor in an `else` there)."),
        ("None", "return -1", "return None", "Without a counterexample you return None; return −1, after the loop."),
        ("counted from 1", "enumerate(cases)", "enumerate(cases, start=1)", "You count from 1; indices count from 0."),
        ("how many", "for index, case in enumerate(cases):\n    if not claim(case):\n        return index\nreturn -1",
         "return sum(not claim(case) for case in cases)",
         "You count the counterexamples; return the index of the first."),
    ),
)  # fmt: skip


# A.2 Could it be printed so? -----------------------------------------------------------------------------------------


def could_be_printed(printed, exact, decimals):
    """Return for every entry whether the printed number can be the exact one, rounded.

    printed, exact: numbers of the same shape, in float64. decimals: how many digits are printed after the point.
    Returns booleans of that shape. No exact number lies half-way between two printed ones.
    """
    return (printed - exact).abs() <= 0.5 * 10.0**-decimals


def _printed_cases():
    def case(label, seed, shape, decimals):
        exact, kind = normal(seed, shape, shape, dtype=torch.float64)
        units = exact * 10**decimals
        near = torch.where(kind > 0.9, units.round() + 1, torch.where(kind < -0.9, units.trunc(), units.round()))
        return Case(label, (near / 10**decimals, exact, decimals))  # a quotient is the float nearest to what is printed

    one_each = torch.tensor([0.84, 0.54, 0.02, -0.42, 0.5], dtype=torch.float64)
    truth = torch.tensor([0.841471, 0.540302, 0.0349, -0.4161, 0.5], dtype=torch.float64)
    signs = torch.tensor([1.0, -1.0, 1.0, -1.0, -1.0], dtype=torch.float64)
    return [
        Case("five numbers, two decimals", (one_each, truth, 2)),
        Case("three of five with the wrong sign", (one_each * signs, truth, 2)),
        case("one decimal", 3111, (7,), 1),
        case("a table, three decimals", 3112, (3, 11), 3),
        case("whole numbers", 3113, (13,), 0),
        case("a table, two decimals", 3114, (5, 7), 2),
    ]


EXERCISE_2 = Exercise(
    "A.2", "Could it be printed so?", 8, 1, could_be_printed, _printed_cases,
    slips(
        "printed, exact, decimals", "return (printed - exact).abs() <= 0.5 * 10.0**-decimals",
        ("whole unit", "0.5 * ", "",
         "You allow a whole unit of the last digit. Rounding moves a number by at most half of one."),
        ("equal", "(printed - exact).abs() <= 0.5 * 10.0**-decimals", "printed == exact",
         "You ask for equality, which rounded numbers almost never have."),
        ("no abs", ".abs()", "",
         "You allow any printed number that is too small: take the absolute value of the difference."),
        ("always two decimals", "0.5 * 10.0**-decimals", "0.005",
         "You allow .005 whatever is printed; the tolerance depends on `decimals`."),
        ("one answer", "(printed - exact).abs() <= 0.5 * 10.0**-decimals",
         "((printed - exact).abs() <= 0.5 * 10.0**-decimals).all()",
         "You return one answer for all; return one for each entry."),
    )
    + slips(
        "printed, exact, decimals", "return torch.isclose(printed, exact, rtol=0, atol=0.5 * 10.0**-decimals)",
        ("isclose, with its own rtol", "rtol=0, ", "", "isclose also allows rtol · |exact|; set rtol=0."),
    )
    + slips(
        "printed, exact, decimals", "return (printed - exact.round(decimals=decimals)).abs() < 1e-9",
        ("cut off", "exact.round(decimals=decimals)", "(exact * 10**decimals).trunc() / 10**decimals",
         "You cut the digits off instead of rounding: .0349 is printed as .03, and .027 as .03 too."),
    ),
)  # fmt: skip


# A.3 Which formula was it? -------------------------------------------------------------------------------------------


def agreeing_entries(printed, decimals):
    """Return how many entries of a printed table of sinusoids agree with the paper, and how many with the code.

    printed: [n, d_model], d_model even and at least 4; rows p are counted from 0, pairs j from 0 to d_model/2 - 1. The
    paper has sin(p / 10000^(2j/d_model)) in feature 2j and the cosine of the same angle in feature 2j + 1. The code has
    sin(p / 10000^(j/(d_model/2 - 1))) in feature j and the cosine of that angle in feature d_model/2 + j. An entry
    agrees when rounding to `decimals` digits can give it. Returns (paper, code), two integers.
    """
    agree = [(printed - _sinusoids(*printed.shape, code)).abs() <= 0.5 * 10.0**-decimals for code in (False, True)]
    return tuple(int(entries.sum()) for entries in agree)


def _sinusoids(n, width, code):
    """Return the table of Tensor2Tensor, the code, or of the paper, [n, width]."""
    position = torch.arange(n, dtype=torch.float64)[:, None]
    pair = torch.arange(width // 2, dtype=torch.float64)
    angle = position / 10000.0 ** (pair / (width / 2 - 1) if code else 2.0 * pair / width)
    parts = angle.sin(), angle.cos()
    return torch.cat(parts, dim=-1) if code else torch.stack(parts, dim=-1).reshape(n, width)


def _sinusoid_cases():
    post = [[0, 0, 1, 1], [0.84, 0.0001, 0.54, 1], [0.91, 0.0002, -0.42, 1]]

    def case(label, n, width, decimals, code, spoiled=()):
        table = _sinusoids(n, width, code).mul(10**decimals).round() / 10**decimals
        for row, column in spoiled:
            table[row, column] += 0.9 * 10.0**-decimals
        return Case(label, (table, decimals))

    return [
        Case("the picture of the post", (torch.tensor(post, dtype=torch.float64), 2)),
        case("5 positions of the paper, two entries spoiled", 5, 6, 2, False, [(1, 0), (3, 4)]),
        case("7 positions of the code", 7, 4, 3, True),
        case("11 positions of the paper, one decimal", 11, 8, 1, False),
        case("13 positions of the code, spoiled", 13, 10, 3, True, [(2, 0), (2, 5), (12, 9)]),
    ]


EXERCISE_3 = Exercise(
    "A.3", "Which formula was it?", 12, 2, agreeing_entries, _sinusoid_cases,
    slips(
        "printed, decimals", """
            n, d_model = printed.shape
            position = torch.arange(n, dtype=torch.float64)[:, None]
            pair = torch.arange(d_model // 2, dtype=torch.float64)
            paper = position / 10000 ** (2 * pair / d_model)
            code = position / 10000 ** (pair / (d_model / 2 - 1))
            in_turn = torch.stack((paper.sin(), paper.cos()), dim=-1).flatten(1)
            in_halves = torch.cat((code.sin(), code.cos()), dim=-1)
            counts = []
            for table in (in_turn, in_halves):
                agree = (printed - table).abs() <= 0.5 * 10.0**-decimals
                counts.append(int(agree.sum()))
            return tuple(counts)
        """,
        ("swapped", "(in_turn, in_halves)", "(in_halves, in_turn)", "The counts are swapped: the paper comes first."),
        ("whole unit", "0.5 * ", "", "You allow a whole unit of the last digit: half of one is enough."),
        ("single exponent", "2 * pair", "pair",
         "Your exponent for the paper is j/d_model; it is 2j/d_model, where j counts the pairs."),
        ("the paper in halves", "torch.stack((paper.sin(), paper.cos()), dim=-1).flatten(1)",
         "torch.cat((paper.sin(), paper.cos()), dim=-1)",
         "In your table of the paper all sines come first; there the sine and cosine of a pair are side by side."),
        ("the code in turn", "torch.cat((code.sin(), code.cos()), dim=-1)",
         "torch.stack((code.sin(), code.cos()), dim=-1).flatten(1)",
         "In your table of the code sines and cosines alternate; there all sines come first."),
        ("one set of frequencies", "pair / (d_model / 2 - 1)", "2 * pair / d_model",
         "You gave the code the paper's frequencies; its exponents are j/(d_model/2 − 1) and end at 1."),
        ("always two decimals", "0.5 * 10.0**-decimals", "0.005",
         "You allow .005 whatever is printed; the tolerance depends on `decimals`."),
        ("whole rows", "agree.sum()", "agree.all(dim=1).sum()", "You count rows that agree as a whole; count entries."),
    ),
    returns=("paper", "code"),
)  # fmt: skip


# A.4 Which vocabularies fit? -----------------------------------------------------------------------------------------


def vocabulary_range(printed, others, width):
    """Return the smallest and the largest vocabulary with which all printed parameter counts can be right.

    printed: parameters of each model in millions, rounded to whole ones [n]. others: the exact number of all its
    parameters but the table of embeddings [n]. width: its d_model [n]. All in float64. The table has a row of width
    d_model for each word, and all models have the same words. Some vocabulary fits them all.
    Returns (low, high), whole numbers of words.
    """
    low = ((printed - 0.5) * 1e6 - others) / width
    high = ((printed + 0.5) * 1e6 - others) / width
    return math.ceil(low.max().item()), math.floor(high.min().item())


def _vocabulary_cases():
    def case(label, words, others, width):
        others, width = (torch.tensor(numbers, dtype=torch.float64) for numbers in (others, width))
        return Case(label, (((others + words * width) / 1e6).round(), others, width))

    return [
        case("one model", 31_013, [17_300_123], [512]),
        case("two models", 50_021, [44_127_232, 176_278_528], [512, 1024]),
        case("the second alone sets both ends", 40_009, [10_000_019, 1_500_000_043], [256, 1600]),
        case("three models", 29_989, [85_056_000, 302_311_424, 708_390_400], [768, 1024, 1280]),
        case(
            "five models", 37_003, [1_700_021, 7_000_003, 14_000_029, 44_000_017, 90_000_049], [128, 256, 384, 512, 768]
        ),
    ]


EXERCISE_4 = Exercise(
    "A.4", "Which vocabularies fit?", 10, 2, vocabulary_range, _vocabulary_cases,
    slips(
        "printed, others, width", """
            million = 1e6
            middle, room = printed * million - others, 0.5 * million
            low, high = ((middle + step) / width for step in (-room, room))
            return math.ceil(low.max().item()), math.floor(high.min().item())
        """,
        ("whole unit", "0.5 * million", "million", "You allow a whole million; rounding moves by half of one."),
        ("any model", "math.ceil(low.max().item()), math.floor(high.min().item())",
         "math.ceil(low.min().item()), math.floor(high.max().item())",
         "Your range has what fits at least one model; it must fit them all, so take the largest `low`, the smallest "
         "`high`."),
        ("first model", "math.ceil(low.max().item()), math.floor(high.min().item())",
         "math.ceil(low[0].item()), math.floor(high[0].item())",
         "You use the first model alone; the others narrow the range."),
        ("rounded outwards", "math.ceil(low.max().item()), math.floor(high.min().item())",
         "math.floor(low.max().item()), math.ceil(high.min().item())",
         "You round outwards, to vocabularies that just do not fit: the smallest is rounded up, the largest down."),
        ("swapped", "return math.ceil(low.max().item()), math.floor(high.min().item())",
         "return math.floor(high.min().item()), math.ceil(low.max().item())",
         "The ends are swapped: the smaller comes first."),
        ("thousands", "1e6", "1e3", "A million is 1e6."),
        ("two tables", "/ width", "/ (2 * width)",
         "You count two tables; the one of embeddings is the output head, too, and there is one."),
    ),
    returns=("low", "high"),
)  # fmt: skip

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4)
