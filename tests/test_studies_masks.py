"""The study of masks: its losses and measures by hand, a short run of each row, and what is stored."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

import transformer_lib as tl
from studies import masks as study
from transformer_lib.course.lab import masks as study_lab

STORED = study_lab.load_results()


def sentences(count=5):
    return torch.nn.utils.rnn.pad_sequence(
        [torch.tensor(ids) for ids in study_lab.german()[1]["heldout"][:count]], batch_first=True
    )


def test_the_second_half_is_what_counts():
    model, ids = study.new_model("next word", 0).eval(), sentences()
    loss, count = study.half_loss(model, ids, "prefix")
    total = words = 0.0
    for row, length in zip(ids, study.halves(ids).tolist(), strict=True):
        one = row[row != 0][None]
        assert length == one.shape[1] // 2
        logits = model(one[:, :-1], tl.prefix_mask(torch.tensor([length]), one.shape[1] - 1))
        total += F.cross_entropy(logits[0, length - 1 :], one[0, length:], reduction="sum").item()
        words += one.shape[1] - length
    assert loss.item() == pytest.approx(total, rel=1e-5) and count == words
    whole, all_words = study.half_loss(model, ids, "causal", whole=True)
    assert all_words == int((ids[:, 1:] != 0).sum()) and whole > loss


def test_hidden_words_are_words_and_their_labels_are_what_they_were():
    ids = sentences(500)
    seen, labels = study.hide(ids, torch.Generator().manual_seed(0))
    hidden = labels != 0
    assert torch.equal(torch.where(hidden, labels, seen), ids)
    assert (seen[hidden] == study_lab.MASK).all() and (ids[hidden] > study_lab.MASK).all()
    assert hidden.sum() / (ids > study_lab.MASK).sum() == pytest.approx(study.HIDDEN, abs=0.02)
    assert not (ids == study_lab.MASK).any()  # `<unk>` is free to mean a hidden word


def test_n_grams_are_probabilities_and_count_what_they_should():
    model = study_lab.NGram(3, [[1, 5, 6, 7, 2], [1, 5, 6, 8, 2]], 9)
    assert model.contexts([1, 5, 6, 7], 3) == [(), (6,), (5, 6)]
    for ids in ([1, 5, 6, 0], [1, 4, 4, 0], [1, 0]):
        shares = [model.probability([*ids[:-1], word], len(ids) - 1) for word in range(9)]
        assert sum(shares) == pytest.approx(1)
    uniform = 1 / 9
    first = (2 * uniform + 1) / 10  # 8 words in all, 7 once
    second = third = (2 * first + 1) / 4  # after 6, twice, once
    assert model.probability([1, 5, 6, 7], 3) == pytest.approx((2 * second + 1) / 4) and third == second
    assert study_lab.NGram(1, [[1, 5, 5]], 9).perplexity([[1, 5]]) == pytest.approx(1 / ((2 / 9 + 2) / 4))


def test_the_grammar_tells_german_from_what_is_not():
    assert study_lab.is_grammatical("Die Frau sah das Ufer beim Fluss.")
    for wrong in ("Die Frau sah der Ufer beim Fluss.", "Die Frau das Ufer sah.", "Die Frau sah", "", "die."):
        assert not study_lab.is_grammatical(wrong)
    assert STORED["grammar"]["held out"] == 1.0 and STORED["grammar"]["spoilt"] < 0.03


def test_samples_begin_anew_for_each_seed_and_end():
    model = study.new_model("next word", 0).eval()
    first, again, other = (study.sample(model, 1.0, 3, seed) for seed in (0, 0, 1))
    assert first == again != other and len(first) == 3


@pytest.mark.parametrize("steps", study_lab.STEPS)
def test_what_the_notebook_says_is_stored(steps):
    def of(row, *names):
        found = []
        for run in study_lab.runs_of(STORED, row, steps):
            value = run
            for name in names:
                value = value[name]
            found.append(value)
        assert len(found) == 3
        return found

    assert max(of("next word", "perplexity")) < min(STORED["ngrams"].values())
    # Without positions a causal stack loses little, one that sees both sides much; and both sides tell more than one.
    assert max(of("next word, no positions", "perplexity")) < 1.15 * min(of("next word", "perplexity"))
    assert min(of("hidden word, no positions", "perplexity")) > 1.5 * max(of("hidden word", "perplexity"))
    assert min(of("hidden word", "right")) > max(of("hidden word, causal", "right"))
    # A mask is part of the model: seeing more than in training makes it worse.
    for row in ("next word", "second half, causal"):
        assert min(of(row, "second half", "full")) > 1.3 * max(of(row, "second half", "causal"))


def test_one_hidden_word_of_a_sentence_is_guessed():
    model = study.new_model("hidden word", 0).eval()
    found = study.hidden_word(model, "full")
    assert 0 <= found["right"] < 0.1 and found["perplexity"] > 100
    assert study.perplexity(model) > 100 and math.isfinite(study.perplexity(model, "full", whole=False))
