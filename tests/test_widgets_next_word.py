"""W36, a language model that answers: its tokens are those of `tl.generate`, and its numbers those of the softmax."""

from __future__ import annotations

import pytest
import torch

import transformer_lib as tl
from small_panels import letters, panel, talker
from transformer_lib.course.figures.svg.next_word import NextWord, next_word_picture, token_name


def prompt(question):
    return letters().encode_chat([{"role": "user", "content": question}])


def test_at_temperature_0_it_says_what_generate_says():
    shown = panel("next_word", last=7)
    greedy = list(tl.generate(talker(), prompt("Why?"), max_new_tokens=7, stop=letters().stop_ids))
    names = [token_name(letters().token(i)) for i in greedy]
    for said, name in enumerate(names):
        assert f"At temperature 0 comes {name} (" in shown.set(said=said).picture.says


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.0])
def test_the_bars_are_the_softmax_of_the_last_row(temperature):
    shown = panel("next_word").set(temperature=temperature, said=0)
    with torch.no_grad():
        chances = (talker()(torch.tensor([prompt("Why?")]))[0, -1] / temperature).softmax(dim=-1)
    assert [float(p) for _, p in shown.picture.table[1:]] == pytest.approx(chances.topk(8).values.tolist(), abs=6e-4)


def test_another_roll_says_something_else_and_the_same_roll_the_same():
    shown = panel("next_word").set(temperature=2.0, said=5)
    says = [shown.set(roll=roll).picture.says.partition("comes")[2] for roll in (1, 2, 3, 4, 1)]
    assert says[0] == says[-1] and len(set(says)) > 2


def test_an_answer_does_not_go_on_after_its_end():
    model = talker()
    with torch.no_grad():
        stopping = tl.modern.LanguageModel(model.config).double().eval()
        stopping.load_state_dict(model.state_dict())
        stopping.embedding.weight[257] *= 1e3  # tied: its logit is far from all others, on either side
    shown = panel("next_word", model=stopping, last=31).set(temperature=1.0)
    assert "<e>" in {
        shown.set(said=31, roll=roll).picture.says.partition("“")[2].partition("”")[0] for roll in range(1, 9)
    }


@pytest.mark.parametrize(
    ("question", "problem"), [("  ", "Type a question"), ("x" * 230, "Ask something shorter: this is 233 tokens")]
)
def test_what_cannot_be_asked_is_said(question, problem):
    assert panel("next_word").set(question=question).picture.says.startswith(problem)


def test_a_byte_without_a_token_is_said():
    vocab = {token: i for token, i in letters().vocab.items() if token != "q"}
    lacking = tl.ByteLevelTokenizer(
        vocab, [], special_tokens=letters().special_tokens, eos="<e>", chat_template=letters().chat_template
    )
    assert "has a byte" in panel("next_word", tokenizer=lacking, question="Quiq?").picture.says


def test_it_needs_a_chat_template():
    with pytest.raises(ValueError, match="tokenizer must have a chat_template, .* got None"):
        panel("next_word", tokenizer=tl.ByteLevelTokenizer({"a": 0}, []))


def test_line_breaks_and_signs_that_cannot_be_printed_are_shown_as_signs():
    shown = NextWord("a\x07?", "one\ntwo", [" the", "\n"], [0.7, 0.1], "\n", "at temperature 0")
    picture = next_word_picture(shown)
    assert "“⏎” (.10)" in picture.says or "“⏎” (0.10)" in picture.says
    assert "“␣the”" in picture.alt and "one⏎two" in picture.body and "\x07" not in picture.svg
