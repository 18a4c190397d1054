"""How many people one processor can translate for, and how long they wait (notebook 22).

Timed, in one thread, are reading n sentences, a step with n of them, and a batch of CTranslate2, if it is installed.
From these times a queue is simulated: requests arrive at random, and are answered one at a time, in static batches, or
in a batch that they join. All times are the processor's own, without what other programs take, but best run it when
there are none. It takes about five minutes; `--requests 2000 --rounds 2` only tries the command.
"""

from __future__ import annotations

import importlib.util
import random
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import transformer_lib as tl
from transformer_lib._machine import processor
from transformer_lib.decoding import export, serving
from transformer_lib.decoding.serving import Costs

from .engine import Study, at_once

SIZES = (1, 2, 4, 8, 16, 32, 64)
ALONE, STATIC, JOINED, ENGINE = "one at a time", "static", "joined", "CTranslate2"
CAPACITIES = {ALONE: 1, STATIC: 32, JOINED: 32, ENGINE: 32}
SENTENCES, MIXED = "held-out sentences", "mixed lengths"
LOADS = (0.75, 0.95)  # shares of what each way can do at most: at more, waiting times never settle
STEADY = 0.96  # below it a queue of REQUESTS settles
REQUESTS, ROUNDS = 60_000, 9
LIMIT = 40


def measure(seeds: Sequence[int], *, requests: int = REQUESTS, rounds: int = ROUNDS) -> dict[str, Any]:
    """Measure this machine, and simulate queues at it.

    Args:
        seeds: of the arrivals. requests: in each queue. rounds: how often everything is timed; the fastest is kept.
    """
    ours = tl.load_trained()
    texts = [pair.src for pair in tl.load_corpus("context")["heldout"]]
    random.Random(0).shuffle(texts)
    src = [ours.src_tokenizer.encode(text) for text in texts]
    timed = _fastest(rounds, lambda: _seconds(ours.model, src))
    result: dict[str, Any] = {"processor": processor(), "threads": torch.get_num_threads()}
    result |= {"requests": requests, "rounds": rounds}
    result |= {name: {str(n): timed[name, n] for n in SIZES} for name in ("read", "step")}
    result["engine"] = _engine_seconds(ours, texts, rounds)
    mixes = lengths_of(ours)
    result["capacity"] = CAPACITIES
    result["saturated"] = {
        mix: {way: saturated(result, way, lengths) for way in _ways(result, mix)} for mix, lengths in mixes.items()
    }
    runs = [{way: _really(ours.model, src, way) for way in (ALONE, STATIC, JOINED)} for _ in range(min(rounds, 3))]
    result["measured"] = {way: max(run[way] for run in runs) for way in runs[0]}
    return result | {"queue": [row for mix, lengths in mixes.items() for row in queues(result, mix, lengths, seeds)]}


def lengths_of(ours: tl.Translator) -> dict[str, list[int]]:
    """Return how many tokens requests are answered with, eos included.

    The first kind are the held-out sentences. The second are as many numbers with their mean, drawn from a geometric
    distribution: most answers are short, and some very long, as in a conversation.
    """
    said = ours.translate([pair.src for pair in tl.load_corpus("context")["heldout"]], path="fast")
    lengths = [len(ours.tgt_tokenizer.encode(text, eos=True)) for text in said]
    mixed = np.random.default_rng(0).geometric(len(lengths) / sum(lengths), len(lengths))
    return {SENTENCES: lengths, MIXED: mixed.tolist()}


def _ways(results: Mapping[str, Any], mix: str) -> tuple[str, ...]:
    """Return the ways that can be simulated; the engine's times are those of the held-out sentences."""
    return (ALONE, STATIC, JOINED, ENGINE) if results["engine"] and mix == SENTENCES else (ALONE, STATIC, JOINED)


def costs_of(results: Mapping[str, Any], way: str) -> Costs:
    """Return what was measured, as `serving.simulate` wants it; the engine's batches are read in one piece."""
    if way == ENGINE:
        return Costs.measured(_numbered(results["engine"]["float32"]), {1: 0.0})
    return Costs.measured(_numbered(results["read"]), _numbered(results["step"]))


def latencies(
    results: Mapping[str, Any], way: str, arrivals: Sequence[float] | serving.Numbers, lengths: Sequence[int]
) -> serving.Numbers:
    """Return how long each request takes from its arrival, in seconds."""
    needed = np.ones(len(lengths), dtype=int) if way == ENGINE else lengths
    options = {"capacity": CAPACITIES[way], "joining": way == JOINED}
    return serving.simulate(arrivals, needed, costs_of(results, way), **options)


def saturated(results: Mapping[str, Any], way: str, lengths: Sequence[int], n: int = 20_000) -> float:
    """Return how many requests are answered in a second when all of them wait from the start."""
    drawn = np.random.default_rng(0).choice(lengths, n)
    return round(n / float(latencies(results, way, np.zeros(n), drawn).max()), 2)


