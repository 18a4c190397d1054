"""What notebook 19 trains and measures while one waits."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import transformer_lib as tl
from transformer_lib.course.lab import masks, one_stack

pytestmark = pytest.mark.fast


def next_word_loss(model, ids):
    return F.cross_entropy(model(ids[:, :-1]).mT, ids[:, 1:], ignore_index=0)


def new_model():
    torch.manual_seed(0)
    return tl.LanguageModel(len(one_stack.tokenizer()), 1, 16, 2, 16, position="sinusoidal")


def test_a_model_learns_and_the_same_seed_gives_the_same_run():
    losses = one_stack.fit(new_model(), next_word_loss, 30)
    assert len(losses) == 30 and losses[-1] < losses[0] - 0.5
    assert one_stack.fit(new_model(), next_word_loss, 30)[:5] == losses[:5]
    assert one_stack.fit(new_model(), next_word_loss, 3, seed=1) != losses[:3]


def test_one_word_of_each_sentence_is_hidden():
    seen, where, words = one_stack.one_hidden()
    ids, rows = one_stack.heldout(), torch.arange(len(seen))
    assert seen.shape == ids.shape and (seen != ids).sum() == len(ids)
    assert torch.equal(ids[rows, where], words) and (seen[rows, where] == 3).all() and (words > 3).all()
    assert not (ids == 3).any()
    again, elsewhere, _ = one_stack.one_hidden(seed=1)
    assert not torch.equal(where, elsewhere) and again.shape == seen.shape


def test_ngrams_are_those_of_the_study():
    words, ids = masks.german()
    assert one_stack.ngram_perplexity(1) == masks.NGram(1, ids["train"], len(words)).perplexity(ids["heldout"])
    assert 7 < one_stack.ngram_perplexity(2) < 12


def test_a_gap_is_shown_with_what_both_models_would_say(capsys):
    words = one_stack.tokenizer()
    ids = words.encode("Der Mann sah das Ufer.", bos=True, eos=True)

    def sure_of(place):
        def model(given, mask):
            logits = torch.zeros(*given.shape, len(words))
            logits[0, place, ids[2]] = 20.0
            return logits

        return model

    one_stack.gap("Der Mann sah das Ufer.", 2, writer=sure_of(1), filler=sure_of(2))
    first, left, both = capsys.readouterr().out.splitlines()
    assert first == "der ___ sah das Ufer ."
    assert left.split() == ["writer", "Mann", "1.00"] and both.split() == ["filler", "Mann", "1.00"]
