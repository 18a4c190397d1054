"""The course's longer runs on the context corpus: our model beside its baselines, over several seeds."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from ...baselines import GRUTranslator, SelfOnlyTransformer
from ...data.corpora import Pair
from ...data.tokenizers import WordTokenizer
from ...decoding.translator import Translator
from ...fast.eligibility import fastest_path
from ...model.config import TransformerConfig
from ...model.transformer import Transformer
from ...training.evaluation import loss_per_token
from ...training.loop import train
from ...training.options import History
from . import stored

load_results = stored.loader("context/results.json")
SIZES = {"d_model": 96, "n_heads": 4, "n_layers": 2, "d_ff": 192, "dropout": 0.0, "max_len": 64}
TRAINING: dict[str, Any] = {
    "epochs": 4,
    "learning_rate": 3e-3,
    "schedule": "cosine",
    "warmup_steps": 400,
    "label_smoothing": 0.1,
}
BATCH_SIZE = 32
GRU_HIDDEN = 119  # as many parameters as the Transformer, within a few per cent
VALIDATED_EVERY = 182  # steps: a quarter of a pass
TEST_SPLITS = ("heldout", "compositional", "hard")

MODELS: dict[str, Callable[[TransformerConfig], nn.Module]] = {
    "transformer": Transformer,
    "self-only attention": SelfOnlyTransformer,
    "GRU": lambda config: GRUTranslator(config, GRU_HIDDEN),
}


def new_translator(pairs: Sequence[Pair], *, seed: int, kind: str = "transformer", **changes) -> Translator:
    """Return an untrained translator with the vocabularies of `pairs`.

    Args:
        seed: of the weights. kind: one of MODELS. changes: fields of `TransformerConfig` that differ from SIZES.
    """
    if kind not in MODELS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, MODELS))}, got {kind!r}")
    src, tgt = _vocabularies(tuple(pairs))
    config = TransformerConfig(src_vocab_size=len(src), tgt_vocab_size=len(tgt), **{**SIZES, **changes})
    torch.manual_seed(seed)
    return Translator(MODELS[kind](config), src, tgt)


@functools.lru_cache(maxsize=4)
def _vocabularies(pairs: tuple[Pair, ...]) -> tuple[WordTokenizer, WordTokenizer]:
    """Return the word tokenizers of both sides; counting 23,000 sentences takes seconds, so it is done once."""
    return WordTokenizer.from_texts(p.src for p in pairs), WordTokenizer.from_texts(p.tgt for p in pairs)


def train_translator(translator: Translator, pairs: Sequence[Pair], *, seed: int, **changes) -> History:
    """Train with the course's recipe; `changes` are options of `train` that differ from TRAINING."""
    batches = translator.batches(pairs, BATCH_SIZE, seed=seed)
    return train(translator.model, batches, **{**TRAINING, "path": fastest_path(translator.model), **changes})


class Watched:
    """The loss on pairs that the translator is not trained on, smoothed as in training, while it is trained."""

    def __init__(self, translator: Translator, pairs: Sequence[Pair]) -> None:
        self.translator, self.pairs = translator, pairs
        self.curve: dict[str, list] = {"steps": [], "loss": []}

    def look(self, step: int, training_loss: float) -> None:
        """Measure at every VALIDATED_EVERY-th step."""
        if step % VALIDATED_EVERY == 0:
            self.curve["steps"].append(step)
            self.curve["loss"].append(round(self.loss(label_smoothing=TRAINING["label_smoothing"]), 4))

    def loss(self, *, label_smoothing: float = 0.0) -> float:
        """Return the loss of the model as it is now, without dropout, in nats per token."""
        model, batches = self.translator.model, self.translator.batches(self.pairs, 64)
        return loss_per_token(model, batches, label_smoothing=label_smoothing, path=fastest_path(model))
