"""PyTorch's own modules, and the weights of GPT-2, BERT, Llama and its relatives, into ours: same outputs.

`torch_modules` converts `torch.nn`. `gpt2_bert` and `llama` fill our models with a state dict of `transformers`, as
`peer_config` and `hf_config` say what its configuration means, entry by entry of a `state_dict`. `folders` finds out
what a folder in Hugging Face's format holds, and `files` reads it. Nothing is fetched, and nothing of a folder is run.
"""

from __future__ import annotations

from .folders import load_folder
from .gpt2_bert import load_bert, load_gpt2
from .hf_config import HF_DEFAULTS, LACKING, hf_config
from .llama import load_hf
from .torch_modules import EncoderDecoder, from_torch, invert_mask

__all__ = [
    "HF_DEFAULTS",
    "LACKING",
    "EncoderDecoder",
    "from_torch",
    "hf_config",
    "invert_mask",
    "load_bert",
    "load_folder",
    "load_gpt2",
    "load_hf",
]