def queues(results: Mapping[str, Any], mix: str, lengths: Sequence[int], seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Return how long requests take for each way, at rates that are LOADS of what each of the ways can do at most."""
    most = results["saturated"][mix]
    rates = sorted(round(share * rate, 1) for rate in most.values() for share in LOADS)
    return [
        {"mix": mix, "way": way, "rate": rate, **queue(results, mix, way, rate, lengths, seeds)}
        for way in most
        for rate in rates
    ]


def queue(
    results: Mapping[str, Any], mix: str, way: str, rate: float, lengths: Sequence[int], seeds: Sequence[int]
) -> dict[str, Any]:
    """Return one way at one rate: median and 95th percentile in seconds, over all seeds, and each seed's median.

    Where requests come nearly as fast as they can be answered, or faster, the queue does not settle, so that there are
    no times to report.
    """
    load = rate / results["saturated"][mix][way]
    row = {"load": round(load, 4), "steady": load < STEADY}
    if not row["steady"]:
        return row
    n = results["requests"]
    seconds = [
        latencies(results, way, serving.poisson_arrivals(rate, n, seed), np.random.default_rng(seed).choice(lengths, n))
        for seed in seeds
    ]
    together = np.concatenate(seconds)
    numbers = {"median": np.median(together), "p95": np.quantile(together, 0.95)}
    medians = [round(float(np.median(one)), 5) for one in seconds]
    return row | {name: round(float(value), 5) for name, value in numbers.items()} | {"medians": medians}


def _numbered(seconds: Mapping[str, float]) -> dict[int, float]:
    return {int(n): value for n, value in seconds.items()}


def _fastest(rounds: int, measure_once: Callable[[], dict[Any, float]]) -> dict[Any, float]:
    """Return the minimum of each number over the rounds: other work of the machine can only add to it."""
    each = [measure_once() for _ in range(rounds)]
    return {name: round(min(one[name] for one in each), 7) for name in each[0]}


def _quartile(seconds: Sequence[float]) -> float:
    """Return the time that a quarter of them stay below."""
    return float(np.quantile(seconds, 0.25))


def _seconds(model: tl.Transformer, src: Sequence[list[int]]) -> dict[tuple[str, int], float]:
    """Return the seconds of reading n sentences and of a step with n of them, for each n, in one round."""
    quartiles: dict[tuple[str, int], float] = {}
    for n in SIZES:
        read, step = [], []
        for start in range(0, 3 * n if n > 8 else 24, n):
            batch = serving.JoiningBatch(model, n)
            read.append(_timed(partial(batch.join, tl.pad_batch(src[start : start + n]))))
            while len(batch) == n:
                step.append(_timed(batch.step))
        quartiles["read", n], quartiles["step", n] = _quartile(read), _quartile(step)
    return quartiles


def _really(model: tl.Transformer, src: Sequence[list[int]], way: str) -> float:
    """Return how many requests are really answered in a second when all held-out sentences wait from the start."""
    seconds = _timed(lambda: serving.serve(model, src, capacity=CAPACITIES[way], joining=way == JOINED))
    return round(len(src) / seconds, 2)


def _engine_seconds(ours: tl.Translator, texts: Sequence[str], rounds: int) -> dict[str, dict[str, float]]:
    """Return the seconds that CTranslate2 takes for a batch of n sentences; nothing where it is not installed."""
    if importlib.util.find_spec("ctranslate2") is None:
        return {}
    seconds_of = {}
    for kind in export.QUANTIZATIONS:
        with tempfile.TemporaryDirectory() as folder:
            theirs = export.load_ctranslate2(export.to_ctranslate2(ours, Path(folder) / kind, quantization=kind))
            timed = _fastest(rounds, partial(_batch_seconds, theirs, texts))
        seconds_of[kind] = {str(n): seconds for n, seconds in timed.items()}
    return seconds_of


def _batch_seconds(theirs: export.Exported, texts: Sequence[str]) -> dict[int, float]:
    return {
        n: _quartile(
            [
                _timed(partial(theirs.translate, texts[start : start + n], max_new_tokens=LIMIT, batch_size=n))
                for start in range(0, 3 * n if n > 8 else 24, n)
            ]
        )
        for n in SIZES
    }


def _timed(function: Callable[[], object]) -> float:
    """Return the processor's time for a call: in one thread all that it takes, and other programs do not count."""
    start = time.process_time()
    function()
    return time.process_time() - start


HOW_MUCH = {"requests": {"type": int, "default": REQUESTS}, "rounds": {"type": int, "default": ROUNDS}}
STUDY = Study("laptop", __doc__, at_once(measure), options=HOW_MUCH, indent=1)


if __name__ == "__main__":
    STUDY.command()
