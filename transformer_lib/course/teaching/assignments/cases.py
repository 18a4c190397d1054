"""Cases that no student has seen: an exercise's own ones with other numbers, and more where they hold none.

An exercise draws most of its inputs from a seed, so another seed gives inputs of the same shapes, and the
edge cases stay. Where inputs are written by hand (sizes, words, lists of ids), `MORE` draws others.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import torch

from ...exercises.model import Case, Exercise, other_numbers

DRAWS = 5  # cases drawn by an entry of MORE
SIZES = (2, 3, 5, 7, 11, 13, 17, 19, 23)


def unseen_cases(exercise: Exercise, seed: int) -> list[Case]:
    """Return the cases of an exercise for a secret seed: the same for the same seed, on every machine.

    Args:
        exercise: any exercise of the course.
        seed: an integer of at least 1,000,000, so that no shown case comes back.

    Raises:
        ValueError: if the seed is smaller.
    """
    with other_numbers(seed):
        cases = exercise.cases()
    draw, rng = MORE.get(exercise.original or exercise.id), random.Random(f"{exercise.id} {seed}")
    if draw is None:
        return cases
    return cases + [Case(f"another one, {number}", draw(rng)) for number in range(1, DRAWS + 1)]


def _numbers(rng: random.Random, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    values = [rng.gauss(0, 1) for _ in range(math.prod(shape))]
    return torch.tensor(values, dtype=torch.float64).reshape(*shape).to(dtype)


def _ids(rng: random.Random, rows: int, columns: int, low: int, high: int) -> torch.Tensor:
    return torch.tensor([[rng.randrange(low, high) for _ in range(columns)] for _ in range(rows)])


def _sizes(count: int) -> Callable[[random.Random], tuple]:
    return lambda rng: tuple(rng.choice(SIZES) for _ in range(count))


def _fast_memory(rng: random.Random) -> tuple:
    d, tile = rng.choice((3, 5, 11, 31)), rng.choice((2, 3, 7))
    return 4 * tile * d + tile * tile + rng.randrange(100, 5000), d, tile


def _without_one(rng: random.Random) -> tuple:
    q_len, k_len, d_v = (rng.choice(SIZES) for _ in range(3))
    return torch.softmax(_numbers(rng, (q_len, k_len)), dim=-1), _numbers(rng, (k_len, d_v)), rng.randrange(k_len)


def _even(rng: random.Random) -> int:
    return 2 * rng.choice(SIZES)


def _one_connection(rng: random.Random) -> tuple:
    n = rng.choice(SIZES)
    return n, rng.randrange(n), rng.randrange(n)


def _enough(rng: random.Random) -> tuple:
    n, alone = rng.choice((3, 5, 7)), rng.randint(0, 9)
    query, key = rng.sample(range(n), 2)

    def count_right(mask: torch.Tensor) -> int:
        """12 with the one connection, fewer with another, none where a word does not see itself."""
        pairs = (mask & ~torch.eye(n, dtype=torch.bool)).nonzero().tolist()
        single = 12 if pairs == [[query, key]] else sum(3 * i + 5 * j for i, j in pairs) % 12
        return (single if pairs else alone) if mask.diagonal().all() else 0

    return count_right, n


def _softmax(rng: random.Random) -> tuple:
    shift = rng.choice(("amax", "amin", "mean"))
    most, cut = rng.choice((40.0, 70.0)), rng.random() < 0.5

    def softmax(scores: torch.Tensor) -> torch.Tensor:
        """Safe only if it takes off the largest score of each row and cuts nothing."""
        shifted = scores - getattr(scores, shift)(-1, keepdim=True)
        powers = (shifted.clamp(min=-most, max=most) if cut and shift != "amax" else shifted).exp()
        return powers / powers.sum(-1, keepdim=True)

    return (softmax,)


def _components(rng: random.Random) -> tuple:
    return rng.choice(SIZES), rng.uniform(-3, 3), rng.uniform(0.1, 4), rng.uniform(-3, 3), rng.uniform(0.1, 4)


def _confidence(rng: random.Random) -> tuple:
    scores = _numbers(rng, [rng.choice(SIZES)])
    return scores + 0.5 * (scores == scores.max()), rng.uniform(0.6, 0.95)


def _words(rng: random.Random, letters: str = "abc") -> list[str]:
    return ["".join(rng.choices(letters, k=rng.randint(1, 4))) for _ in range(rng.choice((7, 11)))]


def _counted_words(rng: random.Random) -> tuple:
    words = [list(word) for word in _words(rng)] + [["a", "b"]]
    return words, [rng.randint(1, 5) for _ in words]


def _pair(rng: random.Random) -> tuple:
    return rng.choice("ab"), rng.choice("ab")


def _merges(rng: random.Random) -> tuple:
    tokens, merges = ["▁", "a", "b", "c"], []
    for _ in range(7):
        merges.append((rng.choice(tokens), rng.choice(tokens)))
        tokens.append("".join(merges[-1]))
    return "▁" + "".join(rng.choices("abc", k=17)), list(dict.fromkeys(merges))


def _vocabulary(rng: random.Random) -> tuple:
    word = "".join(rng.choices("abc", k=17))
    starts = [rng.randrange(14) for _ in range(7)]
    return word, sorted({"a", "b", "c", *(word[start : start + rng.randint(2, 4)] for start in starts)})


def _encoding(position: int, d_model: int) -> torch.Tensor:
    angle = position / 10000.0 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten().float()


def _table(rng: random.Random) -> tuple:
    n, n_answers = rng.choice((2, 3, 5, 7)), rng.choice((3, 5, 7, 11))
    return _ids(rng, n, n, 0, n_answers), n_answers


def _offset(rng: random.Random) -> tuple:
    d_model, start, offset = rng.choice((4, 6, 10)), rng.randint(100, 200), rng.randint(-47, 47)
    return _encoding(start, d_model), _encoding(start + offset, d_model), 53


def _leak(rng: random.Random) -> tuple:
    length, vocab_size = rng.choice((3, 5, 7)), 7
    sees = torch.tensor([[s <= t or rng.random() < 0.4 for s in range(length)] for t in range(length)])
    table, places = _numbers(rng, (vocab_size, 11)), _numbers(rng, (length, 1)).abs() + 1
    return lambda ids: sees.float() @ (places * table[ids]), _ids(rng, 1, length, 0, vocab_size)[0], vocab_size


def _segments(rng: random.Random) -> tuple:
    return (_ids(rng, rng.choice((2, 3)), rng.choice((5, 7, 11)), 0, 4).sort(descending=True).values,)


def _reading(rng: random.Random) -> tuple:
    mask = _numbers(rng, (rng.choice((7, 11)),) * 2) > rng.uniform(0.7, 1.3)
    return mask, rng.randint(0, 4)


def _model_sizes(rng: random.Random) -> tuple:
    source, target, tied = rng.choice(SIZES), rng.choice(SIZES), rng.random() < 0.5
    d_model, d_ff, n_layers = 2 * rng.choice(SIZES), rng.choice(SIZES), rng.randint(1, 5)
    return d_model, d_ff, n_layers, source + 4, (source if tied else target) + 4, tied


def _logits(rng: random.Random) -> tuple:
    return (rng.choice((1.0, 10.0, 1000.0)) * _numbers(rng, (rng.choice(SIZES), rng.choice(SIZES))),)


def _validation_losses(rng: random.Random) -> tuple:
    best = rng.randint(2, 8)
    losses = [round(1 + abs(epoch - best) / 10 + rng.uniform(0, 0.5), 2) for epoch in range(13)]
    return losses, rng.randint(1, 4)


def _pruning(rng: random.Random) -> tuple:
    heads = rng.sample(range(6), rng.randint(3, 6))
    costs = dict(zip(heads, rng.sample(range(1, 20), len(heads)), strict=True))
    groups = [set(rng.sample(heads, 2)) for _ in range(3)]

    def score(silent: Sequence[int]) -> int:
        """Minus the costs of the silent heads, and 15 more for each group that is silent altogether."""
        return -sum(costs[head] for head in set(silent)) - 15 * sum(group <= set(silent) for group in groups)

    return score, heads, rng.randint(1, len(heads))


def _labels(rng: random.Random) -> tuple:
    known, asked = (rng.choices("abcdef", k=rng.randint(3, 9)) for _ in range(2))
    return known, asked, [rng.randrange(7) for _ in range(12)]


def _lenders(rng: random.Random) -> tuple:
    def one() -> tuple[str, ...]:
        return (
            rng.choice(("er", "sie", "es")),
            rng.choice(("first", "second")),
            *rng.sample(["dog", "cat", "box", "car"], 2),
        )

    return one(), [one() for _ in range(13)]


def _greedy(rng: random.Random) -> tuple:
    table = _numbers(rng, (13, 13))
    return lambda ids: table[ids[-1]] + len(ids) * table[ids[0]], rng.randrange(3), rng.randrange(3, 9), 11


def _two_sentences(rng: random.Random) -> tuple:
    table = torch.log_softmax(_numbers(rng, (13, 13), torch.float64), dim=-1)
    found, right = ([1, *(rng.randrange(3, 13) for _ in range(rng.randrange(3, 7))), 2] for _ in range(2))
    return found, right, lambda ids: table[ids[-1]]


def _nucleus(rng: random.Random) -> tuple:
    return _numbers(rng, (rng.choice(SIZES[2:]),)), rng.uniform(0.2, 0.99), rng.uniform(0.5, 2.0)


def _claim(rng: random.Random) -> tuple:
    limit = rng.randint(20, 40)
    return lambda case: case < limit, rng.sample(range(50), 13)


def _printed_table(rng: random.Random) -> tuple:
    n, width, decimals = rng.choice((3, 5, 7)), rng.choice((4, 6, 10)), rng.choice((2, 3))
    pair, position = (torch.arange(size, dtype=torch.float64) for size in (width // 2, n))
    code = rng.random() < 0.5
    angle = position[:, None] / 10000.0 ** (pair / (width / 2 - 1) if code else 2 * pair / width)
    table = (
        torch.cat((angle.sin(), angle.cos()), -1) if code else torch.stack((angle.sin(), angle.cos()), -1).flatten(1)
    )
    table = table.mul(10**decimals).round()
    table[rng.randrange(n), rng.randrange(width)] += 3
    return table / 10**decimals, decimals


def _printed_millions(rng: random.Random) -> tuple:
    models, words = rng.choice((2, 3, 5)), rng.randint(20_000, 60_000)
    others = torch.tensor([rng.randint(1_000_000, 900_000_000) for _ in range(models)], dtype=torch.float64)
    width = torch.tensor([rng.choice((256, 512, 768, 1024)) for _ in range(models)], dtype=torch.float64)
    return ((others + words * width) / 1e6).round(), others, width


def _bags_of_words(rng: random.Random) -> tuple:
    rows, columns, vocab_size = rng.choice((1, 2, 3)), rng.choice((2, 5, 7)), rng.choice((5, 7))
    ids = _ids(rng, rows, columns, 0, vocab_size)
    return _numbers(rng, (rows, columns, rng.choice((2, 3, 5))), torch.float64).numpy(), ids.numpy(), vocab_size


def _step_of_adam(rng: random.Random) -> tuple:
    shape = (rng.choice(SIZES), rng.choice(SIZES))
    parameter, g, mean, root = (_numbers(rng, shape, torch.float64).numpy() for _ in range(4))
    betas, eps = (rng.uniform(0.5, 0.95), rng.uniform(0.8, 0.999)), rng.choice((1e-9, 0.1))
    return parameter, g, mean, root**2, rng.randint(1, 50), rng.uniform(0.01, 0.5), *betas, eps


def _prefixes(rng: random.Random) -> tuple:
    seq_len = rng.choice(SIZES[3:])
    return torch.tensor([rng.randint(0, seq_len) for _ in range(rng.choice((2, 3, 5)))]), seq_len


def _sentences_to_hide(rng: random.Random) -> tuple:
    longest = rng.choice(SIZES[2:])
    rows = []
    for _ in range(3):
        words = rng.randint(1, longest - 2)
        rows.append([1, *(rng.randrange(4, 99) for _ in range(words)), 2, *[0] * (longest - 2 - words)])
    drawn = torch.tensor([[rng.random() for _ in range(longest)] for _ in rows])
    return torch.tensor(rows), rng.choice((0.2, 0.4, 0.7)), drawn


def _window(rng: random.Random) -> tuple:
    k_len = rng.choice(SIZES[3:])
    return rng.randint(1, k_len), k_len, rng.randint(1, k_len)


MORE: dict[str, Callable[[random.Random], tuple]] = {
    "00.3": _one_connection,
    "00.4": _enough,
    "01.6": _confidence,
    "02.4": lambda rng: (rng.uniform(0.5, 5), rng.randint(0, 20)),
    "03.2": _without_one,
    "03.3": lambda rng: (rng.choice(SIZES[1:]), rng.uniform(0.4, 0.98)),
    "03.5": _sizes(5),
    "04.2": _components,
    "04.3": _softmax,
    "05.1": _counted_words,
    "05.2": lambda rng: (rng.choices("aab", k=13), _pair(rng)),
    "05.3": _merges,
    "05.7": _vocabulary,
    "06.1": lambda rng: (rng.choice(SIZES), _even(rng)),
    "06.3": lambda rng: (rng.randint(-29, 29), _even(rng)),
    "06.4": _offset,
    "07.1": lambda rng: (rng.randint(12, 40),),
    "07.2": lambda rng: (_ids(rng, 3, rng.choice((5, 7)), 0, 4), rng.randrange(4)),
    "07.4": _leak,
    "07.5": _segments,
    "09.2": _table,
    "10.3": _reading,
    "10.4": lambda rng: (rng.randrange(31, 101),),
    "13.6": lambda rng: (rng.randrange(210, 900),),
    "12.3": _model_sizes,
    "12.4": _logits,
    "13.2": _validation_losses,
    "14.1": _greedy,
    "14.3": _nucleus,
    "14.6": _two_sentences,
    "15.4": _pruning,
    "15.5": _labels,
    "15.7": _lenders,
    "16.1": _sizes(4),
    "16.2": _sizes(3),
    "16.6": _fast_memory,
    "18.3": _bags_of_words,
    "18.5": _step_of_adam,
    "19.1": _prefixes,
    "19.3": _sentences_to_hide,
    "20.4": _window,
    "A.1": _claim,
    "A.3": _printed_table,
    "A.4": _printed_millions,
}
