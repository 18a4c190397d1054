"""How good translations are: exact match, sense accuracy, BLEU and chrF, each with a bootstrap interval."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass

import sacrebleu

from .._lists import check_items, check_texts
from .._validate import check_int
from .corpora import Pair, check_pairs
from .tokenizers import WordTokenizer


@dataclass(frozen=True)
class Score:
    """A mean with the 95 % bootstrap interval of its sampling error, in the metric's own unit."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def exact_matches(translations: Iterable[str], pairs: Iterable[Pair]) -> list[bool]:
    """Return for each pair whether its translation equals the reference, character for character."""
    return [translation == pair.tgt for translation, pair in _together(translations, pairs)]


def sense_matches(translations: Iterable[str], pairs: Iterable[Pair]) -> list[bool]:
    """Return for each *ambiguous* pair whether its translation uses the right sense, whatever else it says.

    Right means: the expected form occurs, and the form of no other sense does.
    """
    return [
        _has_sense(WordTokenizer.tokenize(translation), pair)
        for translation, pair in _together(translations, pairs)
        if pair.expected
    ]


def sense_choices(translations: Iterable[str], pairs: Iterable[Pair]) -> list[bool]:
    """Return, for each ambiguous pair whose translation uses exactly one of the senses, whether it is the right one.

    A translator that knows the word but not its context chooses at chance; `sense_matches` also counts against it
    every sentence in which it names no sense at all.
    """
    choices = []
    for translation, pair in _together(translations, pairs):
        tokens = set(WordTokenizer.tokenize(translation))
        named = {form for form in (pair.expected, *other_forms(pair)) if form in tokens} if pair.expected else set()
        if len(named) == 1:
            choices.append(named == {pair.expected})
    return choices


def other_forms(pair: Pair) -> list[str]:
    """Return the words that take the place of `pair.expected` in the contrasting translations."""
    position = WordTokenizer.tokenize(pair.tgt).index(pair.expected)
    contrasts = [WordTokenizer.tokenize(text) for text in pair.contrast]
    return [tokens[position] for tokens in contrasts if position < len(tokens)]


def _has_sense(tokens: list[str], pair: Pair) -> bool:
    return pair.expected in tokens and not set(other_forms(pair)) & set(tokens)


def bootstrap(values: Iterable[float], *, resamples: int = 1000, seed: int = 0) -> Score:
    """Return the mean of `values` and the 2.5th and 97.5th percentile of the means of resampled values."""
    listed = check_items("values", values, "numbers")
    if not listed:
        raise ValueError("values must not be empty, got none")
    check_int("resamples", resamples)
    rng = random.Random(seed)
    count = len(listed)
    means = sorted(sum(rng.choices(listed, k=count)) / count for _ in range(resamples))
    return Score(sum(listed) / count, means[int(0.025 * resamples)], means[int(0.975 * resamples)])


def bleu(
    translations: Iterable[str], pairs: Iterable[Pair], *, resamples: int = 1000, lowercase: bool = False
) -> Score:
    """Return corpus BLEU (0–100) as sacrebleu computes it (13a tokens; case matters unless `lowercase`)."""
    return _corpus_score(sacrebleu.BLEU(lowercase=lowercase), translations, pairs, resamples)


def chrf(translations: Iterable[str], pairs: Iterable[Pair], *, resamples: int = 1000) -> Score:
    """Return corpus chrF2 (0–100) as sacrebleu computes it."""
    return _corpus_score(sacrebleu.CHRF(), translations, pairs, resamples)


def _corpus_score(
    metric: sacrebleu.BLEU | sacrebleu.CHRF, translations: Iterable[str], pairs: Iterable[Pair], resamples: int
) -> Score:
    both = _together(translations, pairs)
    if not both:
        raise ValueError("translations must not be empty, got none")
    check_int("resamples", resamples, minimum=2)
    said, wanted = [translation for translation, _ in both], [pair.tgt for _, pair in both]
    result = metric.corpus_score(said, [wanted], n_bootstrap=resamples)
    low, high = result._mean - result._ci, result._mean + result._ci
    return Score(float(result.score), float(low), float(high))  # sacrebleu's are NumPy numbers, which JSON refuses


def _together(translations: Iterable[str], pairs: Iterable[Pair]) -> list[tuple[str, Pair]]:
    """Return each translation with its pair."""
    said, wanted = check_texts("translations", translations), check_pairs("pairs", pairs)
    if len(said) != len(wanted):
        raise ValueError(f"translations must be as many as pairs, got {len(said)} and {len(wanted)}")
    return list(zip(said, wanted, strict=True))
