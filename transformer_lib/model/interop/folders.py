"""A folder in Hugging Face's format: which of our models it holds is in its config.json."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from .files import Entries
from .gpt2_bert import bert_of, gpt2_of
from .llama import llama_of
from .state_dict import opened

_OTHERS: dict[object, Callable[[Entries, Any], nn.Module]] = {"gpt2": gpt2_of, "bert": bert_of}


def load_folder(
    path: str | Path, *, dtype: torch.dtype | None = None, device: torch.device | str | None = None
) -> nn.Module:
    """Return the model of a folder in Hugging Face's format, in evaluation mode.

    The folder has a config.json and the weights, model.safetensors or several files with an index. They are read once
    into the memory that the model keeps. Nothing is fetched and nothing of the folder is run: files of code in it, and
    pickles, are not opened.

    Args:
        path: the folder. dtype: of the parameters, such as torch.float32; by default as they are stored.
        device: where the parameters go; the CPU by default.

    Returns:
        What `load_gpt2`, `load_bert` or `load_hf` returns, as the config's model_type says.

    Raises:
        TypeError: dtype is no type of floats. ValueError: the folder lacks its weights or its config.json; a file is
            missing, broken or a pickle; the model is of a kind that ours is not; weights are missing, left over, of
            another shape, or of several types where none was asked for.
    """
    if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        raise TypeError(f"dtype must be a torch.dtype of floats or None, got {dtype!r}")
    folder = Path(path)
    if not folder.is_dir():
        raise ValueError(f"path must be a folder on this machine, with a config.json and weights, got {path!r}")
    entries, config = opened(folder, None, dtype, device)
    model = _OTHERS.get(config.get("model_type"), llama_of)(entries, config)
    found = sorted({str(parameter.dtype) for parameter in model.parameters()})
    if len(found) > 1:
        raise ValueError(f"dtype must be given where weights are of several types, here {', '.join(found)}; got None")
    return model.eval()
