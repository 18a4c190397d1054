from __future__ import annotations

import random

import numpy as np
import pytest
import sacrebleu

import transformer_lib as tl
from transformer_lib.data.metrics import (
    Score,
    bleu,
    bootstrap,
    chrf,
    exact_matches,
    other_forms,
    sense_choices,
    sense_matches,
)

pytestmark = pytest.mark.fast

UFER = tl.Pair(
    "The man saw the bank near the river.",
    "Der Mann sah das Ufer am Fluss.",
    contrast=("Der Mann sah die Bank am Fluss.",),
    word="bank",
    sense="das Ufer",
    expected="Ufer",
    cue="river",
)
WAAGE = tl.Pair(
    "He saw the scale of the fish.",
    "Er sah die Schuppe des Fisches.",
    contrast=("Er sah die Waage des Fisches.", "Er sah die Tonleiter des Fisches."),
    word="scale",
    expected="Schuppe",
)
PLAIN = tl.Pair("He sees.", "Er sieht.")
IT = tl.Pair(
    "The animal did not cross the street because it was tired.",
    "Das Tier überquerte die Straße nicht, weil es müde war.",
    contrast=("Das Tier überquerte die Straße nicht, weil sie müde war.",),
    word="it",
    expected="es",
)
PAIRS = [UFER, WAAGE, PLAIN, IT]


def test_exact_match_is_to_the_letter():
    translations = [UFER.tgt, WAAGE.tgt.lower(), PLAIN.tgt, IT.tgt + " "]
    assert exact_matches(translations, PAIRS) == [True, False, True, False]


def test_other_forms_stand_where_the_expected_one_stands():
    assert other_forms(UFER) == ["Bank"]
    assert other_forms(WAAGE) == ["Waage", "Tonleiter"]
    assert other_forms(IT) == ["sie"]


def test_a_contrast_that_ends_too_early_has_no_form():
    assert other_forms(tl.Pair("", "Er sah das Ufer", contrast=("Er sah",), expected="Ufer")) == []


@pytest.mark.parametrize(
    ("translation", "right"),
    [
        ("Der Mann sah das Ufer am Fluss.", True),
        ("Ein Kind malte ein Ufer.", True),  # whatever else it says
        ("Der Mann sah die Bank am Fluss.", False),
        ("Der Mann sah das Ufer und die Bank.", False),  # both senses
        ("Der Mann sah den Fluss.", False),  # neither
        ("Der Mann sah das Uferchen.", False),  # whole words count
        ("", False),
    ],
)
def test_the_sense_is_right(translation, right):
    assert sense_matches([translation], [UFER]) == [right]


def test_unambiguous_pairs_do_not_count():
    translations = [pair.tgt for pair in PAIRS]
    assert sense_matches(translations, PAIRS) == [True, True, True]
    translations[1] = "Er sah die Tonleiter."
    assert sense_matches(translations, PAIRS) == [True, False, True]


def test_choices_are_counted_where_one_was_made():
    pairs = [UFER, UFER, UFER, UFER, PLAIN, WAAGE]
    translations = ["Das Ufer.", "Die Bank.", "Der Fluss.", "Das Ufer und die Bank.", "Er sieht.", "Eine Tonleiter."]
    assert sense_choices(translations, pairs) == [True, False, False]
    assert sense_matches(translations, pairs) == [True, False, False, False, False]


def test_the_first_letter_of_a_sentence_does_not_hide_a_sense():
    pair = tl.Pair("It was tired.", "Es war müde.", contrast=("Sie war müde.",), expected="es")
    assert sense_matches(["Es war müde.", "Sie war müde."], [pair, pair]) == [True, False]


def test_bootstrap_of_a_mean():
    values = [1.0] * 30 + [0.0] * 70
    random.Random(3).shuffle(values)
    score = bootstrap(values, resamples=2000)
    assert score.mean == pytest.approx(0.3)
    half = 1.96 * (0.3 * 0.7 / 100) ** 0.5  # the normal approximation
    assert score.low == pytest.approx(0.3 - half, abs=0.025) and score.high == pytest.approx(0.3 + half, abs=0.025)


