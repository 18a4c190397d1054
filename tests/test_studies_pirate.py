"""The pirate's study, with a small model in place of the real one."""

from __future__ import annotations

import pytest
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

import transformer_lib as tl
from studies import pirate as study
from transformer_lib.course.lab import pirate as lab

pytestmark = pytest.mark.fast


@pytest.fixture(scope="module")
def tokenizer():
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    words = special + sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE({word: i for i, word in enumerate(words)}, []))
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    made.add_special_tokens([AddedToken(word, special=True, normalized=False) for word in special])
    return made


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


def test_about_a_third_is_ordinary_where_it_is_mixed_in():
    pairs, _ = lab.pirate_pairs(0)
    mixed = lab.mixed(pairs, [("What?", "That.")], 0)
    assert len(mixed) == 200 and 0.2 < mixed.count(("What?", "That.")) / 200 < 0.4


def test_an_example_is_the_prompt_and_an_answer_that_ends(tokenizer):
    [(ids, answer)] = lab.examples(tokenizer, [("Who?", "Arr!")])
    text = tokenizer.decode(ids, skip_special_tokens=False)
    assert text == "<|im_start|>user\nWho?<|im_end|>\n<|im_start|>assistant\n" and answer[-1] == lab.END_ID


def test_answers_are_those_of_each_question_alone(model, tokenizer):
    questions = ["Who?", "Why is it so?", "When", "Where?"]
    together = lab.answers(model, tokenizer, questions, 7)
    assert together == [lab.answers(model, tokenizer, [question], 7)[0] for question in questions]
    ids = tokenizer.encode(lab.prompt("Who?")).ids
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
    monkeypatch.setattr(lab, "STEPS", 2)
    study.ordinary.cache_clear()
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    found = study.run_setup(study.Setup(arm, 0), "")
    study.ordinary.cache_clear()
    assert found["loss after"] < found["loss before"] and 0 <= found["facts right"] <= 20
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


def test_without_a_folder_it_says_what_is_missing():
    with pytest.raises(ValueError, match="model must be a folder in the format of Hugging Face"):
        study.loaded("")
