"""The stored results on the context corpus: that their command works, that a short run repeats, and what they say."""

from __future__ import annotations

import json

import pytest

from read_once import CORPUS
from studies import translators
from transformer_lib.course.lab import translators as translators_lab
from transformer_lib.data.corpora import Corpus, Pair
from transformer_lib.decoding.translator import load_trained

METRICS = {"exact match", "sense accuracy", "sense choice", "BLEU", "chrF"}


STORED = translators_lab.load_results()


def test_the_trained_model_scores_what_its_provenance_says():
    translator = load_trained("context")
    scores = translators.scores_of(translator.translate, CORPUS["heldout"])
    said = translators_lab.load_results()["transformer"][0]["scores"]["heldout"]
    for metric, (mean, low, high) in said.items():
        tolerance = 0.01 if mean <= 1 else 0.5  # another machine's rounding may turn a sentence or two
        assert abs(scores[metric][0] - mean) <= tolerance and low <= mean <= high, metric


def test_the_trained_weights_are_small_and_carry_their_provenance():
    from transformer_lib.decoding.translator import TRAINED
    from transformer_lib.training.checkpoint import load_checkpoint

    assert TRAINED["context"].stat().st_size <= 3_000_000
    provenance = load_checkpoint(TRAINED["context"]).extra["provenance"]
    assert provenance["command"].startswith("python -m studies.translators")
    assert provenance["seed"] == 0


def test_three_seeds_meet_the_bar():
    for run in STORED["transformer"]:
        assert run["scores"]["heldout"]["exact match"][0] >= 0.99
        assert run["scores"]["compositional"]["sense accuracy"][0] >= 0.97
    assert len({run["seed"] for run in STORED["transformer"]}) >= 3


def test_self_only_attention_is_at_chance_on_nouns_and_on_it():
    """When it names a sense, it guesses."""
    for split in translators_lab.TEST_SPLITS:
        for kind, is_it in (("nouns", False), ("it", True)):
            asked = [pair for pair in CORPUS[split] if (pair.word == "it") == is_it]
            if not asked:
                continue
            guess = translators.chance(asked)
            found = [run["scores"][split][f"sense choice, {kind}"][0] for run in STORED["self-only attention"]]
            assert all(abs(choice - guess) < 0.03 for choice in found), (split, kind, found)


def test_self_only_attention_is_no_better_than_guessing():
    for run in STORED["self-only attention"]:
        for split in translators_lab.TEST_SPLITS:
            assert run["scores"][split]["sense accuracy"][0] <= STORED["chance"][split] + 0.05


def test_a_longer_run_helps_the_gru():
    """So that its short run is not mistaken for what a GRU can do."""
    short, long = (
        [run["scores"]["heldout"]["sense accuracy"][0] for run in STORED[name]] for name in ("GRU", "GRU, 12 passes")
    )
    assert min(long) > max(short) + 0.1


def test_models_are_of_similar_size():
    sizes = [STORED[kind][0]["parameters"] for kind in translators_lab.MODELS]
    assert max(sizes) < 1.1 * min(sizes)


def test_the_command_writes_results_and_weights(tmp_path, monkeypatch, capsys):
    few = {split: CORPUS[split][:7] for split in ("train", "validation", *translators_lab.TEST_SPLITS)}
    tiny = Corpus("context", {**few, "train": CORPUS["train"][:60]})
    words = {pair.src: pair for pair in tiny["train"]}
    for split in ("validation", *translators_lab.TEST_SPLITS):  # only known words
        tiny.splits[split] = tuple(list(words.values())[:5])
    monkeypatch.setattr(translators, "load_corpus", lambda name: tiny)
    monkeypatch.setitem(translators_lab.TRAINING, "epochs", 1)
    results, weights = tmp_path / "results.json", tmp_path / "weights.safetensors"
    translators.STUDY.main(["--seeds", "3", "--results", str(results), "--weights", str(weights)])
    content = json.loads(results.read_text(encoding="utf-8"))
    assert content["transformer"][0]["seed"] == 3 and content["threads"] == 1
    assert "transformer {'seed': 3}" in capsys.readouterr().out
    assert weights.stat().st_size > 0


def test_a_model_that_names_no_sense_has_no_sense_choice():
    scores = translators.evaluate(lambda texts: ["nichts"] * len(texts), CORPUS["heldout"][:5])
    assert "sense choice" not in scores and scores["sense accuracy"].mean == 0


def test_chance_counts_the_senses():
    two = Pair("a", "x Bank y", contrast=("x Ufer y",), word="bank", expected="Bank")
    three = Pair("b", "x Stamm y", contrast=("x Rüssel y", "x Koffer y"), word="trunk", expected="Stamm")
    assert translators.chance([two, three, Pair("c", "z")]) == pytest.approx((1 / 2 + 1 / 3) / 2)


def test_the_loss_on_the_validation_split_falls_and_is_stored():
    for name in translators.RUNS:
        for run in STORED[name]:
            curve = run["validation"]
            assert curve["steps"] == [translators_lab.VALIDATED_EVERY * (i + 1) for i in range(len(curve["loss"]))]
            assert curve["loss"][-1] < curve["loss"][0] and len(curve["loss"]) > 10
