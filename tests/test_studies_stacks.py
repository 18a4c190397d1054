"""The study of translation without an encoder: its arms, its losses, a short run of each, and what is stored."""

from __future__ import annotations

import pytest
import torch

import transformer_lib as tl
from read_once import CORPUS
from studies import stacks as study
from transformer_lib.course.lab import stacks as study_lab

STORED = study_lab.load_results()


def test_parameters_and_operations_of_the_arms():
    found = {}
    for arm in study_lab.ARMS:
        model = study.new_translator(CORPUS["train"], arm, 0).model.eval()
        found[arm] = (study.count_parameters(model), study.multiply_adds(model))
    five = (522_144, 10_976_832)
    assert found == {
        "encoder-decoder": (522_048, 5_730_624),
        "causal": five,
        "prefix": five,
        "prefix, 3 layers": (373_344, 6_883_392),
        "causal, loss on the source too": five,
    }
    config = study.new_translator(CORPUS["train"], "encoder-decoder", 0).model.config
    assert tl.costs.transformer_cost(config, *study.COUNTED).total == 5_730_624  # counted and calculated


def test_training_on_both_without_the_source_is_training():
    pairs = CORPUS["train"][:96]
    options = {"epochs": 2, "warmup_steps": 3, "learning_rate": 3e-3, "label_smoothing": 0.1, "progress": False}
    one, other = (study.new_translator(pairs, "causal", 0) for _ in range(2))
    wanted = tl.train(one.model, one.batches(pairs, 32), **options).loss
    assert study.train_on_both(other.model, other.batches(pairs, 32), 0.0, **options) == pytest.approx(wanted, abs=1e-5)
    for mine, theirs in zip(one.model.parameters(), other.model.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-4, rtol=0)


def test_the_loss_of_both_counts_each_word_once():
    pairs = CORPUS["train"][:7]
    translator = study.new_translator(pairs, "causal", 0)
    model = translator.model.double().eval()
    src, tgt = next(translator.batches(pairs, 7).epoch(0))
    loss, targets = study.LossOfBoth(model, 0.0)(src, tgt), 0
    total = count = 0.0
    for source, target in zip(src, tgt, strict=True):  # one sentence at a time, without padding
        source, target = source[source != 0][None], target[target != 0][None]
        states = model.states(target[:, :-1], model.encode(source), source)
        n = source.shape[1]
        for at in range(1, n):
            logits = states[0, at - 1] @ model.src_embedding.weight.T
            total -= logits.log_softmax(dim=-1)[source[0, at]].item()
        said = model.output_head(states[0, n:]).log_softmax(dim=-1)
        total -= said.gather(1, target[0, 1:, None]).sum().item()
        count += n - 1 + target.shape[1] - 1
        targets += target.shape[1] - 1
    assert loss.item() == pytest.approx(total / count * targets, abs=1e-8)


def test_scores_of_translations():
    pairs = [pair for pair in CORPUS["hard"] if pair.contrast][:4]
    said = [pairs[0].tgt, pairs[1].contrast[0], "Nichts davon.", pairs[3].tgt]
    found = study.scores_of(lambda texts: said, pairs)
    assert found == {
        "exact match": 0.5,
        "exact but for the sense": 0.75,
        "sense accuracy": 0.5,
        "sense choice": round(2 / 3, 4),
    }


def test_what_the_notebook_says_is_stored():
    def of(arm, passes, split, score="exact match"):
        runs = [run for run in STORED["runs"] if (run["arm"], run["passes"]) == (arm, passes)]
        return [run["scores"][split][score] for run in runs]

    for arm in study_lab.ARMS:
        assert min(of(arm, 4, "heldout")) > 0.99
        assert max(of(arm, 4, "hard", "sense accuracy")) < STORED["chance"]["hard"] + 0.1  # a guess, for all
    assert max(of("causal, loss on the source too", 1, "heldout")) < min(of("causal", 1, "heldout"))
