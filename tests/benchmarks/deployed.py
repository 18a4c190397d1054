"""Decoding beside CTranslate2, the engine that `tl.export` writes translators for: same weights, same sentences."""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from datetime import date
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor

import transformer_lib as tl
from studies.speed import ENGINE, ENGINE_ALONE, ENGINE_INT8, ENGINE_INT8_ALONE, ENGINE_SHARED, OURS, READABLE
from transformer_lib.data.tokenizers import SPECIAL_TOKENS

from .measure import interleaved, spread, times_faster
from .peers import Ours
from .run import command, machine, version
from .work import PAD, Work

WORKS = (("greedy", 1), ("greedy", 8), ("greedy", 32), ("beam", 8))  # way, sentences at a time
NAMES = (ENGINE, ENGINE_ALONE, ENGINE_INT8, ENGINE_INT8_ALONE, OURS, READABLE, ENGINE_SHARED)
QUANTIZATIONS = {ENGINE: "float32", ENGINE_INT8: "int8"}
# What is not exported under its own name.
EXPORTED = {ENGINE_ALONE: ENGINE, ENGINE_SHARED: ENGINE, ENGINE_INT8_ALONE: ENGINE_INT8}
PATHS = {OURS: "fast", READABLE: "readable"}
Says = Callable[[str, Tensor], list[list[int]]]


def measured(work: Work, say: Callable[[str], None] = print) -> dict:
    """Return, for each way and batch size, how fast each candidate is beside CTranslate2 in float32."""
    rows = {}
    with TemporaryDirectory() as folder, ExitStack() as stack:
        export(work, Path(folder))
        workers = {name: stack.enter_context(worker(work, name, Path(folder))) for name in NAMES}
        for way, batch in WORKS:
            say(f"{way}, {batch} at a time …")
            rows[name_of(way, batch)] = _rows(workers, way, batch, work)
    return {
        "command": command("--deployed", work),
        "date": date.today().isoformat(),
        "machine": machine() | {"ctranslate2": version("ctranslate2")},
        "work": asdict(work),
        "decoding": rows,
    }


def name_of(way: str, batch: int) -> str:
    """Return the title of a column."""
    return f"{way}, {batch} at a time"


def export(work: Work, folder: Path) -> None:
    """Write our model for CTranslate2, in float32 and in int8."""
    words = tl.WordTokenizer([f"w{i}" for i in range(work.vocabulary - len(SPECIAL_TOKENS))])
    translator = tl.Translator(_model(work).model.eval(), words, words)
    for name, quantization in QUANTIZATIONS.items():
        tl.export.to_ctranslate2(translator, folder / name, quantization=quantization)


def _model(work: Work) -> Ours:
    """Return our model, with the same weights each time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Ours(work)


@contextmanager
def worker(work: Work, name: str, folder: Path) -> Iterator[Connection]:
    """Start a candidate in a process of its own, and end it afterwards.

    In one process, the waiting threads of PyTorch and of CTranslate2 would be more than there are processors, and each
    would have to be woken for each of its products.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=serve, args=(there, work, name, folder), daemon=True)
    process.start()
    there.close()
    try:
        yield here
    finally:
        here.close()
        process.join()


def serve(requests: Connection, work: Work, name: str, folder: Path) -> None:
    """Answer (way, batch) with the seconds it took and the ids that were said, until nobody asks any more."""
    says = candidate(work, name, folder)
    while True:
        try:
            way, batch = requests.recv()
        except EOFError:
            return
        src = replace(work, decode_batch=batch).source()
        start = time.perf_counter()
        found = says(way, src)
        requests.send((time.perf_counter() - start, found))


def candidate(work: Work, name: str, folder: Path) -> Says:
    """Return (way, src) -> the ids after bos, one list per sentence."""
    if name in PATHS:
        torch.set_num_threads(work.threads)
        ours = _model(work)
        return lambda way, src: ours_says(ours, way, PATHS[name], src, work.new_tokens)
    if name == ENGINE_SHARED:
        torch.set_num_threads(work.threads)
        torch.ones(999, 999) @ torch.ones(999, 999)  # starts PyTorch's threads
    threads = 1 if name in (ENGINE_ALONE, ENGINE_INT8_ALONE) else work.threads
    engine = tl.export.load_ctranslate2(folder / EXPORTED.get(name, name), threads=threads)
    return lambda way, src: engine_says(engine, way, src, work)


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


def _rows(workers: dict[str, Connection], way: str, batch: int, work: Work) -> dict[str, dict]:
    def ask(name: str) -> tuple[float, list[list[int]]]:
        workers[name].send((way, batch))
        return workers[name].recv()

    found = {name: ask(name)[1] for name in workers}
    assert all(len(row) == work.new_tokens for said in found.values() for row in said), "a sentence ended early"
    taken = interleaved({name: lambda name=name: ask(name)[0] for name in workers}, work.rounds)
    # With the better number of threads for this work.
    engine = min((ENGINE, ENGINE_ALONE), key=lambda name: statistics.median(taken[name]))
    return {
        name: {
            "seconds": spread(own),
            "ratio": times_faster(taken[engine], own),
            "same": sum(a == b for a, b in zip(found[name], found[OURS], strict=True)),
            "sentences": batch,
        }
        for name, own in taken.items()
    }
