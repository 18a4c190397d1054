"""The study of patches: the cutting, the model, its rivals, a short run that repeats the stored one, its sentences."""

from __future__ import annotations

from statistics import mean

import pytest
import torch

from studies import patches as study
from transformer_lib.course.lab import patches as study_lab

STORED = study_lab.load_results()


def shares(stored, version, epochs, what="held out"):
    return [run[what] for run in stored["runs"] if (run["version"], run["epochs"]) == (version, epochs)]


def test_patches_are_cut_row_by_row():
    images = torch.arange(3 * 64).reshape(3, 8, 8)
    cut = study.patches(images)
    assert cut.shape == (3, 16, 4)
    for row in range(4):
        for column in range(4):
            wanted = images[:, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2].flatten(1)
            assert torch.equal(cut[:, 4 * row + column], wanted)
    assert study.patches(torch.zeros(2, 6, 9), 3).shape == (2, 6, 9)


def test_a_quarter_of_each_digit_is_held_out():
    parts, other = study.split(0), study.split(1)
    assert len(parts.labels) + len(parts.held_labels) == 1797 and len(parts.images) == len(parts.labels)
    assert parts.held_labels.bincount().tolist() == [44, 45, 44, 45, 45, 45, 45, 44, 43, 45]
    assert not torch.equal(parts.held_images, other.held_images)


def test_without_positions_the_order_of_patches_does_not_matter():
    tokens, order = study.patches(study.split(0).images[:5]), study.another_order()
    assert sorted(order.tolist()) == list(range(16)) != order.tolist()
    for version, same in (("no positions", True), ("positions", False)):
        model = study.new_model(version, 0).double()
        moved = (model(tokens[:, order].double()) - model(tokens.double())).abs().max()
        assert (moved < 1e-12) == same


def test_rivals_by_hand():
    images = torch.zeros(6, 8, 8)
    images[:, 0, 0] = torch.tensor([0.0, 0.1, 0.2, 1.0, 0.9, 0.8])
    labels = torch.tensor([4, 4, 4, 7, 7, 7])
    parts = study.Split(images, labels, images[[1, 4]] + 0.01, torch.tensor([4, 2]))
    assert study.neighbours(parts) == study.kernel_ridge(parts) == study.logistic_regression(parts) == 0.5
    assert study.support_vector_machine(parts) == 0.5


def test_rivals_are_found_again():
    for name, method in study.RIVALS.items():
        assert method(study.split(0)) == pytest.approx(STORED["rivals"][name][0], abs=0.005)


def test_what_the_notebook_says_is_stored():
    linear = mean(STORED["rivals"]["logistic regression"])
    early, late = (mean(shares(STORED, "positions", epochs)) for epochs in study_lab.EPOCHS)
    assert early < linear - 0.03 and abs(late - linear) < 0.02  # level with a linear map, after 75 epochs
    for epochs in study_lab.EPOCHS:
        learned, none, other = (shares(STORED, version, epochs) for version in study_lab.VERSIONS)
        assert len(learned) == len(none) == len(other) == 3
        assert min(learned) > max(none) + 0.1  # positions help
        assert abs(mean(learned) - mean(other)) < 0.03  # any order does
        for rival in ("3 nearest images", "kernel ridge", "support vector machine"):
            assert max(learned) < min(STORED["rivals"][rival])  # three plain rivals are better, for every seed
        assert shares(STORED, "no positions", epochs, "moved in the test") == none
