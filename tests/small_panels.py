"""Every interactive figure, made small, so that one test can ask all of them the same question."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from functools import cache
from typing import Any

import ipywidgets
import numpy as np
import torch

import transformer_lib as tl
from factories import make_model, randomise
from transformer_lib.course.figures import widgets
from transformer_lib.course.figures.catalogue import INTERACTIVE_FIGURES
from transformer_lib.course.figures.widgets.controls import Number
from transformer_lib.course.figures.widgets.masking_panel import Flips
from transformer_lib.data.byte_level import CHARACTER_OF_BYTE

IDS = {figure.function: figure.id for figure in INTERACTIVE_FIGURES}
TOKENS = ["the", "cat", "saw", "the", "dog"]
SENTENCES = ["The cat sat near the river.", "A dog slept."]
CLASSES = {"one": ["ant", "bee"], "two": ["red", "tan", "blue"], "three": ["go", "be"]}
WORDS = tl.WordTokenizer(["show", "me", "the", "money", "."])


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def softmax(*shape: int, seed: int = 0) -> np.ndarray:
    return torch.softmax(2 * torch.from_numpy(normal(*shape, seed=seed)), dim=-1).numpy()


def matrices(*, n: int = 5, d_model: int = 6, d_k: int = 3, d_v: int = 2) -> dict[str, np.ndarray]:
    shapes = {"X": (n, d_model), "W_Q": (d_model, d_k), "W_K": (d_model, d_k), "W_V": (d_model, d_v)}
    return {name: normal(*shape, seed=seed) for seed, (name, shape) in enumerate(shapes.items())}


@cache
def translator() -> tl.Translator:
    """An untrained translator with large weights, so that its probabilities differ."""
    src, tgt = tl.WordTokenizer.from_texts(SENTENCES), tl.WordTokenizer([f"w{i}" for i in range(13)])
    sizes = {"src_vocab_size": len(src), "tgt_vocab_size": len(tgt), "max_len": 19}
    return tl.Translator(make_model(3, scale=1.5, dtype=torch.float64, **sizes), src, tgt)


@cache
def letters() -> tl.ByteLevelTokenizer:
    """A tokenizer of 256 bytes, with the special tokens and the template of a chat."""
    vocab = {character: byte for byte, character in CHARACTER_OF_BYTE.items()}
    turns = "{% for message in messages %}<s>{{ message.content }}<e>{% endfor %}"
    template = turns + "{% if add_generation_prompt %}<s>{% endif %}"
    special = {"<s>": 256, "<e>": 257}
    return tl.ByteLevelTokenizer(vocab, [], special_tokens=special, eos="<e>", chat_template=tl.ChatTemplate(template))


@cache
def talker() -> tl.modern.LanguageModel:
    """An untrained language model with large weights, so that its probabilities differ."""
    torch.manual_seed(5)
    config = tl.modern.Config(vocab_size=258, d_model=12, n_heads=3, n_layers=2, d_ff=17, n_kv_heads=1)
    return randomise(tl.modern.LanguageModel(config).double(), 0.7).eval()


@cache
def draft() -> tl.Translator:
    """A translator that agrees with the other one on some words."""
    target = translator()
    model = tl.Transformer(target.model.config).double().eval()
    model.load_state_dict(target.model.state_dict())
    with torch.no_grad():
        noise = torch.randn(model.output_head.weight.shape, generator=torch.Generator().manual_seed(1))
        model.output_head.weight.add_(noise)
    return tl.Translator(model, target.src_tokenizer, target.tgt_tokenizer)


def language_model() -> tl.LanguageModel:
    torch.manual_seed(0)
    return tl.LanguageModel(len(WORDS), 2, 16, 2, 16, position="sinusoidal")


def attention_only(n_layers: int = 2, n_heads: int = 1) -> Any:
    torch.manual_seed(0)
    return tl.circuits.AttentionOnly(26, n_layers, 12, n_heads, max_len=32)


ARGUMENTS = {  # of the panels that need some, or are slow without
    "alignment": lambda: {"translator": translator(), "sentences": SENTENCES},
    "attention_explorer": lambda: {"translator": translator(), "sentences": SENTENCES},
    "attention_view": lambda: {
        "weights": {"encoder.layers.0.self_attention": softmax(2, 5, 5), "other": softmax(3, 5, 5, seed=1)},
        "q_tokens": TOKENS,
        "widget_id": "W20",
    },
    "decoder_stepper": lambda: {"translator": translator(), "sentences": SENTENCES},
    "embedding_plane": lambda: {
        "snapshots": {step: normal(7, 5, seed=step) for step in (0, 11, 23)},
        "classes": CLASSES,
    },
    "gathering": lambda: {"X": normal(7, 2)},
    "mask_dial": lambda: {"model": language_model(), "tokenizer": WORDS, "sentence": "Show me the money."},
    "mask_lab": lambda: {"scores": normal(5, 5).round(1), "tokens": ["<start>", "not", "on", "<pad>", "<pad>"]},
    "next_word": lambda: {"model": talker(), "tokenizer": letters(), "question": "Why?", "last": 5},
    "projection_stepper": lambda: {**matrices(d_model=7), "tokens": TOKENS},
    "residual_and_norm": lambda: {"n_blocks": 5},
    "shuffle": lambda: {**matrices(), "tokens": TOKENS},
    "speculation": lambda: {"target": translator(), "draft": draft(), "sentences": SENTENCES, "max_new_tokens": 7},
    "token_length": lambda: {"X": normal(5, 7), "tokens": TOKENS},
    "two_heads": lambda: {"model": attention_only(), "string": "blacksmith", "position": 13},
    "writing": lambda: {"translator": translator(), "sentences": SENTENCES},
}


def panel(name: str, **changes: Any) -> widgets.Panel:
    return getattr(widgets, name)(**{**ARGUMENTS.get(name, dict)(), **changes})


def by_hand(control: Any) -> None:
    """Move a control as a learner does."""
    if isinstance(control, Number):
        slider = control.slider
        slider.value = slider.min if slider.value == slider.max else slider.max
    elif isinstance(control, Flips):
        control.buttons["toggle cell"].click()
    elif isinstance(control, ipywidgets.Checkbox):
        control.value = not control.value
    elif hasattr(control, "options"):
        control.value = next(value for _, value in reversed(control.options) if value != control.value)
    else:
        control.value = "swan"


def _values(control: Any) -> list[Any]:
    """Return all that a control offers, or the ends of a long range."""
    if isinstance(control, Number):
        if isinstance(control.choices, range) and len(control.choices) <= 24:
            return list(control.choices)
        control.slider.value = control.slider.min
        low = control.value
        control.slider.value = control.slider.max
        return [low, control.value]
    if isinstance(control, Flips):
        return [(), tuple((2, j) for j in range(5))]
    if isinstance(control, ipywidgets.Checkbox):
        return [False, True]
    return [value for _, value in control.options] if hasattr(control, "options") else ["river", "", "a b", "x" * 99]


def corners(shown: widgets.Panel, most: int = 40) -> Iterator[dict[str, Any]]:
    """Yield settings of the controls, the ends of long ranges included: all if they are few, else some by chance."""
    every = list(itertools.product(*map(_values, shown.controls.values())))
    chosen = every if len(every) <= most else random.Random(0).sample(every, most)
    return (dict(zip(shown.controls, setting, strict=True)) for setting in chosen)
