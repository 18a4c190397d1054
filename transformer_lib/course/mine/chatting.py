"""A chat with a real model in which the learner's loop of notebook 23 reads, chooses and stops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ...data.byte_level import ByteLevelTokenizer
from ...model.modern import LanguageModel
from .todays_block import AssembledToday

PART = "converse"


class Chatting:
    """A conversation by a function like the exercise's `converse`; `whose` says whose it is.

    Args:
        model: which talks; its blocks may be the learner's own (`mine.today`). tokenizer: its tokenizer, with a chat
            template and one id that stops an answer. theirs: the learner's functions, by the names of their parts.

    Raises:
        TypeError: the tokenizer has no chat template.
    """

    def __init__(
        self,
        model: LanguageModel | AssembledToday,
        tokenizer: ByteLevelTokenizer,
        theirs: Mapping[str, Callable[..., Any]],
    ) -> None:
        if tokenizer.chat_template is None:
            raise TypeError("tokenizer must have a chat_template, which writes a conversation as a text, got None")
        self.model, self.tokenizer = model, tokenizer
        self._converse = theirs.get(PART, converse)
        yours, ours = f"{PART} is yours.", f"{PART} is the library's; yours takes its place once it is accepted."
        self.whose = yours if PART in theirs else ours

    def __call__(self, *questions: str, max_new_tokens: int = 40) -> list[str]:
        """Ask the questions in one conversation, and return the answers."""
        (stop_id,) = self.tokenizer.stop_ids
        tools = reader(self.model), self._encode, self.tokenizer.decode
        return list(self._converse(self.prompts(questions), *tools, stop_id, max_new_tokens))

    def prompts(self, questions: Sequence[str]) -> list[str]:
        """Return what is new at each turn: as the template writes it, without what was there, and without answers."""
        template, stop = self.tokenizer.chat_template, self._stop_text()
        assert template is not None
        first, *others = (
            template.render([{"role": "user", "content": text}], add_generation_prompt=True) for text in questions
        )
        opening = first.index(stop) + len(stop)  # behind the system's message
        return [first, *(other[opening:] for other in others)]

    def _stop_text(self) -> str:
        (stop_id,) = self.tokenizer.stop_ids
        return self.tokenizer.token(stop_id)

    def _encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, special=True)


def reader(model: LanguageModel | AssembledToday) -> Callable[[Sequence[int]], Tensor]:
    """Return a function that reads ids after all that it was ever given, and returns the next token's logits."""
    cache = model.new_cache()

    @torch.no_grad()
    def read(ids: Sequence[int]) -> Tensor:
        logits: Tensor = model(torch.tensor([list(ids)]), cache)[0, -1]
        return logits

    return read


def converse(
    prompts: Sequence[str],
    read: Callable[[Sequence[int]], Tensor],
    encode: Callable[[str], list[int]],
    decode: Callable[[Sequence[int]], str],
    stop_id: int,
    max_new_tokens: int,
) -> list[str]:
    """Return the answers to prompts, one after another; what was read is never read again."""
    answers, unread = [], list[int]()
    for prompt in prompts:
        logits = read([*unread, *encode(prompt)])
        said: list[int] = []
        while len(said) < max_new_tokens and (token := int(logits.argmax())) != stop_id:
            said.append(token)
            logits = read([token])
        unread = [stop_id]
        answers.append(decode(said))
    return answers
