"""Spoils one part of the model for a moment, and shows translations before and after."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from html import escape
from types import TracebackType

import torch
from torch import Tensor

from ..progress.view import View
from .parts import ELSEWHERE
from .running import silence
from .spoiling import SPOILINGS
from .translating import MyTranslator
from .words import check_known
from .wrapping import counted, wrapped

# Sentences in which the slighter spoilings are seen, too: an order, a verb at the end, a word with two meanings.
SENTENCES = (
    "The man saw the bank near the river.",
    "The brother saw the cave and an ugly bat.",
    "The donkey could not pull the car because it was too sick.",
    "The child drew the crane because the woman had to describe the bird.",
)
_LONGEST = 90  # characters of a translation
_SAME = "the same"
_ROUNDING = 1e-4  # moves no logit by so much


class Breaking(View):
    """One part of a translator's model, spoilt.

    As the last line of a cell, or printed, it shows what the spoilt part does to translations. In a `with` block it
    gives the translator with the part spoilt, which is whole again after the block.

    Args:
        name: of the part. translator: whose. texts: what is translated.

    Raises:
        ValueError: there is no such part in the model; UnknownWords, for a text that cannot be translated.
    """

    def __init__(self, name: str, translator: MyTranslator, texts: Sequence[str]) -> None:
        super().__init__(self._compared)
        if name not in SPOILINGS:
            raise ValueError(f"part must be one of {', '.join(SPOILINGS)}, got {name!r}")
        self.name, self.translator, self.texts = name, translator, list(texts)
        for text in self.texts:
            check_known(text, translator.src_tokenizer)
        self._open = ExitStack()

    def __enter__(self) -> MyTranslator:
        with ExitStack() as stack:
            stack.enter_context(wrapped(self.translator.parts, {self.name: SPOILINGS[self.name].wrap}))
            self._open = stack.pop_all()
        return self.translator

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._open.close()

    def _compared(self) -> tuple[str, str]:
        """Return HTML and text of the comparison."""
        before, calls = self._translated()
        inputs = self._batch(before)
        whole = self._measured(inputs)
        with self:
            after = self._attempted()
            spoilt = self._measured(inputs)
        pairs = [(old, _SAME if new == old else new) for old, new in zip(before, after, strict=True)]
        told = [self._moved(whole, spoilt), self._closing(sum(new != _SAME for _, new in pairs), calls)]
        return _html(self._title(), self.texts, pairs, told), _text(self._title(), self.texts, pairs, told)

    def _title(self) -> str:
        now = f"{self.name} is broken for a moment: it {SPOILINGS[self.name].now}."
        return f"Your {now}" if self._is_theirs else f"The library's {now} (Yours is not written yet.)"

    @property
    def _is_theirs(self) -> bool:
        return self.name in self.translator.parts.theirs

    @property
    def _beams(self) -> int:
        return 2 if self.name == "beam_step" else 1

    def _translated(self) -> tuple[list[str], int]:
        """Return the translations, and how often the part ran for them."""
        with counted(self.translator.parts) as calls:
            return self.translator.translate(self.texts, beam_size=self._beams), calls[self.name]

    def _attempted(self) -> list[str]:
        """Return the translations by the spoilt model, or what it stopped with."""
        try:
            return self.translator.translate(self.texts, beam_size=self._beams)
        except Exception as error:  # theirs, which meets what it never expected
            return [f"it stops with {type(error).__name__}: {error}"] * len(self.texts)

    def _batch(self, german: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Return the sentences and their translations as one padded batch."""
        texts = [*self.texts, *SENTENCES[:1]]  # of different lengths
        targets = [*german, *self.translator.translate(SENTENCES[:1])]
        tokenizers = self.translator.src_tokenizer, self.translator.tgt_tokenizer
        return tokenizers[0].encode_batch(texts), tokenizers[1].encode_batch(targets, bos=True, eos=True)

    @torch.no_grad()
    def _measured(self, inputs: tuple[Tensor, Tensor]) -> tuple[Tensor, float] | None:
        """Return the logits where a word follows, and the loss; None where the model stops."""
        src, tgt = inputs
        model = self.translator.model
        try:
            return model(src, tgt[:, :-1])[tgt[:, 1:] != model.config.pad_id], float(model.loss(src, tgt))
        except Exception:  # as above
            return None

    def _moved(self, whole: tuple[Tensor, float] | None, spoilt: tuple[Tensor, float] | None) -> str:
        if whole is None or spoilt is None:
            return ""
        most = float((spoilt[0] - whole[0]).abs().max())
        if most < _ROUNDING:
            same = abs(spoilt[1] - whole[1]) < _ROUNDING
            return "" if same else f"The loss of a batch of them: {whole[1]:.2f} before, {spoilt[1]:.2f} broken."
        size = "so far that some are no numbers any more (NaN)" if math.isnan(most) else f"by up to {most:.1f}"
        return f"Read together in one padded batch, as in training, their logits move {size}."

    def _closing(self, changed: int, calls: int) -> str:
        if not calls and self._is_theirs and self.name not in ELSEWHERE:
            return f"Nothing changed, and nothing could. {silence(self.name)}"
        how_many = f"{changed} of {len(self.texts)} translations changed." if changed else "Not one word changed!"
        why = f" Why {'not more' if changed else 'not'}? {SPOILINGS[self.name].unnoticed}"
        untouched = ", and your file was not touched" if self._is_theirs else ""
        return f"{how_many}{why if changed < len(self.texts) else ''} It is whole again now{untouched}."


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST].rpartition(" ")[0] + " …"


def _text(title: str, texts: Sequence[str], pairs: Sequence[tuple[str, str]], told: Sequence[str]) -> str:
    lines = [title]
    for text, (before, after) in zip(texts, pairs, strict=True):
        lines += ["", text, f"  before  {_cut(before)}", f"  broken  {_cut(after)}"]
    return "\n".join([*lines, "", *filter(None, told)])


def _html(title: str, texts: Sequence[str], pairs: Sequence[tuple[str, str]], told: Sequence[str]) -> str:
    def cell(words: str, mark: Callable[[str], str] = str) -> str:
        return f'<td style="text-align:left">{mark(escape(_cut(words)))}</td>'

    rows = [
        f"<tr>{cell(text)}{cell(before)}{cell(after, str if after == _SAME else '<b>{}</b>'.format)}</tr>"
        for text, (before, after) in zip(texts, pairs, strict=True)
    ]
    head = "".join(f'<th scope="col" style="text-align:left">{word}</th>' for word in ("English", "before", "broken"))
    table = f"<table><caption>{escape(title)}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f"{table}</table>" + "".join(f"<p>{escape(line)}</p>" for line in told if line)
