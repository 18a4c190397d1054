"""W36, a language model answers: word after word, with what else it might have said, at a temperature."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

import torch
from torch import Tensor

from ....data.byte_level import ByteLevelTokenizer
from ....decoding.sampling import filter_logits
from ....model.modern import LanguageModel
from ..svg import Picture
from ..svg.next_word import NextWord, next_word_picture, refused_picture
from .controls import number, word
from .panel import Panel

MOST_BARS, LONGEST_QUESTION = 8, 200  # likeliest tokens that are drawn; tokens of a question


def next_word(
    model: LanguageModel,
    tokenizer: ByteLevelTokenizer,
    question: str = "What is the capital of France?",
    last: int = 40,
) -> Panel:
    """Ask a model that was taught to answer, and see at each word what it might have said instead.

    Args:
        model, tokenizer: the model, and its tokenizer with a chat template. question: asked first. last: the most
            tokens of an answer.

    Raises:
        ValueError: the tokenizer has no chat template.
    """
    if tokenizer.chat_template is None:
        raise ValueError("tokenizer must have a chat_template, which writes a question as a text, got None")
    answers = _Answers(model, tokenizer)

    def draw(question: str, said: int, temperature: float, roll: int) -> Picture:
        return draw_next_word(answers, question, said, temperature, roll)

    controls = {
        "question": word("question, then Enter", question),
        "said": number("tokens said", 0, 0, last),
        "temperature": number("temperature", 0.0, 0.0, 2.0, 0.1),
        "roll": number("roll of the dice", 1, 1, 20),
    }
    few = {"question": [question], "said": range(min(last, 12) + 1), "temperature": [0.0, 0.7, 1.5], "roll": [1, 2]}
    return Panel(draw, controls, widget_id="W36", carried={name: list(values) for name, values in few.items()})


def draw_next_word(answers: _Answers, question: str, said: int, temperature: float, roll: int) -> Picture:
    """Draw the answer after `said` tokens, or to its end, and what may come next."""
    tokenizer = answers.tokenizer
    try:
        prompt = tokenizer.encode_chat([{"role": "user", "content": question.strip()}])
    except ValueError:
        return refused_picture(question, "This text has a byte for which the tokenizer has no token.")
    if not question.strip():
        return refused_picture(question, "Type a question, and press Enter.")
    if len(prompt) > LONGEST_QUESTION:
        return refused_picture(question, f"Ask something shorter: this is {len(prompt)} tokens, with the template's.")
    ids, chances = answers.after(prompt, said, temperature, roll)
    likeliest = chances.topk(min(MOST_BARS, len(chances)))
    names = [tokenizer.token(int(i)) for i in likeliest.indices]
    chosen = tokenizer.token(_chosen(chances, len(ids) - 1, temperature, roll))
    how = f"at temperature {temperature:g}, roll {roll}," if temperature else "at temperature 0"
    answer = tokenizer.decode(ids[len(prompt) :])
    return next_word_picture(NextWord(question, answer, names, likeliest.values.tolist(), chosen, how))


def _chosen(chances: Tensor, position: int, temperature: float, roll: int) -> int:
    """Return the likeliest id at temperature 0, else one that is drawn, the same for the same roll and position."""
    if not temperature:
        return int(chances.argmax())
    generator = torch.Generator().manual_seed(1000 * roll + position)
    return int(torch.multinomial(chances, 1, generator=generator))


class _Answers:
    """A model whose cache is kept from one picture to the next, so that only what is new is computed."""

    def __init__(self, model: LanguageModel, tokenizer: ByteLevelTokenizer) -> None:
        self.model, self.tokenizer = model, tokenizer
        self._cache, self._read = model.new_cache(), list[int]()
        self._known: dict[tuple[int, ...], Tensor] = {}

    def after(self, prompt: Sequence[int], said: int, temperature: float, roll: int) -> tuple[list[int], Tensor]:
        """Return the ids after `said` tokens, or when the answer ends, and the chances of the next one [vocab_size]."""
        ids = list(prompt)
        chances = self._chances(ids, temperature)
        while len(ids) < len(prompt) + said:
            new = _chosen(chances, len(ids) - 1, temperature, roll)
            if new in self.tokenizer.stop_ids:
                break
            ids.append(new)
            chances = self._chances(ids, temperature)
        return ids, chances

    def _chances(self, ids: Sequence[int], temperature: float) -> Tensor:
        """Return softmax(logits / temperature) of the token after ids; at temperature 0 those of the model itself."""
        logits = self._known.get(tuple(ids))
        if logits is None:
            logits = self._known[tuple(ids)] = self._logits(list(ids))
            if len(self._known) > 256:  # an hour of play must not fill the memory
                self._known.pop(next(iter(self._known)))
        return filter_logits(logits, temperature=temperature or 1.0).softmax(dim=-1)

    @torch.no_grad()
    def _logits(self, ids: list[int]) -> Tensor:
        pairs = zip(self._read, ids[:-1], strict=False)
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        self._cache.crop(common)
        self._read = ids
        logits: Tensor = self.model(torch.tensor([ids[common:]]), self._cache)[0, -1]
        return logits
