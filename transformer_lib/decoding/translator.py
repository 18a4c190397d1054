"""A model with its two vocabularies: text in, text out; and the trained one that is included."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from .._files import DATA
from .._lists import check_texts
from .._paths import PATHS, PathName
from .._validate import check_choice, check_int, check_not_negative
from ..data.batches import Batches
from ..data.corpora import Pair, check_pairs
from ..data.tokenizers import BOS_ID, EOS_ID, PAD_ID, SPECIAL_TOKENS, BPETokenizer, WordTokenizer, pad_batch
from ..model.base import TranslationModel
from ..model.evaluating import evaluating
from ..training.checkpoint import load_checkpoint, save_checkpoint
from .beam import beam_search
from .sampling import greedy_decode
from .stepping import check_weights

Tokenizer = WordTokenizer | BPETokenizer

TRAINED = {
    "context": DATA / "context" / "transformer.safetensors",
    "draft": DATA / "context" / "draft.safetensors",  # one narrow layer, which drafts for the other
}
_BATCH = 250  # sentences decoded together


class Translator:
    """Translates sentences with `model`, which reads ids of `src_tokenizer` and writes ids of `tgt_tokenizer`."""

    def __init__(self, model: TranslationModel, src_tokenizer: Tokenizer, tgt_tokenizer: Tokenizer) -> None:
        config = model.config
        for name, tokenizer, size in (
            ("src_tokenizer", src_tokenizer, config.src_vocab_size),
            ("tgt_tokenizer", tgt_tokenizer, config.tgt_vocab_size),
        ):
            if len(tokenizer) != size:
                raise ValueError(f"{name} must have the model's vocabulary size {size}, got {len(tokenizer)}")
        wanted = {"pad_id": PAD_ID, "bos_id": BOS_ID, "eos_id": EOS_ID}  # of every tokenizer here
        own = {name: getattr(config, name) for name in wanted}
        if own != wanted:
            raise ValueError(f"model must have the tokenizers' special ids {wanted}, got {own}")
        self.model, self.src_tokenizer, self.tgt_tokenizer = model, src_tokenizer, tgt_tokenizer

    def translate(
        self,
        texts: Iterable[str],
        *,
        beam_size: int = 1,
        max_new_tokens: int = 40,
        length_penalty: float = 0.6,
        path: PathName = "readable",
    ) -> list[str]:
        """Return one translation per text, by greedy decoding or, with beam_size > 1, by beam search.

        Args: `texts` may be read once, as a generator can be; for the others see `greedy_decode` and `beam_search`.
            max_new_tokens is at most the model's max_len.

        Raises:
            TypeError, ValueError: `texts` is one string, or has no order as a set; a text is empty or has an unknown
                word; a weight of the model is NaN or infinite.
        """
        listed = check_texts("texts", texts)
        check_int("beam_size", beam_size)
        check_int("max_new_tokens", max_new_tokens)
        check_not_negative("length_penalty", length_penalty)
        check_choice("path", path, PATHS)
        encoded = [self._encode(text) for text in listed]
        order = sorted(range(len(encoded)), key=lambda i: len(encoded[i]))  # similar lengths together
        results, limit = [""] * len(encoded), min(max_new_tokens, self.model.config.max_len)
        for start in range(0, len(order), _BATCH):
            indices = order[start : start + _BATCH]
            src = pad_batch([encoded[i] for i in indices])
            ids = self._decode(src, beam_size, length_penalty, max_new_tokens=limit, path=path)
            for i, row in zip(indices, ids, strict=True):
                results[i] = self.tgt_tokenizer.decode(row)
        return results

    def _encode(self, text: str) -> list[int]:
        ids = self.src_tokenizer.encode(text)
        if not ids:
            raise ValueError(f"each text must have at least one word, got {text!r}")
        return ids

    def _decode(self, src: Tensor, beam_size: int, length_penalty: float, **options: Any) -> Tensor:
        src = src.to(self.device)
        if beam_size == 1:
            return greedy_decode(self.model, src, **options)
        return beam_search(self.model, src, beam_size=beam_size, length_penalty=length_penalty, **options)

    @property
    def device(self) -> torch.device:
        """Where the model's weights are."""
        return next(self.model.parameters()).device

    def batches(self, pairs: Iterable[Pair], batch_size: int, *, seed: int = 0) -> Batches:
        """Return `pairs` as training batches in this translator's ids."""
        listed = check_pairs("pairs", pairs)
        src = [self.src_tokenizer.encode(pair.src) for pair in listed]
        tgt = [self.tgt_tokenizer.encode(pair.tgt, bos=True, eos=True) for pair in listed]
        return Batches(src, tgt, batch_size, seed=seed)

    @torch.no_grad()
    def log_probabilities(self, src: Iterable[str], tgt: Iterable[str]) -> Tensor:
        """Return log P(token | earlier ones, source) of each target token and its eos, [batch, tgt_len], padding 0.

        Raises:
            TypeError, ValueError: `src` or `tgt` is one string, they are none or not equally many; a source is empty;
                a text has an unknown word; a weight of the model is NaN or infinite.
        """
        texts, targets = check_text_pairs(src, tgt)
        if not texts:
            raise ValueError("src and tgt must not be empty, got no text")
        src_ids = pad_batch([self._encode(text) for text in texts]).to(self.device)
        tgt_ids = self.tgt_tokenizer.encode_batch(targets, bos=True, eos=True).to(self.device)
        check_weights("model", self.model)
        with evaluating(self.model):
            log_probs = self.model(src_ids, tgt_ids[:, :-1]).log_softmax(dim=-1)
        chosen = log_probs.gather(-1, tgt_ids[:, 1:, None])[..., 0]  # [batch, tgt_len]
        return chosen.masked_fill(tgt_ids[:, 1:] == self.model.config.pad_id, 0.0)

    def save(self, path: str | os.PathLike[str], **provenance: object) -> None:
        """Write model, tokenizers and provenance (JSON data: command, seed, scores) to one safetensors file."""
        if self.src_tokenizer is self.tgt_tokenizer:
            tokenizers = {"tokenizer": as_data(self.src_tokenizer)}
        else:
            tokenizers = {"src_words": as_data(self.src_tokenizer), "tgt_words": as_data(self.tgt_tokenizer)}
        save_checkpoint(path, self.model, extra={**tokenizers, "provenance": provenance})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Translator:
        """Read what `save` wrote, or the best weights of a run of `transformer-lib train`.

        Raises:
            FileNotFoundError, ValueError: as for `load_checkpoint`; ValueError also for a file without tokenizers.
        """
        checkpoint = load_checkpoint(path)
        return cls(checkpoint.model, *tokenizers_in(checkpoint.extra, str(path)))


