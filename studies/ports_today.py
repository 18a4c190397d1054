"""Llama, Qwen3, Mistral and Mixtral of `transformers` in this library, and what a slip costs (notebook 20).

Measured is the largest difference of any logit for random weights, the same with one thing wrong, and what two of these
slips do to a trained model, which goes on writing sentences. Needs `transformers`: pip install -e ".[peers]".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MethodType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.course.lab import masks, one_change, one_stack
from transformer_lib.course.lab.ports_today import BASES, MODELS, changed, new_ids, new_theirs
from transformer_lib.model import interop, modern

from . import masks as masks_study
from .engine import Study, at_once
from .ports import header, listed

KINDS = ("Llama", "Qwen3", "Mistral", "Mixtral")
TRAINED = {"norm": "rms", "feed_forward": "swiglu", "d_ff": 128, "n_kv_heads": 2, "pairs": "halves", "window": 4}
STEPS, TRAINED_SEEDS, SAMPLES = 2000, (0, 1, 2), 200


def shared_in_turns(right: modern.LanguageModel) -> modern.LanguageModel:
    """Return a model whose query head i reads key head i % n_kv_heads, in place of i // (n_heads / n_kv_heads)."""
    model, shape = changed(right), (-1, right.config.kv_heads, right.config.head_width)  # of the query heads
    for layer in model.layers:
        for linear, axis in ((layer.attention.w_q, 0), (layer.attention.w_o, 1)):  # heads move, not what they compute
            heads = linear.weight.data.unflatten(axis, shape).transpose(axis, axis + 1)
            linear.weight.data = heads.flatten(axis, axis + 2).contiguous()
    return model


def without_qk_norm(right: modern.LanguageModel) -> modern.LanguageModel:
    """Return a model without the norms of queries and keys."""
    model = modern.LanguageModel(replace(right.config, qk_norm=False)).to(right.embedding.weight.dtype)
    kept = {
        name: weight for name, weight in right.state_dict().items() if "q_norm" not in name and "k_norm" not in name
    }
    model.load_state_dict(kept)
    return model.eval()


def slips(kind: str, right: modern.LanguageModel) -> dict[str, modern.LanguageModel]:
    """Return the model, and the same with one thing wrong each."""
    models = {"right": right, "neighbouring pairs": changed(right, pairs="neighbours")}
    models["ten times the base"] = changed(right, rope_base=10 * right.config.rope_base)
    if right.config.kv_heads > 1:
        models["heads shared in turns"] = shared_in_turns(right)
    if right.config.window is not None:
        models["window one longer"] = changed(right, window=right.config.window + 1)
        models["window one shorter"] = changed(right, window=right.config.window - 1)
        models["no window"] = changed(right, window=None)
    if kind == "Qwen3":
        models["no QK-norm"] = without_qk_norm(right)
    return models


@torch.no_grad()
def differences(kind: str, number: int) -> dict[str, Any]:
    """Return for one model the largest difference of a logit from transformers': "right", and with each slip.

    It also has the spread of the logits and, for each slip, the share of places at which the likeliest word stays.
    """
    theirs, ids = new_theirs(kind, number), new_ids(number)
    wanted = theirs(ids).logits
    logits = {
        name: model(ids) for name, model in slips(kind, interop.load_hf(theirs.state_dict(), theirs.config)).items()
    }
    stays = {name: (ours.argmax(-1) == wanted.argmax(-1)).float().mean().item() for name, ours in logits.items()}
    moved = {name: (ours - wanted).abs().max().item() for name, ours in logits.items()}
    return {"spread of the logits": wanted.std().item(), "moved": moved, "stays": stays}


@torch.no_grad()
def in_float64(kind: str, number: int) -> float:
    """Return the largest difference in float64.

    transformers computes its norms and angles in float32 whatever the model is in, so these two, and a router's
    softmax, are told to compute in the dtype of their input.
    """
    theirs, ids = new_theirs(kind, number).double(), new_ids(number)
    for module in theirs.modules():
        name = type(module).__name__
        if name.endswith("RMSNorm"):
            module.forward = MethodType(_exact_norm, module)
        elif name.endswith("RotaryEmbedding"):
            module.forward = MethodType(_exact_angles(BASES[kind], MODELS[number][6]), module)
        elif name.endswith("TopKRouter"):
            module.forward = MethodType(_exact_router, module)
    return (interop.load_hf(theirs.state_dict(), theirs.config)(ids) - theirs(ids).logits).abs().max().item()


def _exact_norm(self: Any, x: Tensor) -> Tensor:
    return self.weight * (x / (x.square().mean(dim=-1, keepdim=True) + self.variance_epsilon).sqrt())


def _exact_angles(base: float, width: int) -> Any:
    def forward(_self: nn.Module, _x: Tensor, position_ids: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        rates = base ** -(torch.arange(0, width, 2, dtype=torch.float64) / width)
        angles = (position_ids[..., None].double() * rates).repeat(1, 1, 2)
        return angles.cos(), angles.sin()

    return forward


def _exact_router(self: Any, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    logits = F.linear(x.reshape(-1, x.shape[-1]), self.weight)
    top, which = logits.softmax(dim=-1).topk(self.top_k, dim=-1)
    return logits, top / top.sum(dim=-1, keepdim=True), which


def trained(seed: int, steps: int = STEPS) -> modern.LanguageModel:
    """Return a small model of today, with a window of 4, trained on the German sentences of notebook 19."""
    torch.manual_seed(seed)
    model = modern.LanguageModel(replace(one_change.config("base"), **TRAINED))
    one_stack.fit(model, one_change.next_word_loss, steps, seed)
    return model.eval()


def written(right: modern.LanguageModel, number: int = SAMPLES) -> dict[str, dict[str, Any]]:
    """Return for a trained model, and with each slip, its nats a word held out and how much of what it writes parses.

    The grammar of the corpus parses all sentences of the corpus; one sentence of each is stored, too.
    """
    results = {}
    for name in ("right", "neighbouring pairs", "window one longer", "window one shorter"):
        model = slips("Mistral", right)[name]
        said = masks_study.sample(model, 1.0, number)
        share = sum(map(masks.is_grammatical, said)) / number
        results[name] = {"nats": round(one_change.nats(model), 3), "grammatical": round(share, 3), "says": said[0]}
    return results


def measure(_seeds: Sequence[int]) -> dict[str, Any]:
    """Return all differences: for each kind a list over the models; how they agree in float64; the trained ones."""
    result, numbers = header(MODELS), range(len(MODELS))
    for kind in KINDS:
        each = [differences(kind, number) for number in numbers]
        result[kind] = listed([{"spread of the logits": one["spread of the logits"]} for one in each])
        result[kind] |= {what: listed([one[what] for one in each]) for what in ("moved", "stays")}
        result[kind] |= listed([{"float64": in_float64(kind, number)} for number in numbers])
    return result | {"trained": [written(trained(seed)) for seed in TRAINED_SEEDS]}


STUDY = Study("ports_today", __doc__, at_once(measure), seeds=range(len(MODELS)), indent=1)


if __name__ == "__main__":
    STUDY.command()
