"""Llama, Qwen3, Mistral and Mixtral of `transformers` in this library, and what a slip costs (notebook 20).

`load_results()["Llama"]["moved"]["neighbouring pairs"]` has a number for each model.
"""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from ...model import modern
from . import stored
from .ports import draw_anew

load_results = stored.loader("ports_today.json")

# Vocabulary, positions, layers, d_model, heads, heads of keys, d_head, d_ff, window. Heads are not d_model / d_head.
MODELS = ((53, 17, 2, 66, 6, 3, 10, 71, 5), (97, 23, 3, 35, 5, 1, 14, 67, 7), (31, 13, 1, 44, 4, 2, 6, 89, 3))
SENTENCES, SPREAD = 3, 0.2  # the standard deviation of weights that are drawn again
BASES = {"Llama": 5000.0, "Qwen3": 10000.0, "Mistral": 10000.0, "Mixtral": 1000000.0}
LLAMA_31: dict[str, Any] = {  # what the config.json of Llama 3.1 8B says, as transformers 5 writes it
    **{"model_type": "llama", "vocab_size": 128_256, "hidden_size": 4096, "intermediate_size": 14_336},
    **{"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-5},
    "max_position_embeddings": 131_072,
    "rope_parameters": {
        **{"rope_type": "llama3", "rope_theta": 500_000.0, "factor": 8.0},
        **{"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192},
    },
}
EXPERTS = (5, 2)  # of Mixtral: how many there are, and how many a token goes to


def new_theirs(kind: str, number: int) -> nn.Module:
    """Return a model of transformers all of whose parameters are drawn again; number is its size in MODELS and seed."""
    words, places, layers, d_model, heads, kv_heads, d_head, d_ff, window = MODELS[number]
    transformers = importlib.import_module("transformers")
    sizes: dict[str, Any] = {"vocab_size": words, "max_position_embeddings": places, "num_hidden_layers": layers}
    sizes |= {"hidden_size": d_model, "num_attention_heads": heads, "num_key_value_heads": kv_heads}
    sizes |= {"head_dim": d_head, "intermediate_size": d_ff, "tie_word_embeddings": kind == "Qwen3"}
    if kind == "Mistral":
        sizes["sliding_window"] = window
    if kind == "Mixtral":
        sizes |= {"num_local_experts": EXPERTS[0], "num_experts_per_tok": EXPERTS[1]}
    rope = {"rope_type": "default", "rope_theta": BASES[kind]}
    described = getattr(transformers, f"{kind}Config")(rope_parameters=rope, **sizes)
    described._experts_implementation = "eager"  # the faster ones want widths that are multiples of 4
    torch.manual_seed(number)
    return draw_anew(getattr(transformers, f"{kind}ForCausalLM")(described).eval(), number, SPREAD)


def new_ids(number: int) -> Tensor:
    """Return random sentences, [3, places]."""
    words, places = MODELS[number][:2]
    return torch.randint(words, (SENTENCES, places), generator=torch.Generator().manual_seed(number))


def changed(right: modern.LanguageModel, **changes: Any) -> modern.LanguageModel:
    """Return a model with the same weights, and another configuration."""
    model = modern.LanguageModel(replace(right.config, **changes)).to(right.embedding.weight.dtype)
    model.load_state_dict(right.state_dict())
    return model.eval()


@torch.no_grad()
def moved_by(config: modern.Config, slip: dict[str, Any], spread: float, length: int) -> float:
    """Return by how much a slip, another value of some fields, moves the logits of random weights and words at most.

    Args:
        spread: the standard deviation of the weights. length: of the two random sentences, in tokens.
    """
    right = draw_anew(modern.LanguageModel(config), seed=0, spread=spread)
    ids = torch.randint(config.vocab_size, (2, length), generator=torch.Generator().manual_seed(0))
    return (changed(right, **slip)(ids) - right(ids)).abs().max().item()
