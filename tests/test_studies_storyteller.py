"""The storyteller: what it reads, how its texts are continued, what is counted in them, and what is stored."""

from __future__ import annotations

import itertools

import pytest
import torch

import transformer_lib as tl
from read_once import CORPUS
from studies import storyteller as study
from transformer_lib.course.lab import storyteller as lab

STORED = lab.load_results()["runs"]
TELLER = lab.load()


def test_it_reads_the_english_sentences_one_after_another():
    ids = lab.text("heldout")
    first = lab.words().encode(CORPUS["heldout"][0].src)
    assert ids[: len(first)].tolist() == first
    assert lab.sentences(ids.tolist())[:5] == [pair.src for pair in CORPUS["heldout"][:5]]


def test_a_text_is_continued_by_what_is_chosen():
    starts = lab.starts()[:3]
    told = lab.tell(TELLER, starts, lab.greedy, 7)
    for start, ids in zip(starts.tolist(), told, strict=True):
        assert ids[:3] == start and len(ids) == 10
        for at in range(3, 10):
            assert ids[at] == int(TELLER(torch.tensor([ids[:at]]))[0, -1].argmax())


def test_one_draw_repeats_and_the_filters_are_obeyed():
    starts = lab.starts()[:2]
    texts = [lab.tell(TELLER, starts, lab.picker(seed, top_p=0.9), 11) for seed in (5, 5, 7)]
    assert texts[0] == texts[1] != texts[2]
    assert lab.tell(TELLER, starts, lab.picker(3, top_k=1), 11) == lab.tell(TELLER, starts, lab.greedy, 11)


def test_the_search_finds_the_most_probable_text_if_its_beams_hold_all_prefixes():
    torch.manual_seed(0)
    small = tl.modern.LanguageModel(tl.modern.Config(vocab_size=5, d_model=6, n_heads=1, n_layers=1, d_ff=7))
    every = [[2, *rest] for rest in itertools.product(range(5), repeat=3)]
    best = max(every, key=lambda ids: float(lab.log_probabilities(small, ids).sum()))
    assert lab.search(small, [2], 25, 3) == best
    greedy = lab.tell(small, torch.tensor([[2]]), lab.greedy, 3)[0]
    assert lab.search(small, [2], 1, 3) == greedy


def test_log_probabilities_are_of_each_next_token():
    ids = lab.starts()[1].tolist()
    rows = TELLER(torch.tensor([ids]))[0].log_softmax(dim=-1)
    expected = torch.stack([rows[0, ids[1]], rows[1, ids[2]]])
    torch.testing.assert_close(lab.log_probabilities(TELLER, ids), expected)


def test_sentences_and_fours_are_counted():
    right, wrong = "Today the child found the scale near the sugar.", "Today child the found the scale near the sugar."
    ids = 3 * lab.words().encode(right) + lab.words().encode(wrong)
    counted, places = lab.counts([ids]), range(len(ids) - 3)
    assert counted.different == pytest.approx(2 / 4)
    assert counted.well_formed == pytest.approx(3 / 4)
    assert counted.fours == pytest.approx(len({tuple(ids[i : i + 4]) for i in places}) / len(places))
    with pytest.raises(ValueError, match="at least one whole sentence"):
        lab.counts([ids[:4]])


def test_well_formed_is_what_the_corpus_has():
    share = sum(lab.is_well_formed(pair.src) for pair in CORPUS["heldout"]) / len(CORPUS["heldout"])
    assert share == pytest.approx(0.998, abs=5e-4)
    right = "The woman had to mention the crane near the skyscraper.", "Did the girl draw an ugly bat near the mouse?"
    wrong = "The woman had mention to the crane near the skyscraper.", "Did the girl draw a ugly bat near the mouse?"
    assert all(map(lab.is_well_formed, right))
    assert not any(map(lab.is_well_formed, wrong))


def test_hardly_a_sentence_with_a_word_copied_over_another_is_well_formed():
    generator, passed, tried = torch.Generator().manual_seed(0), 0, 0
    for pair in CORPUS["heldout"]:
        ids = lab.words().encode(pair.src)
        here, there = torch.randperm(len(ids) - 1, generator=generator)[:2].tolist()
        spoilt = [*ids[:here], ids[there], *ids[here + 1 :]]
        if lab.pattern(lab.words().decode(spoilt)) != lab.pattern(pair.src):
            tried += 1
            passed += lab.is_well_formed(lab.words().decode(spoilt))
    assert tried > 900 and passed / tried < 0.01


def test_the_stored_storyteller_is_that_of_the_study():
    (run,) = [run for run in STORED if (run["steps"], run["seed"]) == (study.STEPS[-1], 0)]
    told = lab.tell(TELLER, lab.starts(), lab.greedy, lab.NEW)
    assert study.measured(TELLER, told) == pytest.approx(run["written"]["greedy"], abs=0.03)
    assert study.loop(TELLER, told)["again"] == pytest.approx(run["loop"]["again"], abs=0.5)
    assert study.measured(TELLER, study.read()) == pytest.approx(run["corpus"], abs=2e-3)


def test_what_is_read_back_has_a_value_for_each_seed():
    for what in ("different", "well_formed", "nats"):
        shares = lab.measured(what, (lab.CORPUS, "greedy", "8 beams", "top-p 0.9"), study.STEPS[0])
        assert [len(values) for values in shares.values()] == 4 * [3]
    assert len(lab.again(study.STEPS[1])) == 3


def test_training_begins_from_the_seed_and_learns():
    ids = lab.text("heldout")[:101].tolist()
    one, two = (lab.train(seed, 3) for seed in (0, 1))
    assert not torch.equal(one.embedding.weight, two.embedding.weight)
    start, later = (lab.log_probabilities(model, ids).mean() for model in (lab.new_model(0), lab.train(0, 12)))
    assert later > start
