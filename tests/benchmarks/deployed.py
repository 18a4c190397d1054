"""Decoding beside CTranslate2, the engine that `tl.export` writes translators for: same weights, same sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor

import transformer_lib as tl
from transformer_lib.course.studies.speed import ENGINE, ENGINE_INT8, OURS, READABLE
from transformer_lib.data.tokenizers import SPECIAL_TOKENS

from .measure import interleaved, spread, timed, times_faster
from .peers import Ours
from .run import machine, version
from .work import PAD, Work

COMMAND = "make bench BENCH=--deployed"
WORKS = (("greedy", 1), ("greedy", 8), ("greedy", 32), ("beam", 8))  # way, sentences at a time
INT8 = "int8"


def measured(work: Work, say: Callable[[str], None] = print) -> dict:
    """Return, for each way and batch size, how fast each candidate is beside CTranslate2 in float32."""
    torch.set_num_threads(work.threads)
    torch.manual_seed(0)
    rows = {}
    with engines(work) as (ours, opened):
        for way, batch in WORKS:
            say(f"{way}, {batch} at a time …")
            rows[name_of(way, batch)] = _rows(replace(work, decode_batch=batch), way, ours, opened)
    return {
        "command": COMMAND,
        "date": date.today().isoformat(),
        "machine": machine() | {"ctranslate2": version("ctranslate2")},
        "work": asdict(work),
        "decoding": rows,
    }


def name_of(way: str, batch: int) -> str:
    """Return the title of a column."""
    return f"{way}, {batch} at a time"


@contextmanager
def engines(work: Work) -> Iterator[tuple[Ours, dict[str, tl.export.Exported]]]:
    """Give our model, and CTranslate2 with its weights, in float32 and in int8."""
    ours = Ours(work)
    words = tl.WordTokenizer([f"w{i}" for i in range(work.vocabulary - len(SPECIAL_TOKENS))])
    translator = tl.Translator(ours.model.eval(), words, words)
    with TemporaryDirectory() as folder:
        opened = {}
        for name, quantization in ((ENGINE, "float32"), (ENGINE_INT8, INT8)):
            where = tl.export.to_ctranslate2(translator, Path(folder) / quantization, quantization=quantization)
            opened[name] = tl.export.load_ctranslate2(where, threads=work.threads)
        yield ours, opened


def ours_says(ours: Ours, way: str, path: str, src: Tensor, new_tokens: int) -> list[list[int]]:
    """Return the ids after bos that our model says, one list per sentence."""
    ours.path = path
    found = getattr(ours, way)(src, new_tokens)
    return [row[1:].tolist() for row in found]


def engine_says(engine: tl.export.Exported, way: str, src: Tensor, work: Work) -> list[list[int]]:
    """Return the ids that CTranslate2 says, after as many tokens as ours."""
    words = [[engine.src_tokenizer.words[i] for i in row if i != PAD] for row in src.tolist()]  # any id is a word
    results = engine.engine.translate_batch(
        words,
        beam_size=work.beam_size if way == "beam" else 1,
        max_decoding_length=work.new_tokens,
        max_input_length=0,
        length_penalty=0.0,
    )
    known = {word: i for i, word in enumerate(engine.tgt_tokenizer.words)}
    return [[known[word] for word in result.hypotheses[0]] for result in results]


def _rows(work: Work, way: str, ours: Ours, opened: dict[str, tl.export.Exported]) -> dict[str, dict]:
    src = work.source()
    says: dict[str, Callable[[], list[list[int]]]] = {
        ENGINE: lambda: engine_says(opened[ENGINE], way, src, work),
        ENGINE_INT8: lambda: engine_says(opened[ENGINE_INT8], way, src, work),
        OURS: lambda: ours_says(ours, way, "fast", src, work.new_tokens),
        READABLE: lambda: ours_says(ours, way, "readable", src, work.new_tokens),
    }
    found = {name: say() for name, say in says.items()}
    assert all(len(row) == work.new_tokens for said in found.values() for row in said), "a sentence ended early"
    taken = interleaved({name: lambda say=say: timed(say) for name, say in says.items()}, work.rounds)
    return {
        name: {
            "seconds": spread(own),
            "ratio": times_faster(taken[ENGINE], own),
            "same": sum(a == b for a, b in zip(found[name], found[OURS], strict=True)),
            "sentences": len(src),
        }
        for name, own in taken.items()
    }
