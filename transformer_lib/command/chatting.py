"""A conversation on a terminal: each line that is typed is answered, word by word."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import cast

import torch

from ..decoding.chat import Chat
from ..decoding.pretrained import load_pretrained
from ..model import modern
from .lines import standard_input

PROMPT = "> "


def open_chat(arguments: argparse.Namespace) -> Chat:
    """Return a conversation with the model in a folder, as the options of `chat` say.

    Raises:
        OSError, ValueError, TypeError: a file is missing, or the model cannot be read.
    """
    model, tokenizer = load_pretrained(arguments.folder)
    draws = arguments.temperature > 0
    return Chat(
        cast(modern.LanguageModel, model),  # Chat refuses any other
        tokenizer,
        system=arguments.system,
        max_new_tokens=arguments.max_new_tokens,
        temperature=arguments.temperature,
        top_p=arguments.top_p,
        generator=torch.Generator().manual_seed(arguments.seed) if draws else None,
    )


def answer_lines(chat: Chat) -> int:
    """Answer the lines of standard input, and return 1 if one could not be answered, else 0."""
    failed = False
    for line in _typed_lines():
        try:
            for piece in chat.stream(line):
                print(piece, end="", flush=True)
            print(flush=True)
        except ValueError as problem:
            failed = True
            print(f"transformer-lib chat: {problem}", file=sys.stderr)
    return int(failed)


def _typed_lines() -> Iterator[str]:
    """Yield the lines of standard input that have any text; on a terminal each is asked for."""
    asks = sys.stdin is not None and sys.stdin.isatty()
    if asks:
        print(PROMPT, end="", flush=True)
    for part in standard_input():
        for line in part:
            if line.strip():
                yield line
            if asks:
                print(PROMPT, end="", flush=True)
