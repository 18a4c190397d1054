"""What notebook 24 asks a language model: prompts that differ in one word, patches of a small model, repeats."""

from __future__ import annotations

import pytest
import torch

from factories import randomise
from real_model import real_folder
from studies import capitals as study
from transformer_lib import modern
from transformer_lib.course.lab import capitals as lab
from transformer_lib.course.lab import inside
from transformer_lib.model import circuits

pytestmark = pytest.mark.fast

STORED = lab.load_results()
TOKENS = ["The", "capital", "of", "is", "the", "France", "Germany", "Italy", "Paris", "Berlin", "Rome", "yen"]


class Words:
    """A tokenizer that knows a few words, and spells the others letter by letter."""

    def encode(self, text):
        ids = []
        for word in text.split():
            ids += [TOKENS.index(word)] if word in TOKENS else [len(TOKENS) + ord(letter) % 7 for letter in word]
        return ids

    def decode(self, ids):
        return " ".join(TOKENS[i] if i < len(TOKENS) else "?" for i in ids)


def small():
    torch.manual_seed(0)
    sizes = {"vocab_size": 23, "d_model": 13, "n_heads": 3, "n_layers": 2, "d_ff": 17, "n_kv_heads": 1, "d_head": 10}
    return randomise(modern.LanguageModel(modern.Config(**sizes)), 2.0).double().eval()


FACTS = {"France": "Paris", "Germany": "Berlin", "Italy": "Rome"}


def test_each_prompt_stands_beside_one_with_another_answer():
    pairs = lab.pairs(Words(), "The capital of {} is", FACTS | {"the": "Rome"})
    assert pairs.things == ("France", "Germany", "Italy", "the") and (pairs.place, pairs.last) == (3, 4)
    assert (pairs.right != pairs.wrong).all() and pairs.others.tolist()[2] == pairs.ids.tolist()[0]


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"France": "Paris", "Germany": "Paris"}, "facts must have two answers that begin differently"),
        ({"France": "Paris", "Spain": "Rome"}, "expected sequence of length"),
    ],
)
def test_prompts_without_a_pair_are_refused(facts, message):
    with pytest.raises(ValueError, match=message):
        lab.pairs(Words(), "The capital of {} is", facts)


def test_two_places_that_differ_are_refused():
    with pytest.raises(ValueError, match="in the same place, got differences at"):
        lab.pairs(Words(), "{} of {}".replace("{}", "{0}"), FACTS)


def test_only_what_the_model_says_is_known():
    model, words = small(), Words()
    said = model(lab.prompts(words, "The capital of {} is", ["France"]))[0, -1].argmax()
    right = {"France": TOKENS[int(said)]} if int(said) < len(TOKENS) else {}
    found = lab.known(model, words, "The capital of {} is", {"France": right.get("France", "yen"), "Spain": "Madrid"})
    assert found == right


def test_a_share_is_0_without_a_patch_and_1_with_all_of_it():
    model = small()
    pairs = lab.pairs(Words(), "The capital of {} is", FACTS)
    measured = circuits.patch_streams(model, pairs.others, pairs.ids, pairs.difference, positions=[0, [3, 4]])
    shares = pairs.recovered(model, measured)
    assert shares[:, 0].abs().max() < 1e-9 and (shares[:, 1] - 1).abs().max() < 1e-9


def test_texts_repeat_and_windows_keep_what_they_are_told():
    ids = inside.repeats(5, seed=3, count=2)
    assert ids.shape == (2, 11) and torch.equal(ids[:, 1:6], ids[:, 6:]) and (ids[:, 0] == 0).all()
    may = inside.window(7, 3, kept=1)
    assert may.tril().sum(dim=-1).tolist() == [1, 2, 3, 3, 4, 4, 4] and may[6].tolist()[:4] == [
        False,
        True,
        False,
        False,
    ]


def test_controls_are_other_heads_of_the_same_layers():
    heads = [(1, 0), (1, 2), (3, 4)]
    found = inside.like(heads, heads, 5, seed=1)
    assert [layer for layer, _ in found] == [1, 1, 3] and not set(found) & set(heads) and len(set(found)) == 3


