"""W32, speculation: a sentence drafted and checked, call by call, and how many calls that saves."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from ....decoding.speculative import Round, speculative_decode
from ....decoding.translator import Translator
from ..plotting.base import check_sentences, counted
from ..svg import speculation as drawing
from ..svg.elements import Picture, fit, text
from .controls import number
from .panel import Panel


def speculation(
    target: Translator,
    draft: Translator,
    sentences: Sequence[str],
    *,
    sentence: int = 1,
    gamma: int = 4,
    call: int = 1,
    max_new_tokens: int = 24,
) -> Panel:
    """Watch a small draft propose words of a translation, and the target check them, one call after another.

    Args:
        target, draft: translators with the same words. sentences: to choose from, one or more.
        sentence: which is shown, from 1. gamma: how many words are drafted for a call, 1 to 8.
        call: up to which call is shown. max_new_tokens: where a sentence is cut.

    Raises:
        TypeError, ValueError: sentences is one string or none, or a number lies outside its bounds.
    """
    check_sentences(sentences)

    @cache
    def rounds(index: int, count: int) -> tuple[Round, ...]:
        return rounds_of(target, draft, sentences[index], count, max_new_tokens)

    longest = max(len(rounds(index, 1)) for index in range(len(sentences)))

    def draw(gamma: int, call: int, sentence: int = 1) -> Picture:
        return draw_calls(rounds(sentence - 1, gamma), call, gamma, sentences[sentence - 1], target.tgt_tokenizer.words)

    controls = {"sentence": number("sentence", sentence, 1, len(sentences))} if len(sentences) > 1 else {}
    controls |= {
        "gamma": number("γ, drafted for a call", gamma, 1, drawing.MOST),
        "call": number("calls shown", call, 1, longest),
    }
    return Panel(draw, controls, widget_id="W32", says_lines=3)


def rounds_of(
    target: Translator, draft: Translator, sentence: str, gamma: int, max_new_tokens: int
) -> tuple[Round, ...]:
    """Return the calls that one sentence takes: what was drafted for each, and what was said after it."""
    src = target.src_tokenizer.encode_batch([sentence])
    said = speculative_decode(target.model, draft.model, src, max_new_tokens=max_new_tokens, gamma=gamma)
    return tuple(said.rounds[0])


def draw_calls(rounds: Sequence[Round], call: int, gamma: int, source: str, words: Sequence[str]) -> Picture:
    """Draw the calls up to this one, counted from 1; a number beyond the last shows them all."""
    shown, tokens = rounds[:call], sum(len(one.said) for one in rounds)
    body = text(drawing.LEFT, 16, fit(source, drawing.WIDTH - drawing.LEFT - 10), "bold")
    for row, one in enumerate(shown):
        drafted, own = [words[i] for i in one.drafted], _own(one)
        body += drawing.call(row, drafted, one.accepted, None if own is None else words[own])
    y = drawing.TOP + drawing.ROW * len(rounds) + 18
    body += drawing.legend(y) + drawing.totals(y + 18, len(shown), sum(len(one.said) for one in shown), tokens)
    says = describe(rounds, call, gamma, words)
    table = [["call", "drafted", "stand", "said"]]
    table += [
        [str(row + 1), _written(one.drafted, words), str(one.accepted), _written(one.said, words)]
        for row, one in enumerate(shown)
    ]
    alt = f"Calls of the translator as rows of words: drafted ones that stand or fall, and its own. {source} {says}"
    return Picture(body, drawing.WIDTH, drawing.height(len(rounds)), alt, says, table=table)


def describe(rounds: Sequence[Round], call: int, gamma: int, words: Sequence[str]) -> str:
    """Say what the last call shown did, and what all of them come to beside decoding without a draft."""
    call = min(call, len(rounds))
    one, tokens = rounds[call - 1], sum(len(each.said) for each in rounds[:call])
    drafted = f"“{_written(one.drafted, words)}” was drafted" if one.drafted else "nothing was drafted"
    own = _own(one)
    added = "and the sentence ends with it" if own is None else f"then the translator's own “{words[own]}”"
    stood = f"{one.accepted} of {len(one.drafted)} stand, {added}"
    written = _written([i for each in rounds[:call] for i in each.said], words)
    end = ", the whole sentence" if call == len(rounds) else ""
    so_far = f"{counted(tokens, 'token')} in {counted(call, 'call')}, without the draft {tokens}"
    return f"γ = {gamma}, call {call}: {drafted}; {stood}. So far “{written}”{end}: {so_far}"


def _own(one: Round) -> int | None:
    """Return the target's own token of this call; None where the drafted ones already ended the sentence."""
    return one.said[one.accepted] if len(one.said) > one.accepted else None


def _written(ids: Sequence[int], words: Sequence[str]) -> str:
    return " ".join(words[i] for i in ids)
