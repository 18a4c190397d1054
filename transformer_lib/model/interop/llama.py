"""Llama and its relatives: their weights in the block of today."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from .. import modern
from ..base import WithoutMemory
from .files import Entries
from .hf_config import hf_config
from .state_dict import StateDict, opened, set_parameter


def load_hf(weights: Mapping[str, Tensor] | str | Path, config: Any = None) -> modern.LanguageModel:
    """Return Llama or a relative with these weights, as a model of `tl.modern`.

    These are the blocks of Touvron et al. (2023); with scaled rotary positions (Llama 3.1 and 3.2, Grattafiori et al.
    2024), with biases of queries, keys and values (Qwen2 and 2.5, Yang et al. 2024), with normed queries and keys
    (Qwen3, Yang et al. 2025), with layers without positions (SmolLM3, Bakouch et al. 2025), with a sliding window
    (Mistral, Jiang et al. 2023), and with experts (Mixtral, Jiang et al. 2024).

    Args:
        weights: the state dict of `LlamaForCausalLM`, `Qwen2ForCausalLM`, `Qwen3ForCausalLM`, `SmolLM3ForCausalLM`,
            `MistralForCausalLM` or `MixtralForCausalLM` of transformers; or a .safetensors file, or a folder of them.
        config: its configuration, an object of transformers or the dictionary of a config.json. By default the
            config.json of the folder.

    Raises:
        ValueError: an entry is missing, left over, or of another shape; the configuration has something that
            `modern.Config` does not, such as another scaling of rotary positions.
    """
    return llama_of(*opened(weights, config))


def llama_of(entries: Entries, config: Any) -> modern.LanguageModel:
    """Return Llama or a relative with these entries of a state dict; see `load_hf`."""
    with WithoutMemory():  # each parameter is replaced
        model = modern.LanguageModel(hf_config(config))
    left = StateDict(entries, "model.", ignored=("rotary_emb.inv_freq",))
    set_parameter(model.embedding, "weight", left.take("embed_tokens.weight"), "state_dict['embed_tokens.weight']")
    if model.config.tied:
        left.drop_copy("lm_head.weight", of=model.embedding.weight)
        model.head.weight = model.embedding.weight
    else:
        left.fill_own("lm_head", model.head)
    left.fill_own("norm", model.norm)
    for number, layer in enumerate(model.layers):
        for name, module in _hf_parts(layer).items():
            left.fill_own(f"layers.{number}.{name}", module)
        if isinstance(layer.feed_forward, modern.MixtureOfExperts):
            _fill_experts(left, f"layers.{number}.", layer.feed_forward)
    left.finish()
    return model


def _hf_parts(layer: Any) -> dict[str, nn.Module]:
    """Return which module of a `modern.Block` each of Llama's is; the experts have their own names."""
    attention, feed_forward = layer.attention, layer.feed_forward
    parts = {
        "input_layernorm": layer.attention_norm,
        "self_attn.q_proj": attention.w_q,
        "self_attn.k_proj": attention.w_k,
        "self_attn.v_proj": attention.w_v,
        "self_attn.o_proj": attention.w_o,
        "post_attention_layernorm": layer.feed_forward_norm,
    }
    if isinstance(attention.q_norm, modern.RMSNorm):
        parts |= {"self_attn.q_norm": attention.q_norm, "self_attn.k_norm": attention.k_norm}
    if isinstance(feed_forward, modern.SwiGLU):
        names = ("gate", "up", "down")
        parts |= {f"mlp.{name}_proj": getattr(feed_forward, name) for name in names}
    return parts


def _fill_experts(left: StateDict, layer: str, ours: modern.MixtureOfExperts) -> None:
    """Fill Mixtral's experts, from a state dict of transformers 5, which stacks them, or from a file, as published."""
    stacked = f"{layer}mlp.experts.gate_up_proj"
    if not left.has(stacked):
        left.fill_own(f"{layer}block_sparse_moe.gate", ours.router)
        for number, expert in enumerate(ours.experts):
            for name, part in (("w1", "gate"), ("w3", "up"), ("w2", "down")):
                left.fill_own(f"{layer}block_sparse_moe.experts.{number}.{name}", getattr(expert, part))
        return
    left.fill_own(f"{layer}mlp.gate", ours.router)
    both, down = left.take(stacked), left.take(f"{layer}mlp.experts.down_proj")
    for entry, whole in ((stacked, both), (f"{layer}mlp.experts.down_proj", down)):
        if len(whole) != len(ours.experts):
            raise ValueError(f"state_dict['model.{entry}'] must have {len(ours.experts)} experts, got {len(whole)}")
    for number, expert in enumerate(ours.experts):
        parts = (*both[number].chunk(2), down[number])
        for name, weight in zip(("gate", "up", "down"), parts, strict=True):
            set_parameter(getattr(expert, name), "weight", weight, f"state_dict, expert {number},")
