"""The small GPT-2 and the small BERT of notebook 19.

`python -m studies.speakers_files` trains both, which takes about five minutes, and writes a folder of each to
data/speakers: config.json and model.safetensors, with the names and the arrangement that `transformers` gives them.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor, nn

from transformer_lib._files import write_atomically
from transformer_lib._streams import run_command
from transformer_lib.course.lab import speakers as lab
from transformer_lib.model.interop import gpt2_bert
from transformer_lib.model.one_stack import LanguageModel, MaskedLanguageModel

from .speakers import Setup, trained_bert, trained_gpt2

COMMAND = "python -m studies.speakers_files"
STEPS = {"gpt2": 2000, "bert": 3000}


def gpt2_state(model: LanguageModel) -> dict[str, Tensor]:
    """Return the weights of a model of GPT-2's form as `GPT2Model` has them: what `interop.load_gpt2` reads."""
    state = {"wte.weight": model.embedding.weight, "wpe.weight": model.position.table}
    state |= _both("ln_f", model.stack.norm)
    for number, layer in enumerate(model.stack.layers):
        for name, modules in gpt2_bert.gpt2_parts(layer).items():
            joined = {kind: torch.cat([getattr(module, kind) for module in modules]) for kind in ("weight", "bias")}
            if joined["weight"].dim() == 2:
                joined["weight"] = joined["weight"].T
            state |= {f"h.{number}.{name}.{kind}": tensor for kind, tensor in joined.items()}
    return _detached(state)


def bert_state(model: MaskedLanguageModel) -> dict[str, Tensor]:
    """Return the weights of a model of BERT's form as `BertForMaskedLM` has them: what `interop.load_bert` reads."""
    state = {
        "bert.embeddings.word_embeddings.weight": model.embedding.weight,
        "bert.embeddings.position_embeddings.weight": model.position.table,
        "bert.embeddings.token_type_embeddings.weight": model.segment.weight,
        "cls.predictions.bias": model.bias,
    }
    state |= _both("bert.embeddings.LayerNorm", model.norm)
    state |= _both("cls.predictions.transform.dense", model.transform)
    state |= _both("cls.predictions.transform.LayerNorm", model.head_norm)
    for number, layer in enumerate(model.stack.layers):
        for name, module in gpt2_bert.bert_parts(layer).items():
            state |= _both(f"bert.encoder.layer.{number}.{name}", module)
    return _detached(state)


def _both(name: str, module: nn.Module) -> dict[str, Any]:
    return {f"{name}.{kind}": getattr(module, kind) for kind in ("weight", "bias")}


def _detached(state: dict[str, Any]) -> dict[str, Tensor]:
    return {name: tensor.detach().contiguous() for name, tensor in state.items()}


def gpt2_config(model: LanguageModel) -> dict[str, Any]:
    """Return its config.json."""
    layers, d_model, heads, d_ff = lab.SIZES
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": model.embedding.num_embeddings,
        "n_positions": lab.PLACES,
        "n_layer": layers,
        "n_embd": d_model,
        "n_head": heads,
        "n_inner": d_ff,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }


def bert_config(model: MaskedLanguageModel) -> dict[str, Any]:
    """Return its config.json."""
    layers, d_model, heads, d_ff = lab.SIZES
    return {
        "architectures": ["BertForMaskedLM"],
        "model_type": "bert",
        "vocab_size": model.embedding.num_embeddings,
        "max_position_embeddings": lab.PLACES,
        "type_vocab_size": 2,
        "num_hidden_layers": layers,
        "hidden_size": d_model,
        "num_attention_heads": heads,
        "intermediate_size": d_ff,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "pad_token_id": 0,
    }


def write(kind: str, state: dict[str, Tensor], config: dict[str, Any]) -> None:
    """Write one folder."""
    place = lab.folder(kind)
    place.mkdir(parents=True, exist_ok=True)
    write_atomically(place / "config.json", (json.dumps(config, indent=1) + "\n").encode())
    write_atomically(place / "model.safetensors", save(state, metadata={"format": "pt", "command": COMMAND}))


def main() -> None:
    """Train both and write them."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    torch.set_num_threads(1)
    gpt2 = trained_gpt2(Setup(STEPS["gpt2"], 0))
    write("gpt2", gpt2_state(gpt2), gpt2_config(gpt2))
    bert, _ = trained_bert(Setup(STEPS["bert"], 0))
    write("bert", bert_state(bert), bert_config(bert))


if __name__ == "__main__":
    run_command(main)