def test_bootstrap_of_equal_values_has_no_width():
    assert bootstrap([0.5] * 7) == Score(0.5, 0.5, 0.5)


def test_bootstrap_is_repeatable():
    values = [float(i % 3) for i in range(50)]
    assert bootstrap(values) == bootstrap(values) != bootstrap(values, seed=1)


def test_a_score_prints_short():
    assert str(Score(0.98765, 0.9, 1.0)) == "0.988 [0.900, 1.000]"


@pytest.mark.parametrize(("ours", "theirs"), [(bleu, sacrebleu.corpus_bleu), (chrf, sacrebleu.corpus_chrf)])
def test_corpus_scores_are_sacrebleus(ours, theirs):
    references = [pair.tgt for pair in PAIRS]
    translations = ["Der Mann sah die Bank am Fluss.", "Er sieht die Schuppe eines Fisches.", "Er sieht.", IT.tgt]
    score = ours(translations, PAIRS, resamples=50)
    assert score.mean == pytest.approx(theirs(translations, [references]).score)
    assert {type(number) for number in (score.mean, score.low, score.high)} == {float}  # which JSON takes
    assert score.low < score.high and score == ours(translations, PAIRS, resamples=50)
    assert ours(references, PAIRS, resamples=5) == Score(*[pytest.approx(100.0)] * 3)


def test_bad_arguments_are_refused():
    for metric in (exact_matches, sense_matches, sense_choices, bleu, chrf):
        with pytest.raises(ValueError, match="translations must be as many as pairs, got 1 and 4"):
            metric(["Er sieht."], PAIRS)
    for metric in (bleu, chrf):
        with pytest.raises(ValueError, match="translations must not be empty, got none"):
            metric([], [])
        with pytest.raises(ValueError, match="resamples must be at least 2, got 1"):
            metric(["Er sieht."], [PLAIN], resamples=1)
    with pytest.raises(ValueError, match="values must not be empty, got none"):
        bootstrap([])
    with pytest.raises(ValueError, match="resamples must be at least 1, got 0"):
        bootstrap([1.0], resamples=0)


def test_bleu_can_ignore_case():
    pairs = [tl.Pair("", "Ein Hund läuft durch den Schnee.")] * 3
    texts = ["ein hund läuft Durch den Schnee."] * 3
    assert tl.metrics.bleu(texts, pairs, resamples=5).mean < 60
    assert tl.metrics.bleu(texts, pairs, resamples=5, lowercase=True).mean == pytest.approx(100)


def test_translations_and_pairs_may_come_from_what_can_be_read_once():
    texts = [UFER.tgt, "Er sah die Waage des Fisches.", "Er sieht es.", IT.tgt]
    for metric in (exact_matches, sense_matches, sense_choices, bleu, chrf):
        assert metric(iter(texts), iter(PAIRS)) == metric(texts, PAIRS)
    assert bootstrap(iter([1.0, 0.0, 1.0])) == bootstrap([1.0, 0.0, 1.0]) == bootstrap(np.array([1.0, 0.0, 1.0]))


@pytest.mark.parametrize("metric", [exact_matches, sense_matches, sense_choices, bleu, chrf])
@pytest.mark.parametrize(
    ("texts", "pairs", "message"),
    [
        ("E", [PLAIN], "translations must be a list of strings, got 'E'"),
        ({"Er sieht."}, [PLAIN], "translations must be a list of strings, got {'Er sieht.'}"),
        ([None], [PLAIN], "translations must be a list of strings, got None at index 0"),
        (["Er sieht."], ["Er sieht."], "pairs must be a list of tl.Pair, got 'Er sieht.' at index 0"),
        (["Er sieht."], PLAIN, "pairs must be a list of tl.Pair, got Pair"),
    ],
)
def test_what_is_no_list_of_translations_or_pairs_is_refused(metric, texts, pairs, message):
    with pytest.raises(TypeError, match=message):
        metric(texts, pairs)
