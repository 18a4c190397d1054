"""What heads say through W_O and the output head, strangers that lend them, and what is stored of five translators."""

from __future__ import annotations

import pytest
import torch

from read_once import HELDOUT, TRAINED
from studies import genders as study
from test_studies_shared import form
from transformer_lib.course.lab import cuts
from transformer_lib.course.lab import speaking as lab
from transformer_lib.course.lab.heads import questions
from transformer_lib.course.lab.questions import margins, twins
from transformer_lib.data.corpora import load_corpus

STORED = lab.load_results()
MODELS = STORED["models"]
KINDS = list(lab.KINDS)


@pytest.fixture(scope="module")
def it():
    return questions(TRAINED, HELDOUT)[1]


def test_the_heads_together_hand_on_what_the_layer_adds(it):
    z = lab.handed_on(TRAINED, it)
    assert z.shape == (144, 4, 24)
    layer, kept = TRAINED.model.get_submodule(lab.LAST), []
    hook = layer.register_forward_hook(lambda _, inputs, output: kept.append(output))
    with torch.no_grad():
        TRAINED.model(it.src, it.tgt[it.right][:, :-1])
    hook.remove()
    words = TRAINED.tgt_tokenizer.words
    rows = [
        [words[i].lower() for i in ids].index(pair.expected.lower()) - 1
        for ids, pair in zip(it.tgt[it.right].tolist(), it.pairs, strict=True)
    ]
    added = kept[0][torch.arange(144), rows]
    through = added @ TRAINED.model.output_head.weight.T
    torch.testing.assert_close(lab.head_logits(TRAINED.model, z).sum(dim=1), through, rtol=1e-4, atol=1e-4)


def test_articles_are_found_with_the_word_before_them():
    found = lab.articles(TRAINED, HELDOUT[:13])
    assert len(found.written) == len(found.after) == len(found.z) and set(found.written) <= set(lab.ARTICLES)
    assert not any(after in lab.BEFORE_DATIVE for after in found.after)
    for word, gender in zip(found.written, found.gender().tolist(), strict=True):
        assert word in lab.GENDERS[gender]
    dative = lab.articles(TRAINED, HELDOUT[:60], dative=True)
    assert set(dative.written) == {"dem", "der"} and set(dative.after) <= set(lab.BEFORE_DATIVE)


def test_the_best_word_and_the_best_gender():
    logits = torch.zeros(2, len(TRAINED.tgt_tokenizer.words))
    logits[0, lab.ids(TRAINED, ["den", "die"])] = torch.tensor([3.0, 2.0])
    logits[1, lab.ids(TRAINED, ["eine", "das"])] = torch.tensor([2.0, 5.0])
    assert lab.gender_said(TRAINED, logits).tolist() == [0, 2]
    assert lab.first_of(TRAINED, logits, ("die", "eine", "das")).tolist() == [0, 2]


@pytest.mark.parametrize("kind", KINDS)
def test_strangers_are_of_their_kind(it, kind):
    told, same = lab.described(it), lab.KINDS[kind]
    others = lab.strangers(it, lab.of_kind(it, HELDOUT, kind), seed=3).tolist()
    wanted = [pair.expected.lower() for pair in (it.pairs if same[0] else twins(it, HELDOUT))]
    for i, j in enumerate(others):
        assert told[j][0] == wanted[i] and (told[j][1] == told[i][1]) == same[1]
        assert not set(told[i][2:]) & set(told[j][2:])
        assert it.pairs[i].expected.istitle() == it.pairs[j].expected.istitle()


def test_the_four_words_of_a_sentence_are_its_pronoun_side_and_nouns(it):
    for (pronoun, side, first, second), pair in zip(lab.described(it), it.pairs, strict=True):
        words = pair.src.lower().rstrip(".").replace(",", "").replace(":", "").split()
        assert pronoun == pair.expected.lower() and side in ("first", "second")
        assert words.index(first) < words.index(second)


def test_only_the_lent_heads_change(it):
    own = lab.own_outputs(TRAINED, it)
    kept = []
    hook = TRAINED.model.get_submodule(lab.LAST).w_o.register_forward_hook(lambda _, inputs, __: kept.append(inputs[0]))
    others = torch.arange(144).roll(5)
    outputs = cuts.from_others(it, own, others)
    with lab.lent(TRAINED.model, [1, 3], outputs):
        changed = margins(TRAINED.model, it)
    hook.remove()
    before, after, lender = (x.unflatten(-1, (4, 24)) for x in (own[lab.LAST], kept[0], outputs[lab.LAST]))
    torch.testing.assert_close(after[:, :, [0, 2]], before[:, :, [0, 2]], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(after[:, :, [1, 3]], lender[:, :, [1, 3]])
    assert not torch.equal(changed, margins(TRAINED.model, it))


def test_a_sentence_that_lends_to_itself_flips_nothing_and_silence_is_volume_zero(it):
    own, itself = lab.own_outputs(TRAINED, it), torch.arange(144)
    assert not lab.flipped(TRAINED, it, [0, 1, 2, 3], itself, own).any()
    silent = lab.flipped(TRAINED, it, [2], itself, own, louder=0.0)
    with cuts.silenced(TRAINED.model, [(lab.LAST, 2)]):
        assert torch.equal(silent, margins(TRAINED.model, it) <= 0)


def test_the_stored_numbers_of_our_translator_are_found_again():
    found = study.measure(TRAINED, load_corpus("context"))
    stored = MODELS["course"]
    assert form(found) == form(stored) and found["words"] == stored["words"]
    assert found["pronouns"] == stored["pronouns"] and found["articles"]["heads"] == pytest.approx(
        stored["articles"]["heads"], abs=0.01
    )
    for heads, flips in stored["lent"].items():
        assert found["lent"][heads] == pytest.approx(flips, abs=0.02), heads


def test_the_rows_of_the_figures_are_those_stored():
    each, together = lab.shares_right("articles")
    assert list(each) == list(together) == list(MODELS) and each["seed 3"] == MODELS["seed 3"]["articles"]["heads"]
    best, every = lab.flips_over_trainings()
    assert list(best) == list(every) == KINDS
    assert best[KINDS[2]][0] == MODELS["course"]["lent"]["3"][KINDS[2]]
    assert best[KINDS[1]][1] == MODELS["seed 1"]["lent"]["2"][KINDS[1]]
    assert every[KINDS[3]][4] == MODELS["seed 4"]["lent"]["all"][KINDS[3]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda it: lab.of_kind(it, HELDOUT, "no gender"), "kind must be one of 'same gender, same side', .*"),
        (lambda it: lab.strangers(it, lambda mine, others: []), "lenders must return a stranger for every sentence"),
    ],
)
def test_what_does_not_fit_is_refused(it, call, message):
    with pytest.raises(ValueError, match=message):
        call(it)
