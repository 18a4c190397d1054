"""The study of drafts: its arithmetic is what the decoder does, a short run repeats, and what is stored holds."""

from __future__ import annotations

import random

import pytest
import torch

import transformer_lib as tl
from read_once import CORPUS, TRAINED
from studies import speculation as study
from transformer_lib.course.lab import speculation as study_lab

STORED = study_lab.load_results()


@pytest.mark.parametrize(
    ("agree", "gamma", "wanted"),
    [
        ("111", 2, [(2, 2, 3)]),
        ("1111", 2, [(2, 2, 3), (1, 1, 1)]),
        ("0000", 2, [(2, 0, 1), (2, 0, 1), (2, 0, 1), (1, 0, 1)]),
        ("110111", 4, [(4, 2, 3), (3, 3, 3)]),
        ("11", 5, [(2, 2, 2)]),
    ],
)
def test_rounds_by_hand(agree, gamma, wanted):
    assert study.rounds([one == "1" for one in agree], gamma) == wanted


@pytest.mark.parametrize("split", ["heldout", "hard"])
def test_the_rounds_are_those_of_the_decoder(split):
    draft = tl.load_trained("draft").model
    src = TRAINED.src_tokenizer.encode_batch([pair.src for pair in CORPUS[split][:67]])
    agree = study.agreements(draft, src, tl.greedy_decode(TRAINED.model, src, max_new_tokens=40))
    for gamma in (1, 4, 8):
        found = tl.speculative_decode(TRAINED.model, draft, src, max_new_tokens=40, gamma=gamma)
        mine = [[(stand, said) for _, stand, said in study.rounds(row, gamma)] for row in agree]
        assert mine == [[(one.accepted, len(one.said)) for one in rounds] for rounds in found.rounds]
        counted = study.counted(agree, gamma)
        assert counted["tokens per call"] == pytest.approx(found.tokens_per_call)
        assert counted["calls saved"] == pytest.approx(1 - found.calls / found.tokens)
        # A draft that ends too early has one token less to test than is counted, never one that stands.
        assert counted["acceptance"] == pytest.approx(found.acceptance, abs=1e-9)


def test_a_blind_draft_is_read_in_the_same_way():
    draft = study.train(study.Setup("blind", 1), CORPUS, count=320)
    src = TRAINED.src_tokenizer.encode_batch([pair.src for pair in CORPUS["heldout"][:13]])
    agree = study.agreements(draft, src, tl.greedy_decode(TRAINED.model, src, max_new_tokens=40))
    found = tl.speculative_decode(TRAINED.model, draft, src, max_new_tokens=40, gamma=3)
    assert [len(study.rounds(row, 3)) for row in agree] == [len(rounds) for rounds in found.rounds]


def test_controls_keep_what_they_should():
    rng = random.Random(0)
    sentences = [[rng.random() < 0.8 for _ in range(rng.randint(1, 9))] for _ in range(23)]
    dealt, one = study.shuffled(sentences), study.endless(sentences)
    assert [len(row) for row in dealt] == [len(row) for row in sentences] and dealt != sentences
    assert sum(map(sum, dealt)) == sum(map(sum, sentences)) == sum(one[0]) and len(one) == 1
    independent = [[rng.random() < 0.8 for _ in range(100_000)]]
    for gamma in (1, 3, 8):
        found = study.counted(independent, gamma)
        assert found["tokens per call"] == pytest.approx(found["formula"], rel=0.01)
    assert study.by_place(independent, 3) == pytest.approx([0.8] * 3, abs=0.02)
    assert study.by_place([[True, False]], 5) == [1.0, 0.0]


def test_the_included_draft_is_one_of_the_runs():
    (run,) = [run for run in STORED["runs"] if (run["draft"], run["seed"]) == ("small", 0)]
    draft = tl.load_trained("draft").model
    assert run["parameters"] == sum(p.numel() for p in draft.parameters())
    src = TRAINED.src_tokenizer.encode_batch([pair.src for pair in study.test_splits(CORPUS)["it"]])
    agree = study.agreements(draft, src, tl.greedy_decode(TRAINED.model, src, max_new_tokens=40, path="fast"))
    assert study.agreement(agree) == pytest.approx(run["splits"]["it"]["agreement"], abs=2e-3)


def test_what_the_notebook_says_is_stored():
    def least_and_most(kind, split, name):
        found = [run["splits"][split][name] for run in STORED["runs"] if run["draft"] == kind]
        return min(found), max(found)

    agreements = {kind: least_and_most(kind, "heldout", "agreement") for kind in study_lab.KINDS}
    assert agreements["small"][0] > agreements["narrow"][1] and agreements["narrow"][0] > agreements["short"][1]
    assert agreements["short"][0] > agreements["blind"][1] and agreements["blind"][0] > 0.3
    # What it never saw, the narrow draft does not know.
    assert (
        least_and_most("narrow", "it", "agreement")[1] < 0.3 < 0.7 < least_and_most("narrow", "no it", "agreement")[0]
    )
    for kind in study_lab.KINDS:
        for row in study_lab.rows(STORED, kind, "heldout"):
            assert row["tokens per call"] < row["formula"]
            assert row["shuffled, endless"] == pytest.approx(row["steady"], rel=0.03)
            if kind == "small":  # without ends, nearly all of the gap is gone
                assert abs(row["endless"] - row["steady"]) < 0.1 * row["steady"]
                assert row["tokens per call"] < row["endless"]


def test_only_the_first_draft_is_saved_and_as_it_is(tmp_path, monkeypatch):
    draft, weights = tl.load_trained("draft"), tmp_path / "draft.safetensors"
    monkeypatch.setattr(study, "train", lambda setup, corpus: draft)
    monkeypatch.setattr(study, "measure", lambda *_: {"exact match": {}})
    runs = [step for step in study.steps((7, 11), weights) if step.where[0] == "runs"]
    assert [step.given[-1] for step in runs] == [(weights, study.STUDY.head((7, 11))["command"])] + [None] * 7
    runs[1].run()
    assert not weights.exists()
    runs[0].run()
    assert torch.equal(tl.Translator.load(weights).model.output_head.weight, draft.model.output_head.weight)


def test_a_draft_is_measured(monkeypatch):
    few = {split: CORPUS[split][:7] for split in ("heldout", "compositional", "hard")}
    few["heldout"] = [*few["heldout"], *[pair for pair in CORPUS["heldout"] if pair.word == "it"][:3]]
    monkeypatch.setattr(study, "SAMPLED", 5)
    found = study.measure(TRAINED, tl.load_trained("draft"), few, 0)
    assert (
        found["splits"]["heldout"]["sentences"]
        == found["splits"]["it"]["sentences"] + (found["splits"]["no it"]["sentences"])
    )
    assert found["sampled"]["gamma"] == 4 and 1 <= found["sampled"]["tokens per call"] <= 5
    assert found["sampled"] == study.measure(TRAINED, tl.load_trained("draft"), few, 0)["sampled"]


def test_what_is_stored_of_each_draft():
    for run in STORED["runs"]:
        assert list(run["splits"]) == ["heldout", "compositional", "hard", "it", "no it"]
        assert [row["gamma"] for row in run["splits"]["heldout"]["rows"]] == list(study.GAMMAS)
    assert [row["seed"] for row in study_lab.rows(STORED, "small", "hard")] == [0] * 8 + [1] * 8 + [2] * 8
