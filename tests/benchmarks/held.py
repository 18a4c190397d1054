"""The training step and decoding on a processor that is held to AVX2, as older ones are: no units for bfloat16."""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from multiprocessing.connection import Connection

import torch

from .run import decoded, machine, trained
from .work import FULL, Work

COMMAND = "make bench BENCH=--held"
# Read once, when a process first computes: by PyTorch's own kernels, by oneDNN, and by MKL.
HELD = {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}


def measured(work: Work, say: Callable[[str], None] = print) -> dict:
    """Return the rows of both kinds of work, measured in a process that is held to AVX2."""
    say("training step and decoding, held to AVX2 …")
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=answer, args=(there, work), daemon=True)
    with environment(HELD):
        process.start()
    there.close()
    try:
        instructions, rows = here.recv()
    except EOFError:
        raise RuntimeError("the process that is held to AVX2 has failed; see above") from None
    finally:
        process.join()
    return {
        "command": COMMAND if work.rounds == FULL.rounds else f'make bench BENCH="--held --rounds {work.rounds}"',
        "date": date.today().isoformat(),
        "machine": machine() | {"bfloat16_units": False, "instructions": instructions},
        "rounds": work.rounds,
        **rows,
    }


def answer(channel: Connection, work: Work) -> None:
    """Send what PyTorch says it is held to, and the rows."""
    warnings.filterwarnings("ignore", message="The PyTorch API of nested tensors")
    torch.set_num_threads(work.threads)
    torch.manual_seed(0)
    rows = {"training": trained(work), "decoding": decoded(work)}
    channel.send((torch.backends.cpu.get_cpu_capability(), rows))


@contextmanager
def environment(values: dict[str, str]) -> Iterator[None]:
    """Set environment variables for the processes that are started meanwhile."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