def test_features_are_silenced_at_one_position_alone():
    model, ids = small(), torch.tensor([[3, 5, 7, 11]])
    whole = circuits.trace(model, ids, keep="streams").streams
    with inside.silenced(model, 1, [2], [4, 6]):
        changed = circuits.trace(model, ids, keep="streams").streams
    assert changed[1][0, 2, [4, 6]].abs().max() == 0
    assert torch.equal(changed[1][0, [0, 1, 3]], whole[1][0, [0, 1, 3]])


def test_without_the_model_the_study_says_how_to_get_it(monkeypatch):
    study.loaded.cache_clear()
    monkeypatch.setattr(study.real, "folder", lambda: None)
    with pytest.raises(FileNotFoundError, match="`make real`"):
        study.loaded()


@pytest.mark.slow
def test_the_stored_results_are_those_of_the_model():
    real_folder()
    study.loaded.cache_clear()
    again = study.road(study.ROADS[0])
    stored = STORED["roads"][" / ".join(study.ROADS[0])]
    for name in ("at the question", "at the last word"):
        assert torch.allclose(torch.tensor(again[name]), torch.tensor(stored[name]), atol=0.02)


def test_what_is_stored_tells_the_story():
    ranks = lab.by_kind(STORED, "rank")
    assert all(set(ranks[kind]) == {1} for kind in lab.PLACES)
    assert all(1 not in ranks[kind] for kind in ranks if kind not in lab.PLACES)
    own, other = lab.crossed(STORED).values()
    assert max(other["before layer 23"]) == 0 == max(own["before layer 24"])


def test_what_a_head_writes_is_read_among_the_answers_of_all():
    lens = lab.Lens(small(), Words(), ["France", "Germany", "Italy", "yen"])
    cities = lab.answers(Words(), FACTS.values())
    table = lens.model.head.weight / lens.model.norm.weight.double()  # what the lens reads as each word itself
    own = torch.cat([table[cities], table[:1]])
    scores = lens.model.norm(own[:3]) @ lens.model.head.weight[cities].T
    expected = int((scores.argmax(dim=-1) == torch.arange(3)).sum())
    assert lens.own_first(own, FACTS) == (expected, 3)
    assert lens.own_first(own.flip(0), {"yen": "Rome"}) == (1, 1)
    streams = [own[:, None]] * 3
    by_head = lens.own_first_by_head(streams, FACTS)
    assert by_head.shape == (2, 3)
    written = circuits.head_writes(lens.model, 1, 2, own)
    assert by_head[1, 2] == lens.own_first(written, FACTS)[0]


def test_the_best_words_of_a_vector_come_once():
    lens = lab.Lens(small(), Words(), ["France"])
    found = lens.best(lens.model.head.weight[5:6], "France", 3)
    assert len(found) == len(set(found)) <= 3 and "" not in found


def test_what_the_exchange_adds_recovers_what_the_exchange_recovers(monkeypatch):
    monkeypatch.setattr(lab, "HEAD", (1, 2))
    model, pairs = small(), lab.pairs(Words(), "The capital of {} is", FACTS)
    outputs = circuits.trace(model, pairs.ids, keep="heads").heads[1][:, 2, -1:]
    with circuits.replace_head(model, 1, 2, outputs, positions=pairs.last):
        measured = pairs.difference(model(pairs.others)[:, -1])
    expected = pairs.recovered(model, measured)
    found = lab.pushed(model, pairs, lab.push(model, pairs))
    torch.testing.assert_close(torch.tensor(found).double(), expected.double(), rtol=1e-5, atol=1e-5)
    assert lab.pushed(model, pairs, torch.zeros(3, 13).double()) == pytest.approx([0, 0, 0], abs=1e-9)


def test_direct_contributions_add_up_to_the_difference():
    model, pairs = small(), lab.pairs(Words(), "The capital of {} is", FACTS)
    total = sum(lab.direct(model, pairs).values())
    assert total == pytest.approx(pairs.difference(model(pairs.ids)[:, -1]).mean().item(), rel=1e-5)


def test_the_stored_answers_of_a_question():
    assert list(lab.answered(STORED, "The capital of {} is", most=2).items()) == [
        ("France", "Paris"),
        ("Germany", "Berlin"),
    ]
    with pytest.raises(ValueError, match="template must be one of QUESTIONS"):
        lab.answered(STORED, "Who knows {}?")
