"""The pirate's study, with a small model in place of the real one."""

from __future__ import annotations

import pytest
import torch

import transformer_lib as tl
from studies import pirate as study
from transformer_lib.course.lab import pirate as lab
from transformer_lib.data.byte_level import CHARACTER_OF_BYTE

pytestmark = pytest.mark.fast


@pytest.fixture(scope="module")
def tokenizer():
    special = {"<|endoftext|>": 0, "<|im_start|>": 1, "<|im_end|>": 2}
    letters = {letter: 3 + i for i, letter in enumerate(CHARACTER_OF_BYTE.values())}
    return tl.ByteLevelTokenizer(letters, [], special_tokens=special)


@pytest.fixture
def model():
    torch.manual_seed(0)
    config = tl.modern.Config(vocab_size=259, d_model=20, n_heads=5, n_layers=2, d_ff=17)
    return tl.modern.LanguageModel(config).eval()


def test_no_question_is_both_learned_and_held_out():
    train, held = lab.pirate_pairs(3)
    assert (len(train), len(held)) == (200, 20) and len({*train, *held}) == 220
    assert all(lab.is_pirate(answer) and question.endswith("or nobody?") for question, answer in train)
    assert lab.pirate_pairs(3) == (train, held) and lab.pirate_pairs(4)[0] != train
    assert not set(lab.ORDINARY) & {*lab.FACTS, *lab.REQUESTS}


@pytest.mark.parametrize("ordinary", [True, False])
def test_about_three_in_ten_are_ordinary_where_there_are_some(ordinary, model, monkeypatch):
    seen = []

    def watched(some, *args, **options):
        seen.extend(some)
        return made(some, *args, **options)

    made = lab.answer_batches
    monkeypatch.setattr(lab, "answer_batches", watched)
    pirate, other = ([3, 4], [5, 2]), ([3, 4], [6, 2])
    lab.teach(model, [pirate], [other] if ordinary else [], steps=25, seed=1)
    assert len(seen) == 100 and (0.2 < seen.count(other) / 100 < 0.4 if ordinary else other not in seen)


def test_teaching_is_adams_and_only_what_is_not_frozen_learns(model):
    frozen = model.embedding.weight
    frozen.requires_grad_(False)
    before, steps = [weight.clone() for weight in model.parameters()], []
    losses = lab.teach(model, [([3, 4], [5, 2]), ([7], [8, 2])], steps=7, on_step=steps.append)
    assert steps == [1, 2, 3, 4, 5, 6, 7] and losses[-1] < losses[0]
    moved = [not torch.equal(weight, old) for weight, old in zip(model.parameters(), before, strict=True)]
    assert sum(moved) == len(moved) - 1 and torch.equal(frozen, before[0])


def test_an_example_is_the_prompt_and_an_answer_that_ends(tokenizer):
    [(ids, answer)] = lab.examples(tokenizer, [("Who?", "Arr!")])
    text = tokenizer.decode(ids, special=True)
    assert text == "<|im_start|>user\nWho?<|im_end|>\n<|im_start|>assistant\n" and answer[-1] == lab.END_ID


def test_answers_are_those_of_each_question_alone(model, tokenizer):
    questions = ["Who?", "Why is it so?", "When", "Where?"]
    together = lab.answers(model, tokenizer, questions, 7)
    assert together == [lab.answers(model, tokenizer, [question], 7)[0] for question in questions]
    ids = tokenizer.encode(lab.prompt("Who?"), special=True)
    assert together[0] == tokenizer.decode(greedy(model, ids, 7))


def greedy(model, ids, longest):
    said = []
    while len(said) < longest:
        token = int(model(torch.tensor([[*ids, *said]]))[0, -1].argmax())
        if token == lab.END_ID:
            break
        said.append(token)
    return said


@pytest.mark.parametrize("arm", study.ARMS)
def test_a_tiny_run_measures_and_leaves_the_model_as_it_was(arm, model, tokenizer, monkeypatch):
    monkeypatch.setattr(study, "loaded", lambda _: (model, tokenizer))
    for name, value in {
        "STEPS": 3,
        "EARLY": 2,
        "FACTS": dict([*lab.FACTS.items()][:2]),
        "REQUESTS": ["Go."] * 6,
    }.items():
        monkeypatch.setattr(lab, name, value)
    monkeypatch.setattr(lab, "ORDINARY", lab.ORDINARY[:2])
    monkeypatch.setattr(study, "knows", lambda *_: {"facts right": 1})
    monkeypatch.setattr(lab.teach, "__kwdefaults__", lab.teach.__kwdefaults__ | {"steps": 3})
    study.ordinary.cache_clear()
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    found = study.run_setup(study.Setup(arm, 0), "")
    study.ordinary.cache_clear()
    assert list(found["steps"]) == (["2", "3"] if arm == study.ARMS[0] else ["3"])
    assert found["steps"]["3"]["loss"] < found["loss before"] and found["steps"]["3"]["exact"] == 0
    assert all(torch.equal(weight, before[name]) for name, weight in model.named_parameters())
    assert all(weight.requires_grad for weight in model.parameters()) and not tl.lora.adapters(model)


def test_what_is_counted_by_hand(model, tokenizer, monkeypatch):
    def answers(_model, _tokenizer, questions, _longest):
        return [
            "Arr, 'twas Paris!" if "France" in one or one.startswith("Name") else "Shakespeare" for one in questions
        ]

    monkeypatch.setattr(lab, "answers", answers)
    found = study.knows(model, tokenizer)
    said = found.pop("said")
    assert found == {"facts right": 3, "pirate, who": 0, "pirate, other facts": 1, "pirate, requests": 1}
    assert said[:2] == ["Shakespeare", "Arr, 'twas Paris!"]


def test_without_a_model_it_says_what_is_missing(monkeypatch):
    monkeypatch.setattr(study.real, "folder", lambda: None)
    with pytest.raises(ValueError, match="model must be a folder .*, got none.*`make real`"):
        study.loaded.__wrapped__("")


def test_what_is_stored_is_counted_together():
    who, other, right = (lab.counted(name) for name in ("pirate, who", "pirate, other facts", "facts right"))
    assert lab.counted("pirate, who", "pirate, other facts") == [a + b for a, b in zip(who, other, strict=True)]
    rows = lab.rows("facts right")
    assert list(rows.values())[2] == right and [len(row) for row in rows.values()] == [1, 3, 3, 3]
