"""The tokenizer of a GGUF file, as tokenizer.json and tokenizer_config.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

CONTROL = 3  # the type of a token that no text makes, such as <|im_end|>
PLAIN = 1
ROLES = {"bos_token": "bos_token_id", "eos_token": "eos_token_id", "pad_token": "padding_token_id"}
ROLES |= {"unk_token": "unknown_token_id"}


def write_tokenizer(metadata: Mapping[str, Any], folder: Path) -> None:
    """Write tokenizer.json, as the package tokenizers reads it, and tokenizer_config.json with the chat's template.

    Raises:
        ValueError: it is of another kind than SmolLM's, or contradicts itself.
    """
    tokenizer_of(metadata).save(str(folder / "tokenizer.json"))
    text = json.dumps(tokenizer_config(metadata), indent=2, ensure_ascii=False)
    (folder / "tokenizer_config.json").write_text(text + "\n", encoding="utf-8")


def tokenizer_of(metadata: Mapping[str, Any]) -> Tokenizer:
    """Return byte-pair encoding with the file's tokens and merges; a token's id is its place in the list.

    A text is split into single digits and what is between them, and this by GPT-2's expression; the bytes of each piece
    are written as 256 visible characters, and merged.
    """
    tokens, kinds, merges = (_listed(metadata, name) for name in ("tokens", "token_type", "merges"))
    _check_kind(metadata)
    _check_tokens(tokens, kinds)
    pairs = [_pair(merge) for merge in merges]
    ids = {token: number for number, token in enumerate(tokens)}
    unknown = [pair for pair in pairs if not {*pair, "".join(pair)} <= ids.keys()]
    if unknown:
        raise ValueError(f"merges must be of tokens, and give tokens, got {unknown[0]}")
    made = Tokenizer(models.BPE(ids, pairs))
    digits = pre_tokenizers.Digits(individual_digits=True)
    made.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    made.decoder = decoders.ByteLevel()
    special = (token for token, kind in zip(tokens, kinds, strict=True) if kind == CONTROL)
    made.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    return made


def _listed(metadata: Mapping[str, Any], name: str) -> list[Any]:
    found = metadata.get(f"tokenizer.ggml.{name}")
    if not isinstance(found, list):
        raise ValueError(f"the metadata must have a list 'tokenizer.ggml.{name}', got {found!r}")
    return found


def _check_kind(metadata: Mapping[str, Any]) -> None:
    """Raise unless the tokenizer is the one whose splitting is written here."""
    wanted = {"model": "gpt2", "pre": "smollm", "add_space_prefix": False, "add_bos_token": False}
    for name, value in wanted.items():
        got = metadata.get(f"tokenizer.ggml.{name}", False)
        if got != value:
            raise ValueError(f"tokenizer.ggml.{name} must be {value!r}, got {got!r}")


def _check_tokens(tokens: list[str], kinds: list[int]) -> None:
    if len(set(tokens)) != len(tokens) or len(kinds) != len(tokens):
        got = f"{len(tokens)}, {len(set(tokens))} of them different, and {len(kinds)} types"
        raise ValueError(f"tokens must be different, each with a type, got {got}")
    others = set(kinds) - {PLAIN, CONTROL}
    if others:
        raise ValueError(f"types of tokens must be {PLAIN} or {CONTROL}, got {sorted(others)}")


def _pair(merge: str) -> tuple[str, str]:
    parts = merge.split(" ")
    if len(parts) != 2:
        raise ValueError(f"a merge must be two tokens with a space between them, got {merge!r}")
    return parts[0], parts[1]


def tokenizer_config(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return what transformers asks for beside the tokens: which one begins, ends and pads, and the chat's template."""
    tokens = _listed(metadata, "tokens")
    ids = {role: metadata.get(f"tokenizer.ggml.{key}") for role, key in ROLES.items()}
    wrong = {role: number for role, number in ids.items() if number is not None and not 0 <= number < len(tokens)}
    if wrong:
        raise ValueError(f"special ids must be in [0, {len(tokens)}), got {wrong}")
    template = metadata.get("tokenizer.chat_template")
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",  # all that matters is in tokenizer.json
        **{role: tokens[number] for role, number in ids.items() if number is not None},
        "add_prefix_space": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": metadata.get("llama.context_length"),
        **({} if template is None else {"chat_template": template}),
    }
