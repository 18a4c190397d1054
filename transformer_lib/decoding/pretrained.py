"""A model that others have trained, with its tokenizer, from a folder in Hugging Face's format."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ..data.byte_level import ByteLevelTokenizer
from ..model.interop import load_folder


def load_pretrained(
    path: str | Path, *, dtype: torch.dtype | None = None, device: torch.device | str | None = None
) -> tuple[nn.Module, ByteLevelTokenizer]:
    """Return the model and the tokenizer of a folder in Hugging Face's format.

    >>> model, tokenizer = tl.load_pretrained("SmolLM2-135M-Instruct")  # doctest: +SKIP

    Args:
        path: a folder with config.json, tokenizer.json, and weights in one or several .safetensors files. Nothing is
            fetched and nothing of the folder is run. dtype, device: as for `tl.interop.load_folder`.

    Returns:
        The model in evaluation mode: a `tl.modern.LanguageModel` of Llama and its relatives, a `tl.LanguageModel` of
        GPT-2, a `tl.TextEncoder` of BERT, with or without the head of a `tl.MaskedLanguageModel`. And its tokenizer.

    Raises:
        TypeError, ValueError: as for `tl.interop.load_folder`; or tokenizer.json is missing, or is of a kind that ours
            is not: `tl.interop.load_folder` returns the model alone.
    """
    tokenizer = _tokenizer(Path(path))  # before gigabytes are read
    return load_folder(path, dtype=dtype, device=device), tokenizer


def _tokenizer(folder: Path) -> ByteLevelTokenizer:
    """Return the tokenizer of a folder."""
    file, alone = folder / "tokenizer.json", "tl.interop.load_folder returns the model alone"
    if not file.is_file():
        raise ValueError(f"path must be a folder with a tokenizer.json, got {folder} without; {alone}")
    try:
        return ByteLevelTokenizer.from_file(file)
    except ValueError as error:
        raise ValueError(f"{error}; {alone}") from error
