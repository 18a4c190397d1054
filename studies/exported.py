"""The trained translator in CTranslate2: does it say the same, and what do eight bits cost there? (notebook 22)

Of every split that was not trained on, how many sentences come out letter for letter as ours and how many exactly
right, greedily and with a beam, in float32 and with int8 weights. Needs `ctranslate2`: pip install -e ".[deploy]".
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import transformer_lib as tl
from transformer_lib.decoding import export

from .engine import Study, at_once

SPLITS = ("validation", "heldout", "compositional", "hard")
BEAM, LENGTH_PENALTY = 4, 0.0  # the penalty's formulas differ; without one, both search for the same
WAYS = {"greedy": 1, "beam": BEAM}


def measure(seeds: Sequence[int] = (), *, every: int = 1) -> dict[str, Any]:
    """Export the translator with both kinds of weights and compare what all three say.

    Args:
        seeds: nothing here is drawn at random. every: take every n-th sentence of a split.
    """
    ours = tl.load_trained()
    corpus = tl.load_corpus("context")
    pairs = {split: corpus[split][::every] for split in SPLITS}
    said = {split: _said(ours, some) for split, some in pairs.items()}
    splits: dict[str, Any] = {}
    for split, some in pairs.items():
        exact = {way: _exact(said[split][way], some) for way in WAYS}
        splits[split] = {"sentences": len(some), "ours": exact | {"loss": _our_loss(ours, some)}}
    sizes = {"ours": 4 * sum(p.numel() for p in ours.model.parameters())}
    for kind in export.QUANTIZATIONS:
        with tempfile.TemporaryDirectory() as folder:
            theirs = export.load_ctranslate2(export.to_ctranslate2(ours, Path(folder) / kind, quantization=kind))
            sizes[kind] = theirs.bytes
            for split, some in pairs.items():
                splits[split][kind] = _compared(theirs, some, said[split])
    return {"beam_size": BEAM, "length_penalty": LENGTH_PENALTY, "bytes": sizes, "splits": splits}


def _said(one: tl.Translator | export.Exported, pairs: Sequence[tl.Pair]) -> dict[str, list[str]]:
    """Return what the translator says, greedily and with a beam."""
    texts = [pair.src for pair in pairs]
    return {way: one.translate(texts, beam_size=beam, length_penalty=LENGTH_PENALTY) for way, beam in WAYS.items()}


def _compared(theirs: export.Exported, pairs: Sequence[tl.Pair], ours: dict[str, list[str]]) -> dict[str, Any]:
    """Return how many sentences are ours letter for letter, how many are right, the loss, and those that changed."""
    result: dict[str, Any] = {"loss": _their_loss(theirs, pairs)}
    said = _said(theirs, pairs)
    for way in WAYS:
        same = sum(map(str.__eq__, said[way], ours[way]))
        result[way] = {"same": same, "exact": _exact(said[way], pairs)}
    changed = [
        {"src": pair.src, "tgt": pair.tgt, "ours": before, "theirs": after}
        for pair, before, after in zip(pairs, ours["greedy"], said["greedy"], strict=True)
        if before != after
    ]
    return result | {"changed": changed}


def _exact(said: Sequence[str], pairs: Sequence[tl.Pair]) -> int:
    return sum(text == pair.tgt for text, pair in zip(said, pairs, strict=True))


def _our_loss(ours: tl.Translator, pairs: Sequence[tl.Pair]) -> float:
    """Return the mean of −log P of the right tokens and eos."""
    log_probs = ours.log_probabilities(*zip(*((pair.src, pair.tgt) for pair in pairs), strict=True))
    tokens = sum(len(ours.tgt_tokenizer.encode(pair.tgt, eos=True)) for pair in pairs)
    return round(-float(log_probs.double().sum()) / tokens, 5)


def _their_loss(theirs: export.Exported, pairs: Sequence[tl.Pair]) -> float:
    rows = theirs.log_probabilities(*zip(*((pair.src, pair.tgt) for pair in pairs), strict=True))
    return round(-sum(map(sum, rows)) / sum(map(len, rows)), 5)


STUDY = Study("exported", __doc__, at_once(measure), seeds=(0,), indent=1)


if __name__ == "__main__":
    STUDY.command()
