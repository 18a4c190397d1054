"""Several learners on one machine: how many training steps they take together, with one thread each and with two."""

from __future__ import annotations

import multiprocessing
import statistics
from collections.abc import Callable
from datetime import date
from typing import Any

import torch

import transformer_lib as tl
from transformer_lib.course.lab.translators import new_translator, train_translator

from .run import machine

COMMAND = "make bench BENCH=--shared"
LEARNERS, THREADS = (1, 2, 4), (1, 2)
WARM, SECONDS, ROUNDS = 2.0, 8.0, 3


def measured(*, seconds: float = SECONDS, rounds: int = ROUNDS, say: Callable[[str], None] = print) -> dict:
    """Return the steps a second of all learners together, for each number of learners and of threads of each."""
    found: dict[tuple[int, int], list[float]] = {(n, threads): [] for n in LEARNERS for threads in THREADS}
    for number in range(rounds):
        say(f"round {number + 1} of {rounds} …")
        for n, threads in list(found)[:: -1 if number % 2 else 1]:
            found[n, threads].append(sum(together(n, threads, seconds)) / seconds)
    rows = [
        {"learners": n, "threads": threads, "steps_a_second": round(statistics.median(rates), 2)}
        for (n, threads), rates in found.items()
    ]
    return {
        "command": COMMAND,
        "date": date.today().isoformat(),
        "machine": machine() | {"processors": multiprocessing.cpu_count()},
        "seconds": seconds,
        "rounds": rounds,
        "rows": rows,
    }


def together(learners: int, threads: int, seconds: float) -> list[int]:
    """Return how many steps each of the learners took in the same seconds."""
    context = multiprocessing.get_context("spawn")
    begin, taken = context.Barrier(learners), context.Queue()
    started = [context.Process(target=learn, args=(begin, taken, threads, seconds)) for _ in range(learners)]
    for process in started:
        process.start()
    steps = [taken.get(timeout=600) for _ in started]
    for process in started:
        process.join()
    return steps


def learn(begin: Any, taken: Any, threads: int, seconds: float) -> None:
    """Train the course's translator by its recipe until the time is over, as notebook 13 does."""
    torch.set_num_threads(threads)
    pairs = tl.load_corpus("context")["train"]
    translator = new_translator(pairs, seed=0)

    def steps_in(limit: float) -> int:
        options = {"epochs": None, "time_limit": limit, "schedule": "constant", "progress": False}
        return len(train_translator(translator, pairs, seed=0, **options).steps)

    steps_in(min(WARM, seconds))
    begin.wait()
    taken.put(steps_in(seconds))
