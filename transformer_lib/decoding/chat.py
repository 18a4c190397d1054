"""A conversation with a language model that was taught to answer."""

from __future__ import annotations

import weakref
from collections.abc import Generator, Iterator
from itertools import takewhile
from typing import Any

import torch

from .._paths import PathName
from .._validate import check_int
from ..data.byte_level import ByteLevelTokenizer
from ..fast.modern_stepper import ModernStepper
from ..fast.modern_weights import ModernWeights
from ..model import modern
from .generating import Kept, check_language_model, check_options, generate

FIRST_ROOM = 512  # tokens of a conversation, in the fast path; a longer one is read once more, into twice the room


class Chat:
    """A conversation: each turn goes on from all that was said before.

    >>> chat = tl.Chat(model, tokenizer)
    >>> chat.say("What is the capital of France?")
    'The capital of France is Paris.'

    What was said is in `messages`, a list of {"role": …, "content": …}, which may be changed between two turns. Keys
    and values are kept from turn to turn, so that only what is new is computed; what is said is the same as if all of
    the conversation were read anew.

    Args:
        model: a `modern.LanguageModel`. tokenizer: its tokenizer, with a chat template.
        system: what the model is told before the first turn; what the template says by itself, if it is None.
        max_new_tokens: an answer's most tokens.
        temperature, top_k, top_p, generator, path: as for `generate`; the likeliest token by default.

    Raises:
        TypeError, ValueError: an argument is wrong, the tokenizer has no chat template, or more tokens than the model.
    """

    def __init__(
        self,
        model: modern.LanguageModel,
        tokenizer: ByteLevelTokenizer,
        *,
        system: str | None = None,
        max_new_tokens: int = 256,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        generator: torch.Generator | None = None,
        path: PathName = "readable",
    ) -> None:
        self.model, self.tokenizer, self.system = check_language_model(model), tokenizer, system
        if not isinstance(tokenizer, ByteLevelTokenizer):
            raise TypeError(f"tokenizer must be a ByteLevelTokenizer, got {type(tokenizer).__name__}")
        if tokenizer.chat_template is None:
            raise ValueError("tokenizer must have a chat_template, which writes a conversation as a text, got None")
        if len(tokenizer) > model.config.vocab_size:
            size = model.config.vocab_size
            raise ValueError(f"tokenizer must have at most the model's {size} tokens, got {len(tokenizer)}")
        self.max_new_tokens = check_int("max_new_tokens", max_new_tokens)
        self.options: dict[str, Any] = {
            "temperature": temperature,
            "top_k": top_k,
            "top_p": top_p,
            "generator": generator,
            "path": path,
        }
        check_options(**self.options)
        self._weights = ModernWeights(model) if path == "fast" else None  # laid out once
        self._read: list[int] = []  # the ids that the cache has seen
        self._turn: weakref.ref[Generator[str, None, None]] | None = None  # the answer that somebody listens to
        self.reset()

    def reset(self) -> None:
        """Forget what was said; the system's message stays."""
        self._end_turn()
        self.messages = [] if self.system is None else [_message("system", self.system)]
        self._forget()

    def say(self, text: str) -> str:
        """Say something, and return the answer."""
        return "".join(self.stream(text))

    def stream(self, text: str) -> Iterator[str]:
        """Say something, and return the answer piece by piece, each when the model says it.

        Whoever stops listening ends the answer, which counts as said as far as it went. An interrupted one does not:
        the conversation is then as it was before.

        Raises:
            TypeError: text is no string. ValueError: the template refuses the conversation, or it has become longer
                than the model was made for.
        """
        if not isinstance(text, str):
            raise TypeError(f"text must be a string, got {type(text).__name__}")
        self._end_turn()
        messages = [*self.messages, _message("user", text)]
        ids = self.tokenizer.encode_chat(messages)
        room = self._room(ids)
        self._go_back_to(ids, len(ids) + room)
        stop = self.tokenizer.stop_ids
        tokens = generate(self.model, ids, max_new_tokens=room, stop=stop, cache=self._cache, **self.options)
        answer = self._answer(messages, ids, tokens)
        self._turn = weakref.ref(answer)
        return answer

    # Steps ---------------------------------------------------------------------------------------------------
    def _answer(
        self, messages: list[dict[str, str]], ids: list[int], tokens: Iterator[int]
    ) -> Generator[str, None, None]:
        """Yield the text of the tokens, and remember what was said when they end, or nobody listens any more.

        After an interruption nothing is remembered, and the next turn cuts the cache back to what `_read` has.
        """
        said, pieces = list(ids), []  # tokens, and texts
        try:
            for piece in self.tokenizer.decode_stream(_noted(tokens, said)):
                pieces.append(piece)
                yield piece
        except GeneratorExit:
            self._remember(messages, "".join(pieces), said)
            raise
        self._remember(messages, "".join(pieces), said)

    def _remember(self, messages: list[dict[str, str]], answer: str, said: list[int]) -> None:
        self.messages = [*messages, _message("assistant", answer)]
        self._read = said[: self._cache.length]  # what was said last has not been read yet

    def _room(self, ids: list[int]) -> int:
        """Return how many tokens an answer to a conversation of these ids may have."""
        longest = self.tokenizer.max_len
        if longest is None:
            return self.max_new_tokens
        if len(ids) >= longest:
            raise ValueError(
                f"the conversation must have less than max_len = {longest} tokens, got {len(ids)}: reset()"
            )
        return min(self.max_new_tokens, longest - len(ids))

    def _go_back_to(self, ids: list[int], most: int) -> None:
        """Keep of the cache what these ids begin with, but for the last one, whose logits are asked for.

        Args:
            most: tokens that the text may come to have, for which the fast path must have room.
        """
        if isinstance(self._cache, ModernStepper) and self._cache.max_len < most:
            self._forget(2 * most)
        pairs = zip(self._read, ids[:-1], strict=False)
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        try:
            self._cache.crop(common)
            self._read = ids[:common]
        except ValueError:  # a window has let go what would be needed again
            self._forget()

    def _forget(self, room: int | None = None) -> None:
        self._cache: Kept = (
            self.model.new_cache() if self._weights is None else ModernStepper(self._weights, 1, room or FIRST_ROOM)
        )
        self._read = []

    def _end_turn(self) -> None:
        answer = None if self._turn is None else self._turn()
        if answer is not None:
            answer.close()


def _noted(tokens: Iterator[int], said: list[int]) -> Iterator[int]:
    """Yield the tokens, each when `said` has it, too."""
    for token in tokens:
        said.append(token)
        yield token


def _message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}
