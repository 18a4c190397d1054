"""A Llama out of a GGUF file, in the format of Hugging Face: weights under its names, in its order, and config.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from tqdm.auto import tqdm

from ...data import gguf
from .vocabulary import write_tokenizer

Array = npt.NDArray[Any]

# Of a layer "blk.0." in a GGUF file, and of "model.layers.0." in a state dict.
LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
OUTSIDE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
HEADS = {"attn_q": "num_attention_heads", "attn_k": "num_key_value_heads"}  # whose rows are turned by their position

# Entries of config.json and where the metadata has them, after the name of the architecture.
SIZES = {
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "num_hidden_layers": "block_count",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "max_position_embeddings": "context_length",
}
SPECIAL = {"bos_token_id": "bos_token_id", "eos_token_id": "eos_token_id", "pad_token_id": "padding_token_id"}


def convert(path: Path, folder: Path, dtype: str = "float32", *, progress: bool = True) -> None:
    """Write config.json, generation_config.json, model.safetensors and the tokenizer's files into a folder.

    One tensor at a time is decoded, so that this takes the memory of the largest.

    Raises:
        ValueError: the file is no Llama, or has something that is not carried over.
    """
    file = gguf.read(path)
    config = config_of(file, dtype)
    special = {name: config[name] for name in SPECIAL if name in config}
    _write_json(folder / "config.json", config)
    _write_json(folder / "generation_config.json", special)
    write_tokenizer(file.metadata, folder)
    entries = {hf_name(name): entry for name, entry in file.tensors.items()}
    write_safetensors(folder / "model.safetensors", entries, config, progress=progress)


def config_of(file: gguf.File, dtype: str) -> dict[str, Any]:
    """Return what config.json says of a Llama, from the metadata of its file.

    Raises:
        ValueError: it is another architecture, its rotary positions are scaled or turn a part of a head only, or the
            metadata lacks something.
    """
    kind = entry_of(file.metadata, "general.architecture")
    if kind != "llama":
        raise ValueError(f"general.architecture must be 'llama', got {kind!r}")
    config = {name: entry_of(file.metadata, f"llama.{key}") for name, key in SIZES.items()}
    width = config["hidden_size"] // config["num_attention_heads"]
    _check_rotary(file.metadata, width)
    special = {name: f"tokenizer.ggml.{key}" for name, key in SPECIAL.items()}
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        **config,
        "head_dim": width,
        "vocab_size": len(entry_of(file.metadata, "tokenizer.ggml.tokens")),
        "hidden_act": "silu",
        "rms_norm_eps": _shortest(entry_of(file.metadata, "llama.attention.layer_norm_rms_epsilon")),
        "rope_theta": entry_of(file.metadata, "llama.rope.freq_base"),
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": "output.weight" not in file.tensors,
        **{name: file.metadata[key] for name, key in special.items() if key in file.metadata},
        "dtype": dtype,
    }


def entry_of(metadata: Mapping[str, Any], key: str) -> Any:
    """Return an entry of the metadata, or raise ValueError where it is missing."""
    if key not in metadata:
        raise ValueError(f"the metadata must have {key!r}, got {len(metadata)} others")
    return metadata[key]


def _check_rotary(metadata: Mapping[str, Any], width: int) -> None:
    scaled = [key for key in metadata if key.startswith("llama.rope.scaling.")]
    if scaled:
        raise ValueError(f"the rotary positions must not be scaled, got {scaled[0]} = {metadata[scaled[0]]!r}")
    turned = metadata.get("llama.rope.dimension_count", width)
    if turned != width:
        raise ValueError(f"llama.rope.dimension_count must be {width}, all of a head, got {turned}")


def _shortest(number: float) -> float:
    """Return the shortest decimal that is the same in 32 bits, as the file has it: 1e-05 for 9.9999997e-06."""
    return float(str(np.float32(number)))


def hf_name(name: str) -> str:
    """Return how Hugging Face names a tensor of a GGUF file: "blk.3.attn_q.weight" → "model.layers.3.self_attn.…".

    Raises:
        ValueError: a Llama has none of this name, such as a bias or factors of rotary frequencies.
    """
    match name.split("."):
        case ["blk", layer, part, "weight"] if part in LAYER and layer.isdecimal():
            return f"model.layers.{layer}.{LAYER[part]}.weight"
        case [part, "weight"] if part in OUTSIDE:
            return f"{OUTSIDE[part]}.weight"
    raise ValueError(f"a Llama must have only weights that Hugging Face names, got {name!r}")


def halves_from_pairs(rows: Array, n_heads: int) -> Array:
    """Return the rows of a projection to queries or keys as Hugging Face orders them: [n_heads · d_k, d_model] again.

    A rotary position turns pairs of features. In a GGUF file of a Llama a pair lies side by side, features 2i and 2i+1
    of a head; Hugging Face pairs the halves, i and i + d_k/2. (Either order gives the same model if positions turn the
    same pairs, and a wrong one raises no error: it only reads worse.)
    """
    pairs = rows.reshape(n_heads, -1, 2, rows.shape[1])  # [n_heads, d_k/2, 2, d_model]
    return pairs.swapaxes(1, 2).reshape(rows.shape)  # [n_heads, 2, d_k/2, d_model] → [n_heads · d_k, d_model]


def hf_weights(entry: gguf.Entry, config: Mapping[str, Any]) -> Array:
    """Return a tensor's weights as Hugging Face has them, in float32."""
    weights, part = entry.array(), entry.name.split(".")[-2]
    return halves_from_pairs(weights, config[HEADS[part]]) if part in HEADS else weights


def write_safetensors(
    path: Path, entries: Mapping[str, gguf.Entry], config: Mapping[str, Any], *, progress: bool = True
) -> None:
    """Write tensors in the format of safetensors, one after the other, in config["dtype"].

    Eight bytes with the length of the header; the header, in JSON, says where each tensor is among the bytes after it.
    (`safetensors` itself writes what is in memory, all of it.)
    """
    code, size = {"float32": ("F32", 4), "bfloat16": ("BF16", 2)}[config["dtype"]]
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, entry in entries.items():
        end = at + int(np.prod(entry.shape)) * size
        header[name] = {"dtype": code, "shape": list(entry.shape), "data_offsets": [at, end]}
        at = end
    words = json.dumps(header).encode()
    words += b" " * (-(8 + len(words)) % 64)  # so that the first tensor begins at a multiple of 64
    with path.open("wb") as out:
        out.write(len(words).to_bytes(8, "little") + words)
        with tqdm(total=at, desc=f"writing {path.name}", unit="B", unit_scale=True, disable=not progress) as bar:
            for entry in entries.values():
                bar.update(out.write(_stored(hf_weights(entry, config), code).data))


def _stored(weights: Array, code: str) -> Array:
    """Return the numbers as they are written; bfloat16, which NumPy does not have, as the integers of its bits."""
    weights = np.ascontiguousarray(weights, "<f4")
    if code == "F32":
        return weights
    return torch.from_numpy(weights).bfloat16().view(torch.int16).numpy()


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
