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


# A.3 Radians or degrees? ---------------------------------------------------------------------------------------------


def agreeing_entries(printed, decimals):
    """Return how many entries of a printed table of sinusoids agree with it in radians, and how many in degrees.

    printed: [n, d_model], d_model even; row p, feature 2j is sin(p / 10000^(2j/d_model)), feature 2j + 1 the cosine of
    the same angle; rows are counted from 0. An entry agrees when rounding to `decimals` digits can give it.
    Returns (radians, degrees), two integers.
    """
    return tuple(int(_agree(printed, decimals, unit).sum()) for unit in (1.0, math.pi / 180))


def _agree(printed, decimals, unit):
    """Return which entries agree with sinusoids of angles in this unit."""
    n, width = printed.shape
    position = torch.arange(n, dtype=torch.float64)[:, None]
    pair = torch.arange(width // 2, dtype=torch.float64)
    angle = position / 10000.0 ** (2.0 * pair / width) * unit
    table = torch.stack((angle.sin(), angle.cos()), dim=-1).reshape(n, width)
    return (printed - table).abs() <= 0.5 * 10.0**-decimals


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
    "A.3", "Radians or degrees?", 12, 2, agreeing_entries, _sinusoid_cases,
    slips(
        "printed, decimals", """
            n, d_model = printed.shape
            position = torch.arange(n, dtype=torch.float64)[:, None]
            pair = torch.arange(d_model // 2, dtype=torch.float64)
            counts = []
            for unit in (1.0, math.pi / 180):
                angle = unit * position / 10000 ** (2 * pair / d_model)
                parts = angle.sin(), angle.cos()
                table = torch.stack(parts, dim=-1).flatten(1)
                agree = (printed - table).abs() <= 0.5 * 10.0**-decimals
                counts.append(int(agree.sum()))
            return tuple(counts)
        """,
        ("swapped", "(1.0, math.pi / 180)", "(math.pi / 180, 1.0)", "The two counts are swapped: radians come first."),
        ("whole unit", "0.5 * ", "", "You allow a whole unit of the last digit: half of one is enough."),
        ("single exponent", "2 * pair", "pair",
         "Your exponent is j/d_model; it is 2j/d_model, where j counts the pairs."),
        ("two halves", "torch.stack(parts, dim=-1).flatten(1)", "torch.cat(parts, dim=-1)",
         "You put all sines first and the cosines after them; the sine and cosine of a pair are side by side."),
        ("always two decimals", "0.5 * 10.0**-decimals", "0.005",
         "You allow .005 whatever is printed; the tolerance depends on `decimals`."),
        ("whole rows", "agree.sum()", "agree.all(dim=1).sum()", "You count rows that agree as a whole; count entries."),
        ("converted the wrong way", "math.pi / 180", "180 / math.pi",
         "Your degrees are multiplied by 180/π; an angle of x degrees is x · π/180 radians."),
    ),
    returns=("radians", "degrees"),
)  # fmt: skip


# A.4 Which widths fit? -----------------------------------------------------------------------------------------------


def width_range(scores, printed, decimals):
    """Return the smallest and the largest d_k for which softmax(scores / √d_k), rounded, gives the printed weights.

    scores: two numbers [2]. printed: their two weights [2], which sum to 1; the larger score has the larger one.
    decimals: how many digits are printed. Take d_k as any number above 0. Where every small d_k fits, low is 0; where
    every large one does, high is math.inf. Returns (low, high), the ends of the range.
    """
    half = 0.5 * 10.0**-decimals
    gap = abs(float(scores[1] - scores[0]))
    weight = float(printed.max())

    def width(p):
        return (gap / math.log(p / (1 - p))) ** 2

    low = 0.0 if weight + half >= 1 else width(weight + half)
    high = math.inf if weight - half <= 0.5 else width(weight - half)
    return low, high


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
    "A.4", "Which widths fit?", 15, 3, width_range, _width_cases,
    slips(
        "scores, printed, decimals", """
            half = 0.5 * 10.0**-decimals
            gap = abs(float(scores[1] - scores[0]))
            weight = float(printed.max())

            def width(p):
                return (gap / math.log(p / (1 - p))) ** 2

            low = width(weight + half) if weight + half < 1 else 0.0
            high = width(weight - half) if weight - half > 0.5 else math.inf
            return low, high
        """,
        ("root", " ** 2", "", "You return √d_k; square it."),
        ("swapped", "return low, high", "return high, low",
         "The ends are swapped: a larger weight means a smaller d_k."),
        ("whole unit", "0.5 * ", "", "You allow a whole unit of the last digit: half of one is enough."),
        ("a point", "return low, high", "point = width(min(weight, 1 - 1e-9))\nreturn point, point",
         "You return one d_k, for the printed digits as they are; they stand for a range."),
        ("the second weight", "printed.max()", "printed[1]",
         "The larger weight may come first; printed.max() gives it in either order."),
        ("no odds", "math.log(p / (1 - p))", "-math.log(p)",
         "You use the logarithm of one weight. The ratio of the two weights is exp(difference / √d_k)."),
        ("always two decimals", "0.5 * 10.0**-decimals", "0.005",
         "You allow .005 whatever is printed; the tolerance depends on `decimals`."),
    ),
    returns=("low", "high"),
)  # fmt: skip

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4)
