"""Reads the files that a byte-level tokenizer comes in, and refuses by name what `ByteLevelTokenizer` does not compute.

Hugging Face's `tokenizer.json` describes a pipeline: a normalizer, steps that split (`pre_tokenizer`), a model, a
`post_processor` that adds tokens, and a decoder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .chat_template import ChatTemplate
from .splitting import GPT2_WORDS, SINGLE_DIGITS, SPLITTING

Data = dict[str, Any]

_GPT2_SPECIAL = "<|endoftext|>"
_NO_LIMIT = 10**9  # what model_max_length is above where nobody has set it: transformers writes 10³⁰


def read_tokenizer(path: str | os.PathLike[str]) -> Data:
    """Return the arguments of `ByteLevelTokenizer` for a `tokenizer.json`, or for the folder that it is in.

    Raises:
        FileNotFoundError: there is no such file. ValueError: it asks for what is not computed here.
    """
    path = Path(path)
    path = path / "tokenizer.json" if path.is_dir() else path
    data = _object(path)
    model = _section(data, "model", path)
    _check_model(model, path)
    _check_parts(data, path)
    special, added = _added_tokens(data, path)
    tokens = {
        "vocab": model["vocab"],
        "merges": [pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"]],
        "splitting": list(_patterns(data.get("pre_tokenizer"), path)),
        "special_tokens": special,
        "added_tokens": added,
        "ignore_merges": bool(model.get("ignore_merges")),
        "normalization": _normalization(data.get("normalizer"), path),
    }
    return tokens | _beside(path.parent, special | added | model["vocab"])


def read_gpt2(vocab: str | os.PathLike[str], merges: str | os.PathLike[str]) -> Data:
    """Return the arguments of `ByteLevelTokenizer` for GPT-2's `vocab.json` and `merges.txt`."""
    ids = _object(Path(vocab))
    lines = [line for line in _text(Path(merges)).split("\n") if line and not line.startswith("#version")]
    pairs = [line.split(" ") for line in lines]
    if wrong := [line for line, pair in zip(lines, pairs, strict=True) if len(pair) != 2]:
        raise ValueError(f"{merges} must hold two tokens a line, got {wrong[0]!r}")
    special = {_GPT2_SPECIAL: ids[_GPT2_SPECIAL]} if _GPT2_SPECIAL in ids else {}
    end = _GPT2_SPECIAL if special else None
    return {"vocab": ids, "merges": pairs, "special_tokens": special, "bos": end, "eos": end}


# tokenizer.json --------------------------------------------------------------------------------------------
def _check_model(model: Data, path: Path) -> None:
    kind = model.get("type", "BPE" if "merges" in model else None)
    _require(kind == "BPE", path, f"a model of type 'BPE', got {kind!r}")
    for name in ("continuing_subword_prefix", "end_of_word_suffix", "dropout", "byte_fallback"):
        _require(not model.get(name), path, f"a BPE of bytes without {name}, got {model.get(name)!r}")
    for name, kind in (("vocab", dict), ("merges", list)):
        _require(isinstance(model.get(name), kind), path, f"{name} in its model, got {model.get(name)!r:.40}")


def _check_parts(data: Data, path: Path) -> None:
    """Refuse a decoder other than that of bytes, and whatever changes ids after they were made."""
    for step in _steps(data.get("decoder"), "decoders"):
        _require(step.get("type") == "ByteLevel", path, f"a decoder 'ByteLevel', got {step.get('type')!r}")
    for step in _steps(data.get("post_processor"), "processors"):
        known = step.get("type") in ("ByteLevel", "TemplateProcessing")
        _require(known, path, f"a post_processor 'ByteLevel' or 'TemplateProcessing', got {step.get('type')!r}")


def _normalization(normalizer: Data | None, path: Path) -> str | None:
    kinds = [step.get("type") for step in _steps(normalizer, "normalizers")]
    _require(kinds in ([], ["NFC"]), path, f"a normalizer 'NFC', or none, got {', '.join(map(repr, kinds))}")
    return kinds[0] if kinds else None


