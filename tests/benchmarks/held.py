"""The training step and decoding on a processor that is held to AVX2, as older ones are: no units for bfloat16."""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import date
from multiprocessing.connection import Connection
from unittest import mock

import torch

from .run import command, decoded, machine, trained
from .work import Work

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
        found = here.recv()
    except EOFError:
        raise RuntimeError("the process that is held to AVX2 has failed; see above") from None
    finally:
        process.join()
    return {
        "command": command("--held", work),
        "date": date.today().isoformat(),
        "rounds": work.rounds,
        **found,
    }


def answer(channel: Connection, work: Work) -> None:
    """Send the machine as this process sees it, with what PyTorch says it is held to, and the rows."""
    warnings.filterwarnings("ignore", message="The PyTorch API of nested tensors")
    torch.set_num_threads(work.threads)
    torch.manual_seed(0)
    held = {"bfloat16_units": False, "instructions": torch.backends.cpu.get_cpu_capability()}
    channel.send({"machine": machine() | held, "training": trained(work), "decoding": decoded(work)})


def environment(values: dict[str, str]) -> AbstractContextManager:
    """Set environment variables for the processes that are started meanwhile."""
    return mock.patch.dict(os.environ, values)
