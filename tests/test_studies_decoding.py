"""The study of decoding: what its search and its sampling measure, a run that repeats, what is stored."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

import transformer_lib as tl
from read_once import CORPUS, TRAINED
from studies import decoding as study
from transformer_lib.course.lab import decoding as study_lab

STORED = study_lab.load_results()


def _small(seed: int) -> tl.Translator:
    """An untrained translator with two German words, whose sentences can be counted."""
    torch.manual_seed(seed)
    config = tl.TransformerConfig(src_vocab_size=6, tgt_vocab_size=6, d_model=8, n_heads=2, n_layers=1, d_ff=8)
    model = tl.Transformer(config).eval()
    with torch.no_grad():
        model.output_head.weight.mul_(4)  # so that sentences differ in probability
    return tl.Translator(model, *(tl.WordTokenizer(words) for words in (["yes", "no"], ["ja", "nein"])))


@pytest.mark.parametrize("seed", range(3))
def test_the_most_probable_sentence_is_that_of_all(seed, monkeypatch):
    monkeypatch.setattr(study, "LIMIT", 4)
    translator, text = _small(seed), "yes no"
    forbidden = torch.zeros(6)
    forbidden[[0, 1, 3]] = math.inf  # no padding, bos or unknown word in a sentence
    translator.model.output_head.register_forward_hook(lambda module, inputs, logits: logits - forbidden)
    every = [" ".join(words) for n in range(4) for words in itertools.product(("ja", "nein"), repeat=n)]
    scores = translator.log_probabilities([text] * len(every), every).sum(dim=-1)
    best = every[int(scores.argmax())]
    for known in ("nein", best):
        (found,) = study.most_probable(translator, [text], [known])
        assert found.lower() == best


def test_errors_of_the_search_are_counted_against_the_most_probable():
    pairs = [pair for pair in CORPUS["hard"] if pair.src.startswith("The men who saw the hair")][:3]
    found = study.search(TRAINED, pairs, (1, 2))
    assert found["search errors"][0] >= 1 and found["search errors"][1] == 0
    assert found["exhaustive"]["right"] == found["right"][1] >= found["right"][0]


def test_cold_samples_are_greedy_and_hot_ones_are_not():
    pairs = CORPUS["heldout"][:10]
    assert study.sampled(TRAINED, pairs, 0.1) == 1.0
    assert study.sampled(TRAINED, pairs, 1.5) < 0.5 < study.sampled(TRAINED, pairs, 1.5, top_k=1)


def test_certainty_joins_tokens_to_sentences():
    found = study.certainty(TRAINED, CORPUS["heldout"][:20])
    assert 0.8 < found["token"] < 0.95
    assert found["sentence"] == pytest.approx(found["token"] ** found["length"], abs=0.05)


def test_the_course_s_own_translator_is_one_of_the_trainings():
    (record,) = [run for run in study_lab.runs(STORED, smoothing=0.1, passes=4) if run["seed"] == 0]
    again = study.certainty(TRAINED, CORPUS["heldout"][: study.SAMPLED])
    assert again == pytest.approx(record["certainty"], abs=2e-3)
    column = study.TEMPERATURES.index(1.0)
    again = study.sampled(TRAINED, CORPUS["heldout"][: study.SAMPLED], 1.0)
    assert again == pytest.approx(record["sampled"]["all words"][column], abs=0.03)
