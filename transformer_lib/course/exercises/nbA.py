"""The exercises of notebook A: how to check a claim."""

from __future__ import annotations

import math

import torch

from .model import Case, Exercise, Mistake, normal

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


def _found(claim, cases):
    return [index for index, case in enumerate(cases) if not claim(case)]


EXERCISE_1 = Exercise(
    "A.1",
    "The first counterexample",
    5,
    1,
    first_counterexample,
    _first_cases,
    (
        Mistake(
            "first that holds",
            lambda claim, cases: next((i for i, c in enumerate(cases) if claim(c)), -1),
            "You return the first case for which the claim holds; a counterexample is one where it does not.",
        ),
        Mistake(
            "last",
            lambda claim, cases: (_found(claim, cases) or [-1])[-1],
            "You return the last counterexample; stop at the first.",
        ),
        Mistake(
            "how many",
            lambda claim, cases: len(_found(claim, cases)),
            "You count the counterexamples; return the index of the first.",
        ),
        Mistake(
            "the case",
            lambda claim, cases: next((c for c in cases if not claim(c)), -1),
            "You return the case itself; return its index in the list.",
        ),
        Mistake(
            "from 1",
            lambda claim, cases: first_counterexample(claim, cases) + 1,
            "You are off by one: indices count from 0, and −1 means that there is none.",
        ),
        Mistake(
            "gives up",
            lambda claim, cases: 0 if cases and not claim(cases[0]) else -1,
            "You look at the first case only: `return -1` comes after the loop, not inside it.",
        ),
        Mistake(
            "gives up, in a loop",
            lambda claim, cases: (0 if not claim(cases[0]) else -1) if cases else None,
            "You leave at the first case: `return -1` comes after the loop, not in an `else` inside it.",
        ),
        Mistake(
            "asks the index",
            lambda claim, cases: next((i for i in range(len(cases)) if not claim(i)), -1),
            "You ask the claim about the index; ask it about the case.",
        ),
        Mistake(
            "length",
            lambda claim, cases: next((i for i, c in enumerate(cases) if not claim(c)), len(cases)),
            "Without a counterexample you return the length of the list; return −1.",
        ),
        Mistake(
            "None",
            lambda claim, cases: next((i for i, c in enumerate(cases) if not claim(c)), None),
            "Without a counterexample you return None; return −1, after the loop.",
        ),
        Mistake(
            "all but the last",
            lambda claim, cases: first_counterexample(claim, cases[:-1]),
            "You never ask about the last case.",
        ),
        Mistake(
            "counted from 1",
            lambda claim, cases: next((i for i, c in enumerate(cases, start=1) if not claim(c)), -1),
            "You count from 1; indices count from 0.",
        ),
    ),
)


# A.2 Could it be printed so? -----------------------------------------------------------------------------------------