def _patterns(pre_tokenizer: Data | None, path: Path) -> Iterator[str]:
    """Yield the expressions that split one after another; the last step writes bytes."""
    steps = list(_steps(pre_tokenizer, "pretokenizers"))
    kinds = [step.get("type") for step in steps]
    _require(kinds[-1:] == ["ByteLevel"], path, f"a pre_tokenizer that ends in 'ByteLevel', got {kinds or 'none'}")
    for step in steps[:-1]:
        yield _pattern(step, path)
    prefix = steps[-1].get("add_prefix_space")
    _require(not prefix, path, "a pre_tokenizer without add_prefix_space, got one that puts a space before each text")
    if steps[-1].get("use_regex", True):
        yield GPT2_WORDS


def _pattern(step: Data, path: Path) -> str:
    """Return the expression of one splitting step."""
    kind = step.get("type")
    if kind == "Digits" and step.get("individual_digits"):
        return SINGLE_DIGITS
    known = {pattern for rule in SPLITTING.values() for pattern in rule}
    pattern = step.get("pattern", {}).get("Regex")
    plain = kind == "Split" and step.get("behavior") == "Isolated" and not step.get("invert")
    wanted = f"splitting by single digits or by the expressions of {', '.join(SPLITTING)}"
    _require(plain and pattern in known, path, f"{wanted}, got {json.dumps(step, ensure_ascii=False)}")
    return str(pattern)


def _added_tokens(data: Data, path: Path) -> tuple[dict[str, int], dict[str, int]]:
    """Return the ids of the special tokens, and of the others that are always one token, by their texts."""
    added = data.get("added_tokens") or []
    for token in added:
        for option in ("single_word", "lstrip", "rstrip"):
            _require(not token.get(option), path, f"added tokens without {option}, got {token['content']!r} with it")
    normalized = {bool(token.get("normalized")) for token in added}
    mixed = len(normalized) == 2 or (data.get("normalizer") and True in normalized)
    _require(not mixed, path, "added tokens that are all looked for before the text is normalized")
    special = {token["content"]: token["id"] for token in added if token.get("special")}
    return special, {token["content"]: token["id"] for token in added if not token.get("special")}


def _steps(part: Data | None, inside: str) -> Iterator[Data]:
    """Yield the steps of a part: none, one, or those of a sequence."""
    if part is None:
        return
    if part.get("type") != "Sequence":
        yield part
        return
    for step in part.get(inside, ()):
        yield from _steps(step, inside)


# Beside it -------------------------------------------------------------------------------------------------
def _beside(folder: Path, ids: dict[str, int]) -> Data:
    """Return what the other files of the folder say: where texts begin and end, and how a conversation is written."""
    config = _object(folder / "tokenizer_config.json", missing={})
    ends = _object(folder / "generation_config.json", missing={}).get("eos_token_id")
    limit = config.get("model_max_length")
    bos, eos = (_content(config.get(name)) for name in ("bos_token", "eos_token"))
    found: Data = {"bos": bos, "eos": eos, "chat_template": ChatTemplate.beside(folder, config)}
    found["max_len"] = limit if isinstance(limit, int) and limit < _NO_LIMIT else None
    if ends is not None:
        stops = [ends] if isinstance(ends, int) else list(ends)
        found["stop_ids"] = [*stops, ids[eos]] if eos in ids else stops
    return found


def _content(token: str | Data | None) -> str | None:
    """Return the text of a token, which older files describe with its options."""
    return token["content"] if isinstance(token, dict) else token


# Files -----------------------------------------------------------------------------------------------------
def _object(path: Path, missing: Data | None = None) -> Data:
    """Return the object that a file holds as JSON; where there is no file, `missing`, if that is given."""
    if missing is not None and not path.exists():
        return missing
    try:
        data = json.loads(_text(path))
    except ValueError as error:
        raise ValueError(f"{path} must hold JSON, got: {error}") from None
    _require(isinstance(data, dict), path, f"an object, got a {type(data).__name__}")
    return dict(data)


def _text(path: Path) -> str:
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    return path.read_text(encoding="utf-8")


def _section(data: Data, name: str, path: Path) -> Data:
    _require(
        isinstance(data.get(name), dict), path, f"a section {name!r}, as a tokenizer of Hugging Face's library has"
    )
    return dict(data[name])


def _require(holds: object, path: Path, wanted: str) -> None:
    if not holds:
        raise ValueError(f"{path} must have {wanted}")
