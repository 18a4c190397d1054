"""The code behind the course: a Transformer to read, train, decode, and look into.

>>> import transformer_lib as tl

The model's parts are at the top level; the sub-modules listed in `_SUBMODULES` load when first used.
"""

from __future__ import annotations

import importlib

from . import interop, metrics, numpy_reference
from .attention import scaled_dot_product_attention
from .batching import Batches
from .beam import beam_hypotheses, beam_search
from .checkpoint import load_checkpoint, save_checkpoint
from .config import TransformerConfig
from .corpus import Pair, load_corpus
from .decoder import Decoder, DecoderLayer
from .decoding import filter_logits, greedy_decode, sample_decode
from .encoder import Encoder, EncoderLayer
from .layers import FeedForward, LayerNorm
from .masks import causal_mask, padding_mask
from .multihead import MultiHeadAttention
from .positional import (
    LearnedPosition,
    RelativeBias,
    RotaryPosition,
    SinusoidalPosition,
    sinusoidal_encoding,
)
from .recording import record_attention
from .tokenizer import BPETokenizer, WordTokenizer, pad_batch
from .training import History, shift_right, train, translation_loss
from .transformer import Transformer
from .translator import Translator, load_trained

_SUBMODULES = ("baselines", "claims", "clinic", "costs", "course", "exercises", "experiments", "plotting", "progress",
               "quiz", "studies", "svg", "widgets")

__all__ = [
    "BPETokenizer",
    "Batches",
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "History",
    "LayerNorm",
    "LearnedPosition",
    "MultiHeadAttention",
    "Pair",
    "RelativeBias",
    "RotaryPosition",
    "SinusoidalPosition",
    "Transformer",
    "TransformerConfig",
    "Translator",
    "WordTokenizer",
    "beam_hypotheses",
    "beam_search",
    "causal_mask",
    "filter_logits",
    "greedy_decode",
    "interop",
    "load_checkpoint",
    "load_corpus",
    "load_trained",
    "metrics",
    "numpy_reference",
    "pad_batch",
    "padding_mask",
    "record_attention",
    "sample_decode",
    "save_checkpoint",
    "scaled_dot_product_attention",
    "shift_right",
    "sinusoidal_encoding",
    "train",
    "translation_loss",
]


def __getattr__(name: str) -> object:
    """Load a sub-module such as `tl.plotting` when it is first asked for."""
    if name in _SUBMODULES:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBMODULES])
