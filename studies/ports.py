"""GPT-2 and BERT of `transformers` in this library: how nearly they agree, and what a slip costs (notebook 19).

Measured is the largest difference of any logit, for weights as `transformers` draws them and for weights drawn again,
and the same with one thing wrong. Needs `transformers`: pip install -e ".[peers]".
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from transformer_lib.course.lab.ports import MODELS, WEIGHTS, draw_anew, new_bert, new_gpt2, new_ids
from transformer_lib.model import interop
from transformer_lib.model.layers import LayerNorm
from transformer_lib.model.masks import causal_mask, padding_mask

from .engine import Study, at_once

Logits = Callable[..., Tensor]


def gpt2_slips(state: Mapping[str, Tensor], heads: int) -> dict[str, Logits]:
    """Return GPT-2 of this state in this library, and with one thing wrong each: functions of ids."""
    right = interop.load_gpt2(state, {"n_head": heads})

    def with_activation(name: str) -> nn.Module:
        model = copy.deepcopy(right)
        for layer in model.stack.layers:
            layer.feed_forward.activation = name
        return model

    bare = copy.deepcopy(right)
    for layer in bare.stack.layers:
        for linear in (layer.self_attention.w_q, layer.self_attention.w_k, layer.self_attention.w_v):
            linear.bias.data.zero_()
        layer.self_attention.w_o.bias.data.zero_()
    turned = copy.deepcopy(right)
    for layer in turned.stack.layers:
        layer.self_attention.w_o.weight.data = layer.self_attention.w_o.weight.data.T.contiguous()
    return {
        "right": right,
        "exact gelu": with_activation("gelu"),
        "relu": with_activation("relu"),
        "no biases in the attention": bare,
        "output projection not transposed": turned,
        "no causal mask": lambda ids: right(ids, torch.ones(1, 1, 1, ids.shape[1], dtype=torch.bool)),
    }


def bert_slips(state: Mapping[str, Tensor], heads: int) -> dict[str, Logits]:
    """Return BERT of this state in this library, and with one thing wrong each: functions of ids and segments."""
    right = interop.load_bert(state, {"num_attention_heads": heads})
    other_eps = copy.deepcopy(right)
    for norm in (module for module in other_eps.modules() if isinstance(module, LayerNorm)):
        norm.eps = 1e-5
    return {
        "right": lambda ids, segments: right(ids, padding_mask(ids, 0), segments),
        "ε = 1e-5": lambda ids, segments: other_eps(ids, padding_mask(ids, 0), segments),
        "no padding mask": lambda ids, segments: right(ids, None, segments),
        "causal mask": lambda ids, segments: right(ids, padding_mask(ids, 0) & causal_mask(ids.shape[1]), segments),
        "all segments 0": lambda ids, segments: right(ids, padding_mask(ids, 0)),
    }


@torch.no_grad()
def differences(kind: str, number: int, weights: str, dtype: torch.dtype = torch.float32) -> dict[str, float]:
    """Return for one model the largest difference of a logit from transformers': "right", and with each slip.

    Args:
        kind: "GPT-2" or "BERT". number: of the model in MODELS, which is its seed, too. weights: one of WEIGHTS.
    """
    size, new, slips = MODELS[number], *{"GPT-2": (new_gpt2, gpt2_slips), "BERT": (new_bert, bert_slips)}[kind]
    theirs = new(size, number)
    if weights == "drawn anew":
        draw_anew(theirs, number)
    theirs.to(dtype)
    ids = new_ids(size, number)
    real, given = ids != 0, [ids]
    if kind == "GPT-2":
        wanted = theirs(ids).logits
    else:
        given.append((torch.arange(size[1]) > size[1] // 3).long().expand_as(ids))
        wanted = theirs(ids, attention_mask=real.long(), token_type_ids=given[1]).logits
    ours = slips(theirs.state_dict(), size[4])
    largest = {name: float((model(*given) - wanted)[real].abs().max()) for name, model in ours.items()}
    return {"spread of the logits": float(wanted[real].std())} | largest


def measure(_seeds: Sequence[int]) -> dict[str, Any]:
    """Return all differences: for each kind and weights a list over the models; and how they agree in float64."""
    result, numbers = header(MODELS), range(len(MODELS))
    for kind in ("GPT-2", "BERT"):
        result[kind] = {weights: listed([differences(kind, n, weights) for n in numbers]) for weights in WEIGHTS}
        exact = [differences(kind, n, "drawn anew", torch.float64) for n in numbers]
        result[kind]["float64"] = listed(exact)["right"]
    return result


def header(models: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Return what is said of the models beside what is measured of them."""
    versions = {name: importlib.import_module(name).__version__ for name in ("torch", "transformers")}
    return {"versions": versions, "models": [list(size) for size in models]}


def listed(each: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    """Return {name: a number for each model that has it}, to two digits."""
    names = dict.fromkeys(name for one in each for name in one)
    return {name: [float(f"{one[name]:.2g}") for one in each if name in one] for name in names}


STUDY = Study("ports", __doc__, at_once(measure), seeds=range(len(MODELS)), indent=1)


if __name__ == "__main__":
    STUDY.command()
