"""One model with two jobs: what it reads, what each job asks of it, and who counts as a partner."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from studies import jobs as study
from transformer_lib.course.lab import jobs as lab
from transformer_lib.data.corpora import load_corpus

WORDS, IDS, SHARES = lab.sentences()
STORED = lab.load_results()["runs"]


def reader(seed=0):
    torch.manual_seed(seed)
    return lab.Reader(len(WORDS), SHARES.shape[1])


def table_of(**beside):
    """A table in which each word has a direction of its own, but each of these words has that of its neighbour."""
    table = torch.eye(len(WORDS))
    for word, neighbour in beside.items():
        table[WORDS.index(word)] = 2 * table[WORDS.index(neighbour)]
    return table


def test_the_sentences_are_those_of_the_corpus():
    pair = load_corpus("context")["train"][11]
    read = [WORDS[i] for i in IDS[11] if i]
    assert "".join(read[:3]).lower() in pair.src.replace(" ", "").lower()
    assert len(IDS) == len(SHARES) == 22_776
    torch.testing.assert_close(SHARES.sum(1), torch.ones(len(SHARES)))
    assert not SHARES[:, :4].any()  # the special tokens


def test_a_reader_sees_no_later_word_and_padding_counts_for_nothing():
    model, ids = reader(), IDS[:5].clone()
    vectors = model(ids)
    assert not vectors[ids == 0].any() and vectors[ids != 0].any(dim=-1).all()
    ids[:, 6] = 17
    torch.testing.assert_close(model(ids)[:, :6], vectors[:, :6])
    short = IDS[:5][:, : int((IDS[:5] != 0).sum(1).max())]
    torch.testing.assert_close(lab.german_words(model, short, SHARES[:5]), lab.german_words(model, IDS[:5], SHARES[:5]))
    torch.testing.assert_close(lab.next_word(model, short, SHARES[:5]), lab.next_word(model, IDS[:5], SHARES[:5]))


def test_the_losses_are_mean_negative_log_likelihoods():
    model, ids, shares = reader(), IDS[:3], SHARES[:3]
    logs = F.log_softmax(model.english(model(ids)), dim=-1)
    said = [-logs[row, i, ids[row, i + 1]] for row in range(3) for i in range(ids.shape[1] - 1) if ids[row, i + 1]]
    torch.testing.assert_close(lab.next_word(model, ids, shares), torch.stack(said).mean())
    german = F.log_softmax(model.german(model(ids).sum(dim=1)), dim=-1)
    torch.testing.assert_close(lab.german_words(model, ids, shares), -(shares * german).sum(1).mean())


def test_both_jobs_start_from_the_same_table_and_a_longer_run_passes_through_the_shorter():
    first, later = lab.train(lab.next_word, 3, budgets=(1, 3))
    (again,) = lab.train(lab.next_word, 3, budgets=(1,))
    (other,) = lab.train(lab.german_words, 3, budgets=(1,))
    assert torch.equal(first, again) and not torch.equal(first, later)
    torch.testing.assert_close(first, other, atol=2.1 * lab.LEARNING_RATE, rtol=0)  # Adam's first step, both ways


def test_partners_and_tenses_are_counted():
    table = table_of(see="saw", drew="found")
    assert lab.nearest(table, "see") == "saw" and lab.nearest(table, "saw") == "see"
    assert lab.nearest(table, "drew") == "found"
    assert (lab.partners(table), lab.same_tense(table)) == (2, 2) and lab.partners(table_of()) == 0
    assert lab.forms(table).shape == (18, len(WORDS))
    assert torch.equal(lab.forms(table)[:2], lab.rows(table, ["find", "found"]))
    assert lab.cosines([table], [("see", "saw")]) == {"see, saw": [pytest.approx(1)]}


def test_a_word_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="forms must be English words of the corpus, got zebra"):
        lab.rows(table_of(), ["saw", "zebra"])


def test_a_stored_run_is_found_again():
    [kept] = [run for run in STORED if (run["job"], run["rate"], run["seed"]) == ("German words", 0.01, 2)]
    (table,) = lab.train(lab.german_words, 2)
    assert lab.partners(table) == pytest.approx(kept["partners"][0], abs=2)


@pytest.mark.parametrize("run", STORED, ids=lambda run: f"{run['job']}, {run['rate']}, {run['seed']}")
def test_after_600_steps_the_job_decides_whatever_the_rate(run):
    partners, same_tense = run["partners"][1], run["same_tense"][1]
    assert len(STORED) == 18 and len(study.BUDGETS) == 2
    if run["job"] == "next word":
        assert (partners, same_tense) == (2, 16)
    else:
        assert partners >= 14 and same_tense <= 2
