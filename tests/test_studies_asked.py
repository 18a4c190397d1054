"""What a real model was asked: its answers are stored whole, and counted by words; with the model, one is had again."""

from __future__ import annotations

import pytest

from real_model import real_folder
from studies import asked as study
from transformer_lib.course.lab import asked

STORED = asked.load_results()


def test_every_kind_has_twenty_questions_and_other_examples():
    for name, kind in asked.KINDS.items():
        assert len(kind.asked) == 20 and len(kind.examples) == 8, name
        assert not set(kind.asked) & set(kind.examples), name
        assert len(STORED["chat"][name]) == 20


@pytest.mark.parametrize(
    ("said", "answer", "right"),
    [
        ("The capital of France is Paris.", "Paris", True),
        ("the answer is 12", "12", True),
        ("8 + 4 = 121", "12", False),
        ("PARIS", "Paris", True),
        ("Kinder", "Kind", False),
        ("It is closed.", "closed|close", True),
        ("three letters", "3|three", True),
        ("", "Oslo", False),
    ],
)
def test_an_answer_is_right_if_its_word_is_in_it(said, answer, right):
    assert asked.is_right(said, answer) is right


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ("7 + 5 = 12", True),
        ("12 is what I take away, so the answer is 4.", False),
        ("The answer is 12, of course.", True),
        ("121", False),
        ("You simply add them together.", False),
    ],
)
def test_the_last_number_counts_for_a_sum(said, right):
    assert asked.ends_with(said, "12") is right
    assert asked.marks("sums in words", [said] * 20)[0] is right


def test_sums_are_those_of_their_numbers():
    for name, sign in (("sums in signs", "+"), ("sums in words", "plus")):
        for sums in (asked.KINDS[name].asked, asked.KINDS[name].examples):
            assert all(int(answer) == sum(map(int, word.split(f" {sign} "))) for word, answer in sums.items())


def test_letters_are_counted():
    kind = asked.KINDS["letters of a word"]
    assert all(int(answer.split("|")[0]) == len(word) for word, answer in (kind.asked | kind.examples).items())


def test_marks_belong_to_their_questions():
    right = [answer.split("|")[0] for answer in asked.KINDS["opposites"].asked.values()]
    assert asked.marks("opposites", right) == [True] * 20
    assert sum(asked.marks("opposites", right[1:] + right[:1])) == 0


def test_right_answers_are_counted_by_kind_behind_examples_and_in_a_chat():
    lists, chats = asked.counted(STORED)
    assert list(lists) == list(chats) == list(asked.KINDS)
    assert lists["sums in signs"] == [15, 12, 13] and chats["sums in words"] == [10]
    short = STORED | {"runs": STORED["runs"][:1]}
    assert [len(numbers) for numbers in asked.counted(short)[0].values()] == [1, 0, 0, 0, 0, 0]


@pytest.mark.slow
def test_with_the_model_the_chat_is_had_again():
    real_folder()
    model, words = study.load()
    texts = asked.in_a_chat(asked.KINDS["capitals"], words)[:3]
    assert asked.answers(model, words, texts, asked.CHAT) == STORED["chat"]["capitals"][:3]
    listed = asked.in_a_list(asked.KINDS["sums in signs"], words, seed=1)
    [stored] = [run["said"] for run in STORED["runs"] if (run["kind"], run["seed"]) == ("sums in signs", 1)]
    said = asked.answers(model, words, listed[:2], asked.LIST)
    assert [asked.first_line(text) for text in said] == stored[:2]
