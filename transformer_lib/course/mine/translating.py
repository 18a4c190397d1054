"""Decoding with the learner's greedy loop and beam step, one sentence at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor

from ...data.tokenizers import pad_batch
from ...decoding.stepping import check_weights
from ...decoding.translator import Tokenizer, Translator
from ...model.evaluating import evaluating
from .account import account, celebrate
from .assembling import AssembledTransformer
from .library import Parts
from .words import UnknownWords, check_known
from .wrapping import counted


class MyTranslator(Translator):
    """Translates as the library's `Translator` does, with the parts of its model; `path="fast"` is refused.

    A word that it does not know is `UnknownWords`, a ValueError whose message a notebook shows without a traceback.
    """

    model: AssembledTransformer

    def __init__(self, model: AssembledTransformer, src_tokenizer: Tokenizer, tgt_tokenizer: Tokenizer) -> None:
        super().__init__(model, src_tokenizer, tgt_tokenizer)
        self.parts = model.parts

    def show(self, *texts: str, beam_size: int = 1) -> None:
        """Print each text with its translation, then whose code that was; or say which words are unknown.

        Raises:
            TypeError, ValueError: as for `translate`, but for unknown words.
        """
        try:
            with counted(self.parts) as calls:
                translations = self.translate(texts, beam_size=beam_size)
        except UnknownWords as error:
            print(error)
            return
        for text, translation in zip(texts, translations, strict=True):
            print(f"{text}\n  → {translation}")
        print(account(self.parts.theirs, calls))
        celebrate(self.parts.theirs)

    def _encode(self, text: str) -> list[int]:
        check_known(text, self.src_tokenizer)
        return super()._encode(text)

    @torch.no_grad()
    def _decode(self, src: Tensor, beam_size: int, length_penalty: float, **options: Any) -> Tensor:
        if options["path"] != "readable":
            raise ValueError(f"path must be 'readable' for a model of your own parts, got {options['path']!r}")
        check_weights("model", self.model)
        config, limit = self.model.config, options["max_new_tokens"]
        rows = []
        with evaluating(self.model):
            for row in src.to(self.device):
                following = self._following(row[row != config.pad_id][None])
                if beam_size == 1:
                    ids = self.parts.greedy_loop(following, config.bos_id, config.eos_id, limit)
                else:
                    search = BeamSearch(self.parts, beam_size, length_penalty, limit, config.eos_id)
                    ids = search.best(following, config.bos_id)
                rows.append([int(token) for token in ids])
        return pad_batch(rows, config.pad_id).to(src)

    def _following(self, src: Tensor) -> Callable[[list[int]], Tensor]:
        """Return a function from the ids of a target so far to the logits [vocab_size] of its next token."""
        return lambda ids: cast(Tensor, self.model(src, torch.tensor([list(ids)], device=src.device)))[0, -1]


class BeamSearch:
    """Beam search for one sentence, by the same rules as `tl.beam_search`.

    Args:
        parts: their `softmax` and `beam_step` are used. beam_size: prefixes kept. alpha: of the length penalty.
        limit: most tokens after bos.
    """

    def __init__(self, parts: Parts, beam_size: int, alpha: float, limit: int, eos_id: int) -> None:
        self.parts, self.beam_size, self.alpha, self.limit, self.eos_id = parts, beam_size, alpha, limit, eos_id
        self.beams: list[tuple[list[int], float]] = []
        self.ended: list[tuple[list[int], float]] = []  # with their scores

    def best(self, following: Callable[[list[int]], Tensor], bos_id: int) -> list[int]:
        """Return the ids of the best hypothesis; `following` gives the next token's logits."""
        self.beams = [([bos_id], 0.0)]
        for _ in range(self.limit):
            self._extend(self._continuations(torch.stack([following(ids) for ids, _ in self.beams])))
            if not self.beams or self._decided():
                break
        else:
            self.ended += [self._scored(*beam) for beam in self.beams]
        return max(self.ended, key=lambda hypothesis: hypothesis[1])[0]

    def _continuations(self, logits: Tensor) -> list[tuple[float, int, int]]:
        """Return score, parent and token of the 2 · beam_size best, best first: at most half of them end in eos.

        There are always as many beams as continuations wanted; those that are missing have a score of −∞.
        """
        wanted, missing = 2 * self.beam_size, 2 * self.beam_size - len(logits)
        log_probs = self.parts.softmax(logits).log()
        scores = logits.new_tensor([score for _, score in self.beams] + [-math.inf] * missing)
        table = torch.cat([log_probs, log_probs.new_zeros(missing, logits.shape[1])])
        found = zip(*(part.tolist() for part in self.parts.beam_step(scores, table, wanted)), strict=True)
        return [(score, int(parent), int(token)) for score, parent, token in found if score > -math.inf]

    def _extend(self, continuations: list[tuple[float, int, int]]) -> None:
        """Keep the best that go on, and what ends among the beam_size best."""
        kept: list[tuple[list[int], float]] = []
        for rank, (score, parent, token) in enumerate(continuations):
            ids = [*self.beams[parent][0], token]
            if token == self.eos_id:
                self.ended += [self._scored(ids, score)] if rank < self.beam_size else []
            elif len(kept) < self.beam_size:
                kept.append((ids, score))
        self.beams = kept

    def _decided(self) -> bool:
        """Return True when beam_size hypotheses have ended and no beam can still win (see `tl.beam_search`)."""
        if len(self.ended) < self.beam_size:
            return False
        return self.beams[0][1] / self._penalty(self.limit) <= max(score for _, score in self.ended)

    def _scored(self, ids: list[int], log_probability: float) -> tuple[list[int], float]:
        return ids, log_probability / self._penalty(len(ids) - 1)

    def _penalty(self, length: int) -> float:
        return float(((5 + length) / 6) ** self.alpha)
