"""Links known from the grammar, how often the largest weight lies on them, and the four rows of a pronoun."""

from __future__ import annotations

import pytest
import torch

import transformer_lib as tl
from read_once import HELDOUT, TRAINED
from transformer_lib.course.figures.widgets import aligning_panel
from transformer_lib.course.lab import alignments as study
from transformer_lib.course.lab import cuts, questions
from transformer_lib.data.corpora import Pair


def linked(pair: Pair) -> set[tuple[str, str, str]]:
    source, target = (text.rstrip(".").replace(",", " ,").split() for text in (pair.src, pair.tgt))
    return {(kind, target[i], source[j]) for kind, i, j in study.links(pair, source, target)}


def test_links_join_words_with_their_translations():
    pair = Pair(
        "The man saw the bank near the river.", "Der Mann sah das Ufer beim Fluss.", word="bank", expected="Ufer"
    )
    assert linked(pair) == {("ambiguous", "Ufer", "bank"), ("noun", "Fluss", "river"), ("verb", "sah", "saw")}


def test_a_word_that_occurs_twice_is_left_out():
    pair = Pair("The river saw the river.", "Der Fluss sah den Fluss.")
    assert linked(pair) == {("verb", "sah", "saw")}


def test_the_pronoun_is_no_link():
    pair = next(pair for pair in HELDOUT if pair.word == "it")
    assert not any(kind == "ambiguous" for kind, _, _ in linked(pair))


def test_the_row_that_writes_a_word_is_one_before_the_row_that_reads_it():
    pairs = [
        Pair("The man saw the bank near the river.", "Der Mann sah das Ufer beim Fluss.", word="bank", expected="Ufer")
    ]
    src = TRAINED.src_tokenizer.encode_batch([pairs[0].src])
    tgt = TRAINED.tgt_tokenizer.encode_batch([pairs[0].tgt], bos=True, eos=True)
    with torch.no_grad(), tl.record_attention(TRAINED.model) as record:
        TRAINED.model(src, tgt[:, :-1])
    names = TRAINED.tgt_tokenizer.words
    reads = [names[i] for i in tgt[0].tolist()].index("Ufer")
    grid = record["decoder.layers.1.cross_attention"][0]  # [heads, tgt_len, src_len]
    for shift in (0, 1):
        wanted = (grid[:, reads - 1 + shift].argmax(dim=-1) == 4).double()
        torch.testing.assert_close(study.shares(TRAINED, pairs, shift=shift)["ambiguous"][1, :-1], wanted)


def test_shares_leave_the_model_as_it_was():
    TRAINED.model.train()
    study.shares(TRAINED, HELDOUT[:3])
    assert TRAINED.model.training
    TRAINED.model.eval()


def test_a_guess_by_proportion_is_right_where_both_run_in_step():
    pair = Pair("The man saw the bank.", "Der Mann sah die Bank.", word="bank", expected="Bank")
    assert study.by_proportion(TRAINED, [pair]) == {"ambiguous": 1.0, "verb": 1.0}


@pytest.mark.parametrize(("verb", "share"), [("cross", 1), ("eat", 1), ("fit", 0), ("pull", 0)])
def test_two_of_the_verbs_with_it_are_read_and_two_are_not(verb, share):
    pairs = [pair for pair in HELDOUT if pair.word == "it" and f" {verb} " in pair.src]
    assert len(pairs) > 20
    assert study.shares(TRAINED, pairs)["verb with it"][1, -1] == pytest.approx(share, abs=0.1)


@pytest.mark.parametrize(
    ("number", "written", "read", "weight"),
    [(1, "Ufer", "bank", 1.0), (6, "überquerte", "cross", 0.43), (7, "passte", "into", 0.36)],
)
def test_the_panel_shows_the_weights_of_the_text(number, written, read, weight):
    shown = aligning_panel.recorded_alignments(TRAINED, aligning_panel.SENTENCES[number - 1 : number])[0]
    row = shown.weights[1].mean(axis=0)[shown.writes.index(written)]
    assert shown.source[row.argmax()] == read and row.max() == pytest.approx(weight, abs=0.02)
    assert number != 7 or row[shown.source.index("fit")] < 0.05


def test_pronoun_counts_are_those_of_the_pieces():
    counts = study.pronoun_counts(TRAINED, HELDOUT)
    it = questions.Questions(TRAINED, [pair for pair in HELDOUT if pair.word == "it"])
    meant, other = questions.nouns(it)
    assert int((meant < other).sum()) == 72 and len(it) == 144
    assert list(counts) == ["it", "noun meant", "other noun", "adjective", "all but adjective", "nothing"]
    with cuts.hidden(TRAINED.model, it, it.cue):
        flipped = int((questions.margins(TRAINED.model, it) <= 0).sum())
    assert flipped == counts["adjective"]["first"][1] + counts["adjective"]["second"][1]
    assert counts["adjective"]["first"][2] + counts["adjective"]["second"][2] == len(it)
    assert counts["all but adjective"] == counts["nothing"] == {"first": (None, None, 0), "second": (None, None, 0)}
