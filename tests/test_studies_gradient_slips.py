"""The slips in the backward pass: each is found by a gradient check; a short run repeats; and what is stored."""

from __future__ import annotations

import numpy as np
import pytest

from studies import gradient_slips as study
from transformer_lib import by_hand
from transformer_lib.course.lab import beside_torch, walking_back
from transformer_lib.course.lab import gradient_slips as study_lab

NAMES = [name for name in study_lab.SLIPS if name != "none"]


STORED = study_lab.load_results()


def test_letters_are_answered_in_reverse():
    src, tgt = study_lab.letters(5, np.random.default_rng(0))
    assert src.shape == (5, 6) and src.min() >= 3 and src.max() <= 12
    assert (tgt[:, 1:] == src[:, ::-1]).all() and (tgt[:, 0] == 1).all()
    first, second = ([batch[0] for batch in study_lab.batches(3, seed)] for seed in (0, 0))
    assert len(first) == 3 and all((a == b).all() for a, b in zip(first, second, strict=True))
    assert not (first[0] == first[1]).all()


@pytest.mark.parametrize("slip", study_lab.SLIPS)
def test_the_gradient_check_finds_exactly_the_wrong_arrays(slip):
    for seed in (0, 1):
        right, found = (study_lab.gradients_of(name, seed) for name in ("none", slip))
        wrong = {name for name, g in right.items() if not np.allclose(found[name], g, rtol=1e-4, atol=1e-12)}
        assert set(study.found_wrong(slip, seed)) == wrong
        assert len(wrong) == STORED["slips"][slip]["found wrong"][seed]
    assert bool(wrong) == (slip != "none")


def test_slips_end_with_the_block():
    study_lab.gradients_of(NAMES[0], 0)
    assert study.found_wrong("none", 0) == []


def test_without_a_gradient_of_the_memory_the_encoder_keeps_its_random_weights():
    start = by_hand.new_parameters(study_lab.SIZES, 3, np.float32)
    after = study_lab.trained("memory: no gradient at all", seed=3, steps=5)
    for name, array in after.items():
        assert (array == start[name]).all() == name.startswith(("encoder", "src_embedding")), name


def test_a_short_run_repeats_the_stored_one():
    found, wanted = study.at_the_end("none", 0), STORED["slips"]["none"]
    assert found["right"] == pytest.approx(wanted["right"][0], abs=0.02) and found["angle"] == 0
    assert found["loss"] == pytest.approx(wanted["loss"][0], abs=0.01)
    slip = STORED["slips"][study.WORST]
    assert study.at_the_end(study.WORST, 1)["right"] == pytest.approx(slip["right"][1], abs=0.2)


def test_what_the_notebook_says_of_the_table():
    slips = STORED["slips"]
    unseen = [name for name in NAMES if min(slips[name]["right"]) >= 0.99]
    assert len(unseen) == 5 and min(slips["none"]["right"]) > 0.999
    assert len({tuple(found["found wrong"]) for found in slips.values()} - {(n, n, n) for n in range(64)}) == 0
    degrees = {name: round(np.mean(slips[name]["angle"])) for name in NAMES}
    slow = [name for name in NAMES if name not in unseen and name != study.WORST]
    assert max(degrees[name] for name in unseen) == 43 and degrees[study.WORST] == 89
    assert (min(degrees[name] for name in slow), max(degrees[name] for name in slow)) == (51, 68)
    assert max(np.mean(slips[name]["loss"]) for name in unseen) < 0.02 < 0.3 < min(slips[slow[0]]["loss"])
    as_good = [name for name in NAMES if min(slips[name]["right later"]) > 0.98]
    assert [name for name in NAMES if name not in as_good] == [study.WORST]
    assert max(slips[study.WORST]["right later"]) < 0.25
    assert max(share for shares in STORED["lower rates"].values() for share in shares) < 0.3


@pytest.mark.parametrize("slip", NAMES)
def test_a_slip_parts_the_two_models_at_the_second_step(slip):
    with by_hand.replaced(**study_lab.SLIPS[slip]):
        ours, theirs = beside_torch.race(steps=2)
    assert ours[0] == pytest.approx(theirs[0], abs=1e-13) and abs(ours[1] - theirs[1]) > 1e-4


def test_two_models_with_the_same_numbers_keep_together():
    ours, theirs = beside_torch.race(steps=20)
    assert ours[-1] < ours[0] - 0.5
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-13)


def test_the_clock_counts_both():
    batches = list(study_lab.batches(3, seed=0))
    found = beside_torch.clock(study_lab.SIZES, batches)
    assert list(found) == ["by hand", "PyTorch"] and all(0 < seconds < 10 for seconds in found.values())


@pytest.mark.parametrize("slip", study_lab.SLIPS)
def test_at_each_fork_the_parts_make_the_sum_that_goes_on(slip):
    stops = walking_back.walk(slip)
    assert len(stops) == 7
    for fork, after in ((1, 2), (3, 5)):  # the sum enters the next norm
        np.testing.assert_array_equal(stops[fork].gradients["together"], stops[after].gradients["arrives"])
    for norm, fork in ((0, 1), (2, 3), (5, 6)):  # what leaves a norm goes around
        np.testing.assert_array_equal(stops[norm].gradients["goes on, twice"], stops[fork].gradients["around"])


def test_the_walk_ends_where_the_layer_s_own_backward_does():
    """The gradient of the target's embeddings is that of the last fork, collected by word."""
    _, src, tgt = study_lab.scene(0)
    collected = by_hand.embed_backward(walking_back.walk()[-1].gradients["together"], (tgt[:, :-1], (13, 32)))
    np.testing.assert_allclose(
        collected, study_lab.gradients_of("none", 0)["tgt_embedding.weight"], rtol=1e-12, atol=1e-15
    )


def test_wrong_arrays_are_counted_by_group():
    groups = walking_back.wrong_arrays("encoder: no path around attention")
    assert {name: wrong for name, (wrong, _) in groups.items() if wrong} == {"encoder layer 1": 12, "source table": 1}
    assert sum(count for _, count in groups.values()) == 63
    assert sum(wrong for wrong, _ in walking_back.wrong_arrays("none").values()) == 0
    assert sum(wrong for wrong, _ in walking_back.wrong_arrays("ReLU lets everything through").values()) == 58
