"""The study of a causal mask on the memory: its models, a short run that repeats the stored one, what is stored."""

from __future__ import annotations

import pytest
import torch

import transformer_lib as tl
from studies import memory_masks as study
from transformer_lib.course.lab import memory_masks as study_lab
from transformer_lib.course.lab import reversal as reversal_lab

STORED = study_lab.load_results()


@pytest.mark.parametrize("name", study_lab.NAMES)
def test_a_model_is_what_its_name_says(name):
    model = study_lab.train(name, seed=3, steps=5)
    letters, tgt_in, _ = study_lab.new_letters(7)
    later = letters.clone()
    later[:, -1] = 3 + (letters[:, -1] - 2) % 10
    with torch.no_grad():
        moved = (model(later, tgt_in) != model(letters, tgt_in)).any(dim=-1).all(dim=0).tolist()
    # under the mask alone, only the last row may read the last letter; with an encoder all rows hold something of it
    assert moved == ([False] * 5 + [True] if name == "no encoder, causal mask" else [True] * 6)


def test_an_open_model_with_an_encoder_is_the_reverser_of_the_course():
    mine = study_lab.train("encoder, open", seed=2, steps=7)
    torch.manual_seed(2)
    theirs = reversal_lab.fit(tl.Transformer(tl.TransformerConfig(**reversal_lab.CONFIG)), 2, 7)
    letters, tgt_in, _ = study_lab.new_letters(5)
    torch.testing.assert_close(mine(letters, tgt_in), theirs(letters, tgt_in))


def test_the_weights_are_means_of_rows_that_sum_to_one():
    weights = study_lab.weights_of(study_lab.train("no encoder, causal mask", seed=1, steps=3))
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(6))
    assert (weights.triu(1) == 0).all() and weights.shape == (6, 6)


def test_a_short_run_repeats_the_stored_one():
    found = study.right_letters(study_lab.train("no encoder, open", seed=0, steps=80))
    assert found == pytest.approx(STORED["right"]["no encoder, open"]["80"][0], abs=0.05)


def test_with_an_encoder_the_mask_costs_time():
    early = {name: torch.tensor(runs["80"]).mean(dim=1) for name, runs in STORED["right"].items()}
    assert early["encoder, causal mask"].max() < early["encoder, open"].min() - 0.1


def test_a_reversed_source_is_the_answer():
    src, tgt_in, tgt_out = reversal_lab.reversal(7, torch.Generator().manual_seed(3))
    assert torch.equal(src.flip(1), tgt_out) and torch.equal(tgt_in[:, 1:], tgt_out[:, :-1])
