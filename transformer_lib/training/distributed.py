"""Processes that train together: who they are, what they tell each other, and how to start them.

Without a process group everything here is what one process alone would do, so that callers need not ask.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

STORE = "TRANSFORMER_COURSE_STORE"  # the file through which processes started by `launch` find each other


def together() -> bool:
    """Return whether this process belongs to a group."""
    return dist.is_available() and dist.is_initialized()


def rank() -> int:
    """Return this process's number, from 0."""
    return dist.get_rank() if together() else 0


def world_size() -> int:
    """Return how many processes there are."""
    return dist.get_world_size() if together() else 1


def add_up(value: float) -> float:
    """Return the sum of every process's `value`; each gets the same number."""
    if not together():
        return value
    summed = torch.tensor(value, dtype=torch.float64, device="cuda" if dist.get_backend() == "nccl" else "cpu")
    dist.all_reduce(summed)
    return summed.item()


def any_of(flag: bool) -> bool:
    """Return whether `flag` is true in some process; each gets the same answer."""
    return add_up(float(flag)) > 0


def from_first(value: Any) -> Any:
    """Return process 0's `value`, in every process."""
    if not together():
        return value
    values = [value]
    dist.broadcast_object_list(values, src=0)
    return values[0]


def gather(value: Any) -> list[Any]:
    """Return every process's `value`, in the order of their ranks, in every process."""
    if not together():
        return [value]
    values = [None] * world_size()
    dist.all_gather_object(values, value)
    return values


@contextmanager
def process_group(backend: str = "gloo") -> Iterator[None]:
    """Join the group that torchrun or `launch` has prepared, and leave it together; alone if there is none.

    Args:
        backend: "gloo" for CPUs, "nccl" for GPUs.
    """
    if "RANK" not in os.environ:
        yield
        return
    number, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group(backend, init_method=os.environ.get(STORE, "env://"), rank=number, world_size=world)
    try:
        yield
        dist.barrier()  # a process that leaves early would break the others' last messages
    finally:
        dist.destroy_process_group()


def launch(
    command: Sequence[str], n_processes: int, *, environment: Mapping[str, str] | None = None, timeout: float = 120
) -> None:
    """Run `command` as a group of processes on this machine, each with one thread, and wait for all.

    Args:
        command: of each process; it calls `process_group`. environment: more variables. timeout: seconds for each.

    Raises:
        RuntimeError: a process failed, or took too long; the message is its exception.
    """
    root = Path(__file__).resolve().parents[2]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as files:
        shared = {
            **_loopback(),
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "WORLD_SIZE": str(n_processes),
            STORE: Path(folder, "store").as_uri(),
            **(environment or {}),
        }
        logs = [Path(folder, f"errors_{number}") for number in range(n_processes)]
        running = [
            subprocess.Popen(
                command,
                cwd=root,
                env={**shared, "RANK": str(number)},
                stdout=subprocess.DEVNULL,
                stderr=files.enter_context(log.open("wb")),
            )  # a pipe that nobody reads would fill up
            for number, log in enumerate(logs)
        ]
        try:
            ended = [_ends(process, timeout) for process in running]
            if not all(ended) or any(process.returncode for process in running):
                late = "" if all(ended) else f" (not done after {timeout} seconds)"
                errors = [log.read_text(encoding="utf-8", errors="replace") for log in logs]
                raise RuntimeError(f"a process failed{late}: {_cause(errors)}")
        finally:
            for process in running:
                process.kill()
                process.wait()


def _ends(process: subprocess.Popen[bytes], timeout: float) -> bool:
    """Return whether the process ends in time."""
    try:
        process.wait(timeout)
    except subprocess.TimeoutExpired:
        return False
    return True


def _loopback() -> dict[str, str]:
    """Return what tells gloo to stay on this machine's own interface, whatever its host name resolves to."""
    names = {name for _, name in socket.if_nameindex()} & {"lo", "lo0"}
    return {"GLOO_SOCKET_IFNAME": names.pop()} if names else {}


def _cause(errors: Sequence[str]) -> str:
    """Return the exception of the process that failed first: the others only say that they lost it."""
    lines = [line for error in errors for line in error.splitlines() if line.strip()]
    raised = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Interrupt)\b", line)]
    return next((line for line in raised if "Connection" not in line), (raised or lines[-1:] or ["no message"])[0])
