"""A Transformer to read, to train, to decode with, and to look into.

>>> import transformer_lib as tl
>>> translator = tl.load_trained()
>>> translator.translate(["The man saw the bank near the river."])
['Der Mann sah das Ufer beim Fluss.']

One of your own, from pairs of sentences, each a `tl.Pair(english, german)`:

>>> pairs = tl.load_corpus("context")["train"][:320]
>>> words = [tl.WordTokenizer.from_texts(texts) for texts in zip(*((p.src, p.tgt) for p in pairs))]
>>> sizes = {"src_vocab_size": len(words[0]), "tgt_vocab_size": len(words[1])}
>>> model = tl.Transformer(tl.TransformerConfig(**sizes, d_model=32, n_heads=4, n_layers=1, d_ff=64))
>>> mine = tl.Translator(model, *words)
>>> history = tl.train(model, mine.batches(pairs, batch_size=32), epochs=2, progress=False)
>>> len(history.loss)
20

And what it looks at while it reads:

>>> src = mine.src_tokenizer.encode_batch([pairs[0].src])
>>> with tl.record_attention(model) as record:
...     ids = tl.greedy_decode(model, src, max_new_tokens=5)
>>> weights = record["encoder.layers.0.self_attention"]  # [batch, n_heads, q_len, k_len]

`help(tl.train)` lists every option. `model`, `training`, `decoding`, `data`, `fast` and `command` hold the library's
code, `baselines`, `costs` and `numpy_reference` what it is compared with, `by_hand` the whole model and its gradients
in NumPy alone; none of it imports the course. The names in `COURSE` are the other wing, `transformer_lib.course`: what
the notebooks need around the library. It is in the project's repository and is not installed with the library. Each of
its names loads when it is first asked for, so that the library works without JupyterLab.
"""

from __future__ import annotations

import importlib.util

from . import baselines, by_hand, costs, numpy_reference
from ._files import DATA
from .data import gguf, metrics
from .data.batches import Batches
from .data.byte_level import ByteLevelTokenizer
from .data.chat_template import ChatTemplate
from .data.corpora import Pair, load_corpus
from .data.digits import load_digits
from .data.tokenizers import BPETokenizer, WordTokenizer, pad_batch
from .decoding import export, paged, server, serving, speculative
from .decoding.beam import beam_hypotheses, beam_search
from .decoding.chat import Chat
from .decoding.generating import generate
from .decoding.pretrained import load_pretrained
from .decoding.sampling import filter_logits, greedy_decode, sample_decode
from .decoding.speculative import speculative_decode, speculative_sample
from .decoding.translator import Translator, load_trained
from .model import blockwise, circuits, int8, interop, lora, modern
from .model.attention import scaled_dot_product_attention
from .model.config import TransformerConfig
from .model.decoder import Decoder, DecoderLayer
from .model.decoder_only import DecoderOnlyTranslator
from .model.encoder import Encoder, EncoderLayer
from .model.evaluating import evaluating
from .model.interventions import cut, patch
from .model.layers import FeedForward, LayerNorm
from .model.masks import causal_mask, padding_mask, prefix_mask
from .model.multihead import MultiHeadAttention
from .model.one_stack import LanguageModel, MaskedLanguageModel, TextEncoder, mean_pool
from .model.positional import (
    LearnedPosition,
    RelativeBias,
    RotaryPosition,
    RotaryScaling,
    SinusoidalPosition,
    sinusoidal_encoding,
)
from .model.recording import record_attention
from .model.transformer import Transformer
from .training import preferences
from .training.answers import answer_loss
from .training.checkpoint import load_checkpoint, save_checkpoint
from .training.fine_tuning import fine_tune
from .training.loop import train
from .training.loss import TrainingLoss, shift_right, translation_loss
from .training.options import History, TrainingOptions

__version__ = "1.0.0"

# Where the course's wing keeps what notebooks call tl.plotting, tl.widgets, …
COURSE = {
    "certificate": "course.certificate",
    "clinic": "course.clinic",
    "course": "course",
    "exercises": "course.exercises",
    "mine": "course.mine",
    "plotting": "course.figures.plotting",
    "progress": "course.progress",
    "quiz": "course.quiz",
    "lab": "course.lab",
    "svg": "course.figures.svg",
    "widgets": "course.figures.widgets",
}

_NOT_INSTALLED = "is part of the course, not of the installed library: `make lab` in the project's repository opens it"

__all__ = [
    "DATA",
    "BPETokenizer",
    "Batches",
    "ByteLevelTokenizer",
    "Chat",
    "ChatTemplate",
    "Decoder",
    "DecoderLayer",
    "DecoderOnlyTranslator",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "History",
    "LanguageModel",
    "LayerNorm",
    "LearnedPosition",
    "MaskedLanguageModel",
    "MultiHeadAttention",
    "Pair",
    "RelativeBias",
    "RotaryPosition",
    "RotaryScaling",
    "SinusoidalPosition",
    "TextEncoder",
    "TrainingLoss",
    "TrainingOptions",
    "Transformer",
    "TransformerConfig",
    "Translator",
    "WordTokenizer",
    "answer_loss",
    "baselines",
    "beam_hypotheses",
    "beam_search",
    "blockwise",
    "by_hand",
    "causal_mask",
    "circuits",
    "costs",
    "cut",
    "evaluating",
    "export",
    "filter_logits",
    "fine_tune",
    "generate",
    "gguf",
    "greedy_decode",
    "int8",
    "interop",
    "load_checkpoint",
    "load_corpus",
    "load_digits",
    "load_pretrained",
    "load_trained",
    "lora",
    "mean_pool",
    "metrics",
    "modern",
    "numpy_reference",
    "pad_batch",
    "padding_mask",
    "paged",
    "patch",
    "preferences",
    "prefix_mask",
    "record_attention",
    "sample_decode",
    "save_checkpoint",
    "scaled_dot_product_attention",
    "server",
    "serving",
    "shift_right",
    "sinusoidal_encoding",
    "speculative",
    "speculative_decode",
    "speculative_sample",
    "train",
    "translation_loss",
]


def __getattr__(name: str) -> object:
    """Load a part of the course's wing, such as `tl.plotting`, when it is first asked for."""
    if name not in COURSE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return importlib.import_module(f".{COURSE[name]}", __name__)
    except ModuleNotFoundError as error:
        missing = error.name or __name__
        if missing == f"{__name__}.course":
            hint = f"{__name__}.{name} {_NOT_INSTALLED}"
        elif missing.partition(".")[0] != __name__:
            hint = f'{__name__}.{name} needs {missing}; in the folder of the course: pip install -e ".[course]"'
        else:
            raise  # a mistake of ours; nothing that can be installed
        raise ImportError(hint, name=missing) from error


def __dir__() -> list[str]:
    # help(tl) and tab completion ask for every name listed here, so the course is listed only where it can load.
    loads = all(map(importlib.util.find_spec, (f"{__name__}.course", "ipywidgets")))
    return sorted([*__all__, *(COURSE if loads else ())])
