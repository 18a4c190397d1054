"""The language of four word classes: its sentences, its best loss, and a training that is the same every time."""

from __future__ import annotations

import math

import pytest
import torch

from transformer_lib.course.studies import word_classes


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_each_place_has_a_word_of_its_class_and_all_words_occur():
    ids = word_classes.sentences(997, generator())
    names = list(word_classes.CLASSES)
    wanted = torch.tensor([names.index(name) for name in word_classes.TEMPLATE])
    assert torch.equal(word_classes.KINDS[ids], wanted.expand(997, 6))
    assert len(ids.unique()) == len(word_classes.WORDS) == len(word_classes.KINDS) == 22


def test_the_best_loss_is_that_of_a_guess_within_the_class():
    assert word_classes.best_loss() == pytest.approx((2 * math.log(6) + 2 * math.log(8) + math.log(2)) / 5)
    assert word_classes.best_loss(("noun", "article", "article")) == pytest.approx(math.log(2))


def test_a_prediction_does_not_see_later_words():
    torch.manual_seed(1)
    model = word_classes.NextWord(0.1)
    ids = word_classes.sentences(3, generator())
    changed = ids.clone()
    changed[:, 4] = (changed[:, 4] + 1) % 22
    before, after = model(ids), model(changed)
    assert torch.equal(before[:, :4], after[:, :4])
    assert not torch.allclose(before[:, 4:], after[:, 4:])


def test_training_is_the_same_every_time_and_comes_near_the_best_loss():
    snapshots, loss = word_classes.train(2, 0.1)
    again, same_loss = word_classes.train(2, 0.1)
    assert tuple(snapshots) == word_classes.SNAPSHOTS
    assert all(torch.equal(snapshots[step], again[step]) for step in snapshots)
    assert loss == same_loss
    assert -0.02 < loss - word_classes.best_loss() < 0.06
    assert snapshots[0].std() == pytest.approx(0.1, rel=0.1)
