"""What transformers makes of the real model's file: stored for three texts, and what is here is compared with it."""

from __future__ import annotations

import pytest
import torch

import transformer_lib as tl
from real_model import real_folder
from studies import outside as study
from transformer_lib.course.lab import real_texts

STORED = real_texts.load_outside()["texts"]


def reader_of(name, factor=1.0):
    """A model that says what is stored, times a factor, and nothing else."""
    theirs = STORED[name]

    def reader(ids):
        logits = torch.zeros(1, ids.shape[1], 49_152)
        said = factor * torch.tensor(theirs["logits"])[None]
        return logits.scatter(2, torch.tensor(theirs["likeliest"])[None], said)

    return reader


def test_every_text_has_three_logits_for_each_token_the_largest_first():
    assert STORED.keys() == real_texts.TEXTS.keys()
    for one in STORED.values():
        assert len(one["ids"]) == len(one["likeliest"]) == len(one["logits"])
        assert all(len(row) == study.LARGEST and row == sorted(row, reverse=True) for row in one["logits"])


@pytest.mark.parametrize("name", real_texts.TEXTS)
def test_how_far_a_model_is_away(name):
    assert real_texts.away(reader_of(name), name) == 0
    assert real_texts.away(reader_of(name, 1.25), name) == pytest.approx(0.25, rel=1e-5)


@pytest.mark.slow
def test_the_library_reads_the_same_ids_and_computes_the_same_logits():
    model, words = tl.load_pretrained(real_folder())
    for name, text in real_texts.TEXTS.items():
        assert words.encode(text) == STORED[name]["ids"]
        assert real_texts.away(model, name) < 2e-6


@pytest.mark.slow
def test_transformers_says_it_again():
    real_folder()
    for package in ("transformers", "gguf", "accelerate"):
        pytest.importorskip(package)
    found = study.reading("a program")
    assert found["ids"] == STORED["a program"]["ids"] and found["likeliest"] == STORED["a program"]["likeliest"]
    torch.testing.assert_close(
        *(torch.tensor(one["logits"]) for one in (found, STORED["a program"])), rtol=1e-5, atol=0
    )
