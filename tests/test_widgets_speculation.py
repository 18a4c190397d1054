"""W32, speculation: the words that it shows are those of greedy decoding, and its counts are the decoder's."""

from __future__ import annotations

import pytest

import transformer_lib as tl
from small_panels import SENTENCES, draft, panel, translator
from transformer_lib.course.figures.svg import speculation as drawing
from transformer_lib.course.figures.widgets.speculation_panel import draw_calls, rounds_of
from transformer_lib.decoding.speculative import Round

pytestmark = pytest.mark.fast

WORDS = ["<pad>", "<bos>", "<eos>", "<unk>", "Das", "Ufer", "die", "Bank", "."]


@pytest.mark.parametrize("gamma", [1, 3, 8])
def test_the_words_are_those_of_greedy_decoding(gamma):
    target = translator()
    src = target.src_tokenizer.encode_batch(SENTENCES[:1])
    greedy = tl.greedy_decode(target.model, src, max_new_tokens=7)[0, 1:].tolist()
    rounds = rounds_of(target, draft(), SENTENCES[0], gamma, 7)
    assert [token for one in rounds for token in one.said] == greedy
    written = " ".join(target.tgt_tokenizer.words[i] for i in greedy)
    shown = panel("speculation", gamma=gamma, call=len(rounds)).picture
    assert f"“{written}”, the whole sentence: {len(greedy)} tokens in {len(rounds)} call" in shown.says
    assert f"γ = {gamma}, call {len(rounds)}:" in shown.says and len(shown.table) == len(rounds) + 1


ROUNDS = (Round((4, 7, 8, 8), (4, 5)), Round((6, 7), (6, 7, 8)), Round((2,), (2,)))


def test_colours_say_what_became_of_a_word():
    def counts(call):
        body = draw_calls(ROUNDS, call, 4, "The bank.", WORDS).body
        colours = (drawing.STANDS, drawing.FALLS, drawing.OWN)
        return [body.count(f'fill="{colour}"') for colour in colours] + [body.count('stroke-dasharray="3 3"')]

    assert counts(1) == [1 + 2, 1 + 1, 1 + 1, 2]  # with the legend, and the bar of the calls
    assert counts(2) == [3 + 2, 1 + 1, 2 + 1, 2]
    assert counts(3) == counts(99) == [4 + 2, 1 + 1, 2 + 1, 2]


def test_its_words_say_the_same():
    says = [draw_calls(ROUNDS, call, 4, "The bank.", WORDS).says for call in (1, 2, 3)]
    assert "“Das Bank . .” was drafted; 1 of 4 stand, then the translator's own “Ufer”" in says[0]
    assert says[0].endswith("So far “Das Ufer”: 2 tokens in 1 call, without the draft 2")
    assert says[1].endswith("5 tokens in 2 calls, without the draft 5")
    assert "1 of 1 stand, and the sentence ends with it" in says[2] and "the whole sentence: 6 tokens in 3" in says[2]
    assert "nothing was drafted; 0 of 0 stand" in draw_calls([Round((), (5,))], 1, 4, "The bank.", WORDS).says
    assert draw_calls(ROUNDS, 2, 4, "The bank.", WORDS).table[1] == ["1", "Das Bank . .", "1", "Das Ufer"]


def test_the_picture_stays_as_high_while_calls_go_by():
    heights = {draw_calls(ROUNDS, call, 4, "The bank.", WORDS).height for call in (1, 2, 3)}
    assert heights == {drawing.height(3)}
    assert drawing.LEFT + drawing.BOX * (drawing.MOST + 1) <= drawing.WIDTH