def check_text_pairs(src: Iterable[str], tgt: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return texts and their translations as lists, if they are equally many."""
    texts, targets = check_texts("src", src), check_texts("tgt", tgt)
    if len(texts) != len(targets):
        raise ValueError(f"src and tgt must be equally many, got {len(texts)} and {len(targets)}")
    return texts, targets


def tokenizers_in(extra: dict[str, Any], source: str) -> tuple[Tokenizer, Tokenizer]:
    """Return the source and the target tokenizer that a checkpoint holds in `extra`.

    Raises:
        ValueError: there are none; `source` names the file.
    """
    if "tokenizer" in extra:
        both = _from_data(extra["tokenizer"])
        return both, both
    if not {"src_words", "tgt_words"} <= extra.keys():
        raise ValueError(f"checkpoint {source} must hold one tokenizer or two vocabularies, got {sorted(extra)}")
    return _from_data(extra["src_words"]), _from_data(extra["tgt_words"])


def as_data(tokenizer: Tokenizer) -> str | list[str]:
    """Return a tokenizer of subwords as text, one of words as the list of its words."""
    if isinstance(tokenizer, BPETokenizer):
        return tokenizer.to_string()
    return list(tokenizer.words[len(SPECIAL_TOKENS) :])


def _from_data(data: str | list[str]) -> Tokenizer:
    return BPETokenizer(data) if isinstance(data, str) else WordTokenizer(data)


def load_trained(name: str = "context") -> Translator:
    """Return the trained English-to-German translator that is included, or its "draft" (see data/README.md).

    Raises:
        ValueError: unknown name. FileNotFoundError: the weights are missing.
    """
    return Translator.load(TRAINED[check_choice("name", name, TRAINED)])
