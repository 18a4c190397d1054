"""GPT-2 and BERT of `transformers` in this library: how nearly they agree, and what a slip costs (notebook 19).

`load_results()["GPT-2"]["as drawn"]["exact gelu"]` has a number for each model.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ...model import interop
from ...model.masks import padding_mask
from . import stored

load_results = stored.loader("ports.json")

# Vocabulary, positions, layers, d_model, heads, d_ff: primes, but for d_model = heads × a prime.
MODELS = ((53, 17, 2, 33, 3, 71), (97, 23, 3, 35, 5, 67), (31, 13, 1, 55, 11, 89))
SENTENCES = 3
WEIGHTS = ("as drawn", "drawn anew")
SPREAD = 0.3  # the standard deviation of weights that are drawn again


def new_gpt2(size: Sequence[int], seed: int) -> nn.Module:
    """Return a `GPT2LMHeadModel` with random weights; the size is one of MODELS."""
    v, places, layers, d_model, heads, d_ff = size
    transformers = importlib.import_module("transformers")
    torch.manual_seed(seed)
    sizes = {"n_positions": places, "n_embd": d_model, "n_layer": layers, "n_head": heads, "n_inner": d_ff}
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=v, bos_token_id=0, eos_token_id=0, **sizes)
    ).eval()


def new_bert(size: Sequence[int], seed: int) -> nn.Module:
    """Return a `BertForMaskedLM` with random weights; the size is one of MODELS."""
    v, places, layers, d_model, heads, d_ff = size
    transformers = importlib.import_module("transformers")
    torch.manual_seed(seed)
    sizes = {"hidden_size": d_model, "num_hidden_layers": layers, "num_attention_heads": heads}
    sizes |= {"max_position_embeddings": places, "intermediate_size": d_ff}
    return transformers.BertForMaskedLM(transformers.BertConfig(vocab_size=v, **sizes)).eval()


def draw_anew(model: nn.Module, seed: int, spread: float = SPREAD) -> nn.Module:
    """Draw every parameter of a model again, gains around 1 and all else around 0; return the model.

    Weights as a model is made with hide mistakes: gains are 1, biases 0 and matrices so small that a wrong activation
    changes little.
    """
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        gain = parameter.dim() == 1 and name.endswith("weight")
        parameter.data = float(gain) + spread * torch.randn(parameter.shape, generator=generator)
    return model


def new_ids(size: Sequence[int], seed: int) -> Tensor:
    """Return random sentences, [3, places]; the second and third end in padding, 0."""
    ids = torch.randint(1, size[0], (SENTENCES, size[1]), generator=torch.Generator().manual_seed(seed))
    lengths = torch.tensor([size[1], size[1] // 2, size[1] - 2])
    return ids.masked_fill(torch.arange(size[1]) >= lengths[:, None], 0)


@torch.no_grad()
def compared(size: Sequence[int] = MODELS[0], seed: int = 0) -> dict[str, str] | None:
    """Return the largest difference of a logit at real tokens, of GPT-2 and of BERT, with all weights drawn anew.

    None without `transformers`. The size is one of MODELS.
    """
    if importlib.util.find_spec("transformers") is None:
        return None
    ids = new_ids(size, seed)  # two of three rows end in padding
    gpt2, bert = draw_anew(new_gpt2(size, seed), seed), draw_anew(new_bert(size, seed), seed)
    off = {
        "GPT-2": interop.load_gpt2(gpt2.state_dict(), gpt2.config)(ids) - gpt2(ids).logits,
        "BERT": interop.load_bert(bert.state_dict(), bert.config)(ids, padding_mask(ids, 0))
        - bert(ids, attention_mask=(ids != 0).long()).logits,
    }
    return {name: f"{float(each[ids != 0].abs().max()):.0e}" for name, each in off.items()}
