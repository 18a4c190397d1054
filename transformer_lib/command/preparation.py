"""The corpus as the command uses it: three splits, one subword vocabulary, and batches of about equal size."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .._files import write_atomically
from ..data.batches import Batches
from ..data.corpora import Corpus, Pair, load_corpus
from ..data.tokenizers import BPETokenizer
from ..training.distributed import from_first, rank

# Of each corpus: what is learned, what decides when it was learned best, and what is scored.
SPLITS = {"multi30k": ("train", "val", "test"), "context": ("train", "heldout", "compositional")}


@dataclass(frozen=True)
class Data:
    """The pairs of the splits, and the tokenizer of both languages."""

    train: Sequence[Pair]
    validation: Sequence[Pair]
    test: Sequence[Pair]
    tokenizer: BPETokenizer

    def batches(self, pairs: Sequence[Pair], max_tokens: int, seed: int = 0) -> Batches:
        """Return `pairs` in batches of at most max_tokens source and target tokens."""
        src = [self.tokenizer.encode(pair.src) for pair in pairs]
        tgt = [self.tokenizer.encode(pair.tgt, bos=True, eos=True) for pair in pairs]
        return Batches(src, tgt, max_tokens=max_tokens, seed=seed)


def prepare(arguments: argparse.Namespace) -> Data:
    """Load the corpus and learn the vocabulary, or read it from the folder; process 0 does, and tells the others."""
    first = rank() == 0
    corpus = from_first(load_corpus(arguments.corpus, download=arguments.download) if first else None)
    serialised = from_first(_vocabulary(arguments.out / "tokenizer.json", corpus, arguments) if first else None)
    train, validation, test = (corpus[split] for split in SPLITS[corpus.name])
    return Data(train, validation, test, BPETokenizer(serialised))


def _vocabulary(path: Path, corpus: Corpus, arguments: argparse.Namespace) -> str:
    """Return a tokenizer of the training pairs as text; it is written to `path`, and read once the run has begun."""
    if not path.exists() or not (path.parent / "config.json").exists():
        pairs = corpus[SPLITS[corpus.name][0]]
        texts = (text for pair in pairs for text in (pair.src, pair.tgt))
        tokenizer = BPETokenizer.from_texts(texts, vocab_size=arguments.vocab)
        write_atomically(path, tokenizer.to_string().encode("utf-8"))
    return path.read_text(encoding="utf-8")
