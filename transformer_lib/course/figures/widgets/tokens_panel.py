"""W18, the tokenizer stepper: byte-pair encoding of a few words, merge by merge."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ..svg import Picture
from ..svg import tokens as drawing
from .controls import number
from .panel import Panel

MOST_WORDS, LONGEST, MOST_PAIRS = 8, 12, 6
WORDS = {"low": 5, "lower": 2, "newest": 6, "widest": 3}


@dataclass(frozen=True)
class Moment:
    """Byte-pair encoding after some merges.

    words: the tokens of each word, with its count; pairs: the pairs with their counts, the one merged next first;
    vocabulary: the tokens in the order of their ids; merged: the pair that was joined last.
    """

    words: tuple[tuple[tuple[str, ...], int], ...]
    pairs: tuple[tuple[tuple[str, str], int], ...]
    vocabulary: tuple[str, ...]
    merged: tuple[str, str] | None = None


def bpe_moments(counts: Mapping[str, int], most: int = 30) -> list[Moment]:
    """Return every moment of byte-pair encoding, from characters until no pair is left or ``most`` merges are done.

    counts: how often each word occurs. Ties go to the pair whose left token, then whose right token, has the lower id.
    """
    words = tuple((tuple(word), count) for word, count in counts.items())
    vocabulary = tuple(sorted({token for tokens, _ in words for token in tokens}))
    moments = [Moment(words, _ranked(words, vocabulary), vocabulary)]
    while moments[-1].pairs and len(moments) <= most:
        left, right = pair = moments[-1].pairs[0][0]
        words = tuple((_joined(tokens, pair), count) for tokens, count in moments[-1].words)
        vocabulary = tuple(dict.fromkeys((*moments[-1].vocabulary, left + right)))
        moments.append(Moment(words, _ranked(words, vocabulary), vocabulary, pair))
    return moments


def bpe_stepper(counts: Mapping[str, int] | None = None, *, step: int = 0) -> Panel:
    """Watch byte-pair encoding learn from a few words; the slider goes from merge to merge.

    counts: up to 8 words of up to 12 letters with how often each occurs, such as {"low": 5, "lower": 2}.
    Raises ValueError for more or longer words, or counts that are not positive integers.
    """
    moments = bpe_moments(_checked(WORDS if counts is None else counts))

    def draw(merges: int) -> Picture:
        return draw_moment(moments[merges], merges)

    return Panel(draw, {"merges": number("merges", step, 0, len(moments) - 1)}, widget_id="W18")


def draw_moment(moment: Moment, merges: int) -> Picture:
    """Draw words, pairs and vocabulary after this number of merges."""
    newest = "".join(moment.merged) if moment.merged else None
    shown = moment.pairs[:MOST_PAIRS]
    parts = [drawing.words_part(moment.words, newest, 22), drawing.pairs_part(shown, 22)]
    below = 22 + 22 + drawing.ROW * max(len(moment.words), len(shown), 1) + 26
    vocabulary, height = drawing.vocabulary_part(moment.vocabulary, newest, below)
    says = describe(moment, merges)
    words = "; ".join(f"{count} times {' '.join(tokens)}" for tokens, count in moment.words)
    return Picture("".join([*parts, vocabulary]), drawing.WIDTH, round(height), f"{says} The words: {words}.", says)


def describe(moment: Moment, merges: int) -> str:
    """Say what the picture shows, in one line."""
    length = sum(len(tokens) * count for tokens, count in moment.words)
    done = f"After {merges} merges" + (f", last {' + '.join(moment.merged)}" if moment.merged else "")
    size = f"{len(moment.vocabulary)} tokens in the vocabulary, {length} in the text"
    if not moment.pairs:
        return f"{done}: {size}; no pair is left."
    (left, right), count = moment.pairs[0]
    return f"{done}: {size}; next {left} + {right}, {count} times."


def _ranked(words: tuple, vocabulary: tuple[str, ...]) -> tuple:
    id_of = {token: i for i, token in enumerate(vocabulary)}
    counts: Counter = Counter()
    for tokens, count in words:
        for pair in itertools.pairwise(tokens):
            counts[pair] += count
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], id_of[item[0][0]], id_of[item[0][1]])))


def _joined(tokens: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    merged, i = [], 0
    while i < len(tokens):
        size = 2 if tokens[i : i + 2] == pair else 1
        merged.append("".join(tokens[i : i + size]))
        i += size
    return tuple(merged)


def _checked(counts: Mapping[str, int]) -> Mapping[str, int]:
    if not 1 <= len(counts) <= MOST_WORDS:
        raise ValueError(f"counts must have 1 to {MOST_WORDS} words to fit the picture, got {len(counts)}")
    for word, count in counts.items():
        if not 2 <= len(word) <= LONGEST:
            raise ValueError(f"counts must have words of 2 to {LONGEST} letters, got {word!r}")
        if not isinstance(count, int) or count < 1:
            raise ValueError(f"counts must give each word a positive integer, got {word!r}: {count!r}")
    return counts
