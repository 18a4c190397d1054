"""Batches that wait for their longest sentence, and batches that are joined: steps counted (notebook 22).

Two sets of requests: the held-out sentences, as the trained translator answers them, and lengths drawn at random, most
short and some very long, as answers of a conversation may be. Nothing is timed, so the counts are the same on every
machine. ("sorted" takes the sentences by the length of their source, and drawn requests by their own length, which
nobody could know beforehand.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import transformer_lib as tl
from transformer_lib.course.lab.rounds import DRAWN, SENTENCES
from transformer_lib.decoding import serving

from .engine import Study, at_once

CAPACITIES = (1, 2, 4, 8, 16, 32, 64)
IN_ORDER, SORTED, JOINED = "in order", "sorted", "joined"
MEAN = 40  # tokens of a drawn request, on average: geometric, so that each token is the last with probability 1 / 40
RUN_AT = 16  # the capacity at which the held-out sentences are really translated


def measure(seeds: Sequence[int], *, every: int = 1) -> dict[str, Any]:
    """Count the steps of both sets, and translate the first one with joining to see that nothing changes.

    Args:
        seeds: of the drawn lengths. every: take every n-th held-out sentence.
    """
    ours = tl.load_trained()
    src = [ours.src_tokenizer.encode(pair.src) for pair in tl.load_corpus("context")["heldout"][::every]]
    wanted = [_alone(ours, ids) for ids in src]
    lengths = [len(ids) - 1 for ids in wanted]
    by_source = sorted(range(len(src)), key=lambda i: len(src[i]))
    rows = list(_rows({"kind": SENTENCES}, lengths, [lengths[i] for i in by_source]))
    sets = {SENTENCES: _described(lengths)}
    for seed in seeds:
        drawn = np.random.default_rng(seed).geometric(1 / MEAN, len(src)).tolist()
        sets[f"{DRAWN} {seed}"] = _described(drawn)
        rows += _rows({"kind": DRAWN, "seed": seed}, drawn, sorted(drawn))
    run = {}
    for way in (IN_ORDER, JOINED):
        said, counts = serving.serve(ours.model, src, capacity=RUN_AT, joining=way == JOINED)
        run[way] = {"same": sum(map(list.__eq__, said, wanted)), "steps": counts.steps, "used": round(counts.used, 4)}
    return {"sets": sets, "rows": rows, "run": {"capacity": RUN_AT, "sentences": len(src), **run}}


def _alone(ours: tl.Translator, ids: list[int]) -> list[int]:
    """Return what greedy decoding says to one sentence by itself."""
    src = tl.pad_batch([ids])
    found: list[int] = tl.greedy_decode(ours.model, src, max_new_tokens=40, path="fast")[0].tolist()
    return found


def _described(lengths: Sequence[int]) -> dict[str, Any]:
    spread = {"shortest": min(lengths), "median": int(np.median(lengths)), "longest": max(lengths)}
    return {"requests": len(lengths), "tokens": sum(lengths), **spread}


def _rows(about: dict[str, Any], lengths: Sequence[int], in_sorted_order: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield the steps of each way at each capacity; `used` is the share of all rows in which a token is made."""
    for capacity in CAPACITIES:
        ways = {
            IN_ORDER: serving.count_steps(lengths, capacity, joining=False),
            SORTED: serving.count_steps(in_sorted_order, capacity, joining=False),
            JOINED: serving.count_steps(lengths, capacity),
        }
        least = max(math.ceil(sum(lengths) / capacity), max(lengths))
        for way, steps in ways.items():
            used = round(sum(lengths) / (steps * capacity), 4)
            yield {**about, "capacity": capacity, "way": way, "steps": steps, "least": least, "used": used}


STUDY = Study("rounds", __doc__, at_once(measure), indent=1)


if __name__ == "__main__":
    STUDY.command()
