"""The numbers of one sentence on its way through a translator: what the map of the model (W15) shows of a word."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ....decoding.sampling import greedy_decode
from ....decoding.translator import Translator
from ....model.evaluating import evaluating
from ....model.recording import record_attention
from ...mine.words import check_known
from ..plotting.base import likeliest
from ..svg.cells import short_labels, top_words
from ..svg.colours import signed_colour
from ..svg.elements import fit, rect, text

MOST = 20  # words of a sentence
SHOWN, WRITTEN = 24, 5  # numbers of a row as colours, and as digits
_LEFT, _TOP, _WIDTH, _CELL, _LARGEST = 12.0, 44.0, 340.0, 13.0, 3.0


@dataclass(frozen=True)
class Walked:
    """One sentence with its translation, and what each module of the model returned.

    Args:
        source, target: the words, as they are read. rows: by module, [len, features]; "position" has both sides'.
        weights: by module, the mean over the heads, [q_len, k_len]. German: the words of the target's vocabulary.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    src_ids: tuple[int, ...]
    tgt_ids: tuple[int, ...]
    rows: Mapping[str, list[np.ndarray]]
    weights: Mapping[str, np.ndarray]
    german: Sequence[str]

    @property
    def translation(self) -> str:
        """What was written, word by word, without `<bos>`."""
        return " ".join(self.target[1:])


@torch.no_grad()
def walk(translator: Translator, sentence: str, modules: Sequence[str]) -> Walked:
    """Translate a sentence greedily, and keep what these modules return when the translation is read at once.

    Raises:
        ValueError: the sentence has no word, more than MOST, or one that the translator does not know.
    """
    check_known(sentence, translator.src_tokenizer)
    model, src = translator.model, translator.src_tokenizer.encode_batch([sentence])
    if not 1 <= src.shape[1] <= MOST:
        raise ValueError(f"Type a sentence of 1 to {MOST} words and marks; this one has {src.shape[1]}.")
    tgt_in = greedy_decode(model, src, max_new_tokens=model.config.max_len - 1)[:, :-1]
    rows: dict[str, list[np.ndarray]] = {}
    with evaluating(model), record_attention(model) as record, _kept(model, modules, rows):
        model(src, tgt_in)
    words = [
        tuple(tokenizer.words[i] for i in ids[0].tolist())
        for tokenizer, ids in ((translator.src_tokenizer, src), (translator.tgt_tokenizer, tgt_in))
    ]
    weights = {name: grid[0].double().mean(dim=0).numpy() for name, grid in record.items()}
    return Walked(
        *words, tuple(src[0].tolist()), tuple(tgt_in[0].tolist()), rows, weights, translator.tgt_tokenizer.words
    )


class _kept:
    """Keep what modules return inside a `with` block, call by call, without the axis of the batch."""

    def __init__(self, model: nn.Module, modules: Sequence[str], rows: dict[str, list[np.ndarray]]) -> None:
        self.model, self.modules, self.rows = model, modules, rows

    def __enter__(self) -> None:
        self.hooks = [
            self.model.get_submodule(name).register_forward_hook(self._keeping(name)) for name in set(self.modules)
        ]

    def _keeping(self, name: str) -> Callable[[nn.Module, object, Tensor], None]:
        def keep(_: nn.Module, __: object, output: Tensor) -> None:
            self.rows.setdefault(name, []).append(output[0].double().numpy())

        return keep

    def __exit__(self, *error: object) -> None:
        for hook in self.hooks:
            hook.remove()


@dataclass(frozen=True)
class Shown:
    """What is shown of one word at one step: its name, a row of numbers (or none), and a line or two in words."""

    name: str
    row: np.ndarray | None
    lines: tuple[str, ...]

    def told(self) -> str:
        """Return all of it in one sentence."""
        return f"{self.name}: {'; '.join(self.lines)}."


def at_step(walked: Walked, step: int, module: str, word: int) -> Shown:
    """Return what a word's row holds at a step of the map (from 1); a word beyond the last is the last.

    Args:
        module: of the step, "" for ids and for the softmax. word: its number, from 1; after step 8 in the target.
    """
    words, ids = (walked.source, walked.src_ids) if step <= 8 else (walked.target, walked.tgt_ids)
    at = min(word, len(words)) - 1
    name = f"“{words[at]}”, word {at + 1} of {len(words)}"
    if step in (1, 9):
        return Shown(name, None, (f"the id is {ids[at]}",))
    if step >= 18:
        return Shown(f"after {name}", None, _following(walked.rows["output_head"][0][at], walked.german, step == 19))
    found = walked.rows[module]
    row = found[-1 if step > 8 else 0][at]
    if module.endswith("_embedding"):
        row = row * math.sqrt(len(row))  # the module returns the row of the table, as it is learned
    lines = [_written(row), f"{len(row)} numbers, length {np.linalg.norm(row):.1f}"]
    if module in walked.weights:
        keys = walked.source if step <= 8 or "cross" in module else walked.target
        lines.append(f"reads {top_words(walked.weights[module][at], short_labels(keys))}")
    return Shown(name, row, tuple(lines))


def _written(row: np.ndarray) -> str:
    return " ".join(_signed(x) for x in row[:WRITTEN]) + (" …" if len(row) > WRITTEN else "")


def _signed(x: float) -> str:
    written = f"{x:.2f}".replace("-", "−")
    return "0.00" if written == "−0.00" else written


def _following(logits: np.ndarray, words: Sequence[str], as_shares: bool) -> tuple[str, ...]:
    """Say which words are the likeliest to follow, by their probabilities or their logits."""
    if as_shares:
        shares = np.exp(logits - logits.max())
        found = [f"{word} {share:.3f}" for word, share in likeliest(shares / shares.sum(), words, 3)]
        return ("the likeliest next words", ", ".join(found))
    found = [f"{word} {_signed(logit)}" for word, logit in likeliest(logits, words, 3)]
    return (f"the largest of {len(logits)} logits", ", ".join(found))


def draw(shown: Shown) -> str:
    """Draw it in the corner of the map that the encoder leaves free."""
    parts = [text(_LEFT, _TOP, fit(shown.name, _WIDTH), "bold")]
    y = _TOP + 12
    if shown.row is not None:
        for i, x in enumerate(shown.row[:SHOWN]):
            parts.append(rect(_LEFT + i * _CELL, y, _CELL, 15, signed_colour(float(x), _LARGEST), 'stroke="#999"'))
        y += 19
    for line in shown.lines:
        y += 17
        parts.append(text(_LEFT, y, fit(line, _WIDTH), size=12))
    return "".join(parts)


def draw_problem(problem: str) -> str:
    """Write in the same corner why there are no numbers."""
    lines, line = [], ""
    for word in problem.split():
        if len(line) + len(word) > 46:
            lines, line = [*lines, line], ""
        line = f"{line} {word}".strip()
    lines = [*lines, line][:6]
    return "".join(text(_LEFT, _TOP + 17 * i, fit(each, _WIDTH)) for i, each in enumerate(lines))