def could_be_printed(printed, exact, decimals):
    """Return for every entry whether rounding the exact number to so many decimals can give the printed one.

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
    "A.2",
    "Could it be printed so?",
    8,
    1,
    could_be_printed,
    _printed_cases,
    (
        Mistake(
            "whole unit",
            lambda p, e, d: (p - e).abs() <= 10.0**-d,
            "You allow a whole unit of the last digit. Rounding moves a number by at most half of one.",
        ),
        Mistake("equal", lambda p, e, d: p == e, "You ask for equality, which rounded numbers almost never have."),
        Mistake(
            "no abs",
            lambda p, e, d: p - e <= 0.5 * 10.0**-d,
            "You allow any print that is too small: take the absolute value of the difference.",
        ),
        Mistake(
            "abs of each",
            lambda p, e, d: (p.abs() - e.abs()).abs() <= 0.5 * 10.0**-d,
            "-0.42 is no print of 0.42: take the absolute value of the difference, not of the numbers.",
        ),
        Mistake(
            "isclose, with its own rtol",
            lambda p, e, d: torch.isclose(p, e, atol=0.5 * 10.0**-d),
            "isclose also allows rtol · |exact|; set rtol=0.",
        ),
        Mistake(
            "rounded down",
            lambda p, e, d: (p - (e * 10.0**d).floor() / 10.0**d).abs() < 1e-9,
            "You rounded down; a print is rounded to the nearest.",
        ),
        Mistake(
            "one digit further",
            lambda p, e, d: (p - e).abs() <= 10.0 ** -(d + 1),
            "You allow a tenth of a unit of the last digit; half of a unit is allowed.",
        ),
        Mistake(
            "both cut off",
            lambda p, e, d: (p * 10.0**d).trunc() == (e * 10.0**d).trunc(),
            "You cut off both numbers and compare what is left; a print is rounded.",
        ),
        Mistake(
            "relative",
            lambda p, e, d: (p - e).abs() <= 10.0**-d * e.abs(),
            "Your tolerance grows with the number. Digits after the point give the same room to all numbers.",
        ),
        Mistake(
            "cut off",
            lambda p, e, d: (p - (e * 10.0**d).trunc() / 10.0**d).abs() < 1e-9,
            "You cut the digits off instead of rounding: .0349 is printed as .03, and .027 as .03 too.",
        ),
        Mistake(
            "always two decimals",
            lambda p, e, d: (p - e).abs() <= 0.005,
            "You allow .005 whatever is printed; the room depends on `decimals`.",
        ),
        Mistake(
            "opposite",
            lambda p, e, d: (p - e).abs() > 0.5 * 10.0**-d,
            "You return True where the print is wrong.",
        ),
        Mistake(
            "one answer",
            lambda p, e, d: could_be_printed(p, e, d).all(),
            "You return one answer for all; return one for each entry.",
        ),
    ),
)


# A.3 Radians or degrees? ---------------------------------------------------------------------------------------------


def agreeing_entries(printed, decimals):
    """Return how many entries of a printed table of sinusoids agree with it in radians, and how many in degrees.

    printed: [n, d_model], d_model even; row p, feature 2j is sin(p / 10000^(2j/d_model)), feature 2j + 1 the cosine of
    the same angle; rows are counted from 0. An entry agrees when rounding to `decimals` digits can give it.
    Returns (radians, degrees), two integers.
    """
    return tuple(int(_agree(printed, decimals, unit).sum()) for unit in (1.0, math.pi / 180))


def _agree(printed, decimals, unit, *, first=0, exponent=2.0, swap=False, half=0.5, halves=False):
    """Return which entries agree with sinusoids of angles in this unit; `halves`: sines first, then all cosines."""
    n, width = printed.shape
    position = torch.arange(first, first + n, dtype=torch.float64)[:, None]
    pair = torch.arange(width // 2, dtype=torch.float64)
    angle = position / 10000.0 ** (exponent * pair / width) * unit
    parts = (angle.cos(), angle.sin()) if swap else (angle.sin(), angle.cos())
    table = torch.cat(parts, dim=-1) if halves else torch.stack(parts, dim=-1).reshape(n, width)
    return (printed - table).abs() <= half * 10.0**-decimals


def _counted(**changes):
    return lambda printed, decimals: tuple(
        int(_agree(printed, decimals, unit, **changes).sum()) for unit in (1.0, math.pi / 180)
    )


def _whole_rows(printed, decimals):
    return tuple(int(_agree(printed, decimals, unit).all(dim=1).sum()) for unit in (1.0, math.pi / 180))


def _sinusoid_cases():
    text = [[0, 1, 0, 1], [0.02, 1, 0, 1], [0.04, 1, 0, 1], [0.05, 1, 0, 1]]

    def case(label, n, width, decimals, unit, spoiled=()):
        position, pair = torch.arange(n, dtype=torch.float64)[:, None], torch.arange(width // 2, dtype=torch.float64)
        angle = position / 10000.0 ** (2 * pair / width) * unit
        table = torch.stack((angle.sin(), angle.cos()), dim=-1).reshape(n, width).mul(10**decimals).round()
        table /= 10**decimals
        for row, column in spoiled:
            table[row, column] += 0.9 * 10.0**-decimals
        return Case(label, (table, decimals))

    return [
        Case("the table of text 5", (torch.tensor(text, dtype=torch.float64), 2)),
        case("5 positions in radians, two entries spoiled", 5, 6, 2, 1.0, [(1, 0), (3, 4)]),
        case("7 positions in degrees", 7, 2, 3, math.pi / 180),
        case("11 positions in radians, one decimal", 11, 8, 1, 1.0),
        case("13 positions in degrees, spoiled", 13, 10, 3, math.pi / 180, [(2, 0), (2, 5), (12, 9)]),
    ]


EXERCISE_3 = Exercise(
    "A.3",
    "Radians or degrees?",
    12,
    2,
    agreeing_entries,
    _sinusoid_cases,
    (
        Mistake(
            "swapped",
            lambda p, d: agreeing_entries(p, d)[::-1],
            "The two counts are swapped: radians come first.",
        ),
        Mistake("whole unit", _counted(half=1.0), "You allow a whole unit of the last digit: half of one is enough."),
        Mistake("from 1", _counted(first=1), "Your rows start at position 1; the first row is position 0."),
        Mistake(
            "single exponent",
            _counted(exponent=1.0),
            "Your exponent is j/d_model; it is 2j/d_model, where j counts the pairs.",
        ),
        Mistake("sine and cosine swapped", _counted(swap=True), "Even features are sines, odd ones cosines."),
        Mistake(
            "two halves",
            _counted(halves=True),
            "You put all sines first and the cosines behind them; sine and cosine of a pair stand side by side.",
        ),
        Mistake(
            "always two decimals",
            lambda p, d: _counted(half=0.5 * 10.0 ** (d - 2))(p, d),
            "You allow .005 whatever is printed; the room depends on `decimals`.",
        ),
        Mistake("whole rows", _whole_rows, "You count rows that agree as a whole; count entries."),
        Mistake(
            "converted the wrong way",
            lambda p, d: (agreeing_entries(p, d)[0], int(_agree(p, d, 180 / math.pi).sum())),
            "Your degrees are multiplied by 180/π; an angle of x degrees is x · π/180 radians.",
        ),
        Mistake(
            "shares",
            lambda p, d: tuple(count / p.numel() for count in agreeing_entries(p, d)),
            "You return shares; return counts.",
        ),
    ),
    returns=("radians", "degrees"),
)


# A.4 Which widths fit? -----------------------------------------------------------------------------------------------


def width_range(scores, printed, decimals):
    """Return the smallest and the largest d_k for which softmax(scores / √d_k), rounded, gives the printed weights.

    scores: two numbers [2]. printed: their two weights [2], which sum to 1; the larger score has the larger one.
    decimals: how many digits are printed. Take d_k as any number above 0. Where every small d_k fits, low is 0; where
    every large one does, high is math.inf. Returns (low, high), the ends of the range.
    """
    return _range(scores, printed, 0.5 * 10.0**-decimals)


def _range(scores, printed, half, *, power=2, odds=True, flip=False):
    gap = abs(float(scores[1] - scores[0]))
    weight = float(printed.max())

    def width(p):
        steepness = math.log(p / (1 - p)) if odds else -math.log(p)
        return (gap / steepness) ** power

    low = 0.0 if weight + half >= 1 else width(weight + half)
    high = math.inf if weight - half <= 0.5 else width(weight - half)
    return (high, low) if flip else (low, high)


def _point(scores, printed, decimals):
    both = _range(scores, printed.clamp(1e-9, 1 - 1e-9), 0.0)
    return both[0], both[0]


def _second_weight(scores, printed, half):
    def width(p):
        return (float(scores[1] - scores[0]) / math.log(p / (1 - p))) ** 2

    weight = float(printed[1])
    low = 0.0 if weight + half >= 1 else width(weight + half)
    return low, math.inf if weight - half <= 0.5 else width(weight - half)


def _inverted(scores, printed, decimals):
    low, high = width_range(scores, printed, decimals)
    return (1 / high if high else math.inf), (1 / low if low else math.inf)


def _width_cases():
    def case(label, scores, printed, decimals):
        return Case(
            label, (torch.tensor(scores, dtype=torch.float64), torch.tensor(printed, dtype=torch.float64), decimals)
        )

    return [
        case("scores 1 and 3, weights .27 and .73", [1.0, 3.0], [0.27, 0.73], 2),
        case("the row “not” of text 5", [3.2, 21.5], [0.13, 0.87], 2),
        case("the larger score first, one decimal", [7.0, 2.0], [0.8, 0.2], 1),
        case("printed as 0 and 1", [-4.0, 9.0], [0.0, 1.0], 2),
        case("printed as one half each", [5.0, 6.0], [0.5, 0.5], 2),
        case("three decimals", [-2.5, -31.0], [0.953, 0.047], 3),
    ]


EXERCISE_4 = Exercise(
    "A.4",
    "Which widths fit?",
    15,
    3,
    width_range,
    _width_cases,
    (
        Mistake("root", lambda s, p, d: _range(s, p, 0.5 * 10.0**-d, power=1), "You return √d_k; square it."),
        Mistake(
            "swapped",
            lambda s, p, d: _range(s, p, 0.5 * 10.0**-d, flip=True),
            "The ends are swapped: a larger weight means a smaller d_k.",
        ),
        Mistake(
            "whole unit",
            lambda s, p, d: _range(s, p, 10.0**-d),
            "You allow a whole unit of the last digit: half of one is enough.",
        ),
        Mistake("a point", _point, "You return one d_k, for the printed digits as they are; they stand for a range."),
        Mistake(
            "the second weight",
            lambda s, p, d: _second_weight(s, p, 0.5 * 10.0**-d),
            "The larger weight may come first; printed.max() is it in either order.",
        ),
        Mistake(
            "no odds",
            lambda s, p, d: _range(s, p, 0.5 * 10.0**-d, odds=False),
            "You use the logarithm of one weight. The ratio of the two weights is exp(difference / √d_k).",
        ),
        Mistake("one over", _inverted, "You return 1/d_k: the scores are divided by √d_k, not multiplied."),
        Mistake(
            "one over, unsorted",
            lambda s, p, d: _inverted(s, p, d)[::-1],
            "You return 1/d_k, the ends swapped: the scores are divided by √d_k, not multiplied.",
        ),
        Mistake(
            "whole widths",
            lambda s, p, d: tuple(end if math.isinf(end) else float(round(end)) for end in width_range(s, p, d)),
            "You round to whole widths; here d_k may be any number above 0.",
        ),
        Mistake(
            "always two decimals",
            lambda s, p, d: _range(s, p, 0.005),
            "You allow .005 whatever is printed; the room depends on `decimals`.",
        ),
        Mistake(
            "no scaling",
            lambda s, p, d: _range(torch.tensor([0.0, 1.0]), p, 0.5 * 10.0**-d),
            "Your range does not depend on the scores.",
        ),
        Mistake(
            "None",
            lambda s, p, d: tuple(None if end in (0.0, math.inf) else end for end in width_range(s, p, d)),
            "Where there is no end you return None; return 0 or math.inf.",
        ),
    ),
    returns=("low", "high"),
)

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4)
