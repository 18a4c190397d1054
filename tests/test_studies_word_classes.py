"""The language of four word classes: its sentences, its best loss, and a training that is the same every time."""

from __future__ import annotations

import math

import pytest
import torch

from studies import word_classes
from transformer_lib.course.lab import word_classes as word_classes_lab


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_each_place_has_a_word_of_its_class_and_all_words_occur():
    ids = word_classes_lab.sentences(997, generator())
    names = list(word_classes_lab.CLASSES)
    wanted = torch.tensor([names.index(name) for name in word_classes_lab.TEMPLATE])
    assert torch.equal(word_classes_lab.KINDS[ids], wanted.expand(997, 6))
    assert len(ids.unique()) == len(word_classes_lab.WORDS) == len(word_classes_lab.KINDS) == 22


def test_the_best_loss_is_that_of_a_guess_within_the_class():
    assert word_classes.best_loss() == pytest.approx((2 * math.log(6) + 2 * math.log(8) + math.log(2)) / 5)
    assert word_classes.best_loss(("noun", "article", "article")) == pytest.approx(math.log(2))


def test_a_prediction_does_not_see_later_words():
    torch.manual_seed(1)
    model = word_classes_lab.NextWord(0.1)
    ids = word_classes_lab.sentences(3, generator())
    changed = ids.clone()
    changed[:, 4] = (changed[:, 4] + 1) % 22
    before, after = model(ids), model(changed)
    assert torch.equal(before[:, :4], after[:, :4])
    assert not torch.allclose(before[:, 4:], after[:, 4:])


def test_training_is_the_same_every_time_and_comes_near_the_best_loss():
    snapshots, loss = word_classes_lab.train(2, 0.1)
    again, same_loss = word_classes_lab.train(2, 0.1)
    assert tuple(snapshots) == word_classes_lab.SNAPSHOTS
    assert all(torch.equal(snapshots[step], again[step]) for step in snapshots)
    assert loss == same_loss
    assert -0.02 < loss - word_classes.best_loss() < 0.06
    assert snapshots[0].std() == pytest.approx(0.1, rel=0.1)


def test_cosines_of_classes_leave_a_word_and_itself_out():
    table = torch.nn.functional.one_hot(word_classes_lab.KINDS).float()
    assert torch.equal(word_classes_lab.class_cosines(3 * table), torch.eye(4))
    assert word_classes_lab.nearest_in_class(table) == 1
    grid = word_classes_lab.class_cosines(torch.eye(22))
    assert torch.equal(grid, torch.zeros(4, 4))


def test_a_longer_training_passes_through_the_shorter_one():
    longer, _ = word_classes_lab.train(1, 0.1, steps=230)
    shorter, _ = word_classes_lab.train(1, 0.1)
    assert list(longer) == [*word_classes_lab.SNAPSHOTS, 230]
    assert all(torch.equal(longer[step], shorter[step]) for step in shorter)


def test_the_articles_are_compared_with_the_other_classes():
    first = torch.nn.functional.one_hot(word_classes_lab.KINDS).float()
    second = first.clone()
    second[word_classes_lab.KINDS == 3] = first[0]  # verbs where the articles are
    found = word_classes_lab.near_articles([first, second])
    assert found == {"adjectives": [0, 0], "nouns": [0, 0], "verbs": [0, 1]}


STORED = word_classes_lab.load_results()


def test_a_short_run_repeats_the_stored_one():
    for kept in (run for run in STORED["runs"] if (run["steps"], run["seed"], run["rate"]) == (200, 1, 0.003)):
        names = ("language", "start", "frozen", "rate", "seed", "steps")
        found = word_classes.run(*(kept[name] for name in names))
        assert found["loss"] == pytest.approx(kept["loss"], abs=0.01)
        assert torch.allclose(torch.tensor(found["cosines"]), torch.tensor(kept["cosines"]), atol=0.05)


def chosen(stored, language, steps=None):
    started = [run for run in stored["runs"] if run["start"] == 0.1 and run["language"] == language]
    return torch.tensor([run["cosines"] for run in started if steps in (None, run["steps"])])


def test_articles_go_to_the_class_that_is_followed_by_the_same_words():
    """At every rate, with every seed, after both budgets; classes alone that share the word before do not meet."""
    first, adjectives_only, same_before, same_after = (chosen(STORED, language) for language in word_classes.LANGUAGES)
    assert len(first) == 18
    assert (first[:, 0, 1] > first[:, 0, 3]).all() and (first[:, 0, 1] > first[:, 0, 2]).all()
    assert (adjectives_only[:, 0, 3] > 0.5).all() and (adjectives_only[:, 0, 1] < 0).all()
    assert (same_after[:, 1, 3] > 0.3).all() and (same_before[:, 1, 3] < 0).all()


def test_what_the_table_shows_depends_on_its_start_and_the_loss_does_not():
    longer = [run for run in STORED["runs"] if run["steps"] == word_classes.LONGER]
    first = [run for run in longer if run["language"] == "the red dog sees the cat"]
    assert max(run["loss"] for run in first) < 0.02
    nearest = {(run["start"], run["frozen"]): [] for run in first}
    for run in first:
        nearest[run["start"], run["frozen"]].append(run["nearest"])
    assert min(nearest[0.1, False]) == 1 > max(nearest[1.0, False]) and max(nearest[1.0, True]) < 0.3
