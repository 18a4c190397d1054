"""Calls a learner's functions in a process of their own, a copy of this one, which can be ended at any time.

A thread cannot be stopped while C code keeps the interpreter to itself (`sum(range(10**12))`), and shares its memory
with the notebook. A copy made by `os.fork` knows the learner's functions without their being sent, and is made once
for a whole check. Only Linux copies a process with threads safely; elsewhere, and where a GPU is in use, functions
run in threads (`sandbox.run_guarded`).
"""

from __future__ import annotations

import gc
import io
import logging
import os
import pickle
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from .model import Case
from .plain import Printed, plain_outcome, remembered, stranger
from .sandbox import Outcome, run_directly, run_guarded

PATIENCE = 12  # a call that computes is waited for up to so many times its limit by the clock
MEMORY = 2**30  # bytes that a learner's functions may take beyond those of the notebook
Function = Callable[..., object]
Guarded = Callable[[Function, tuple[Any, ...]], Outcome]


@contextmanager
def guarded_calls(
    functions: Sequence[Function], learners: Function, cases: Sequence[Case], names: tuple[str, ...], time_limit: float
) -> Iterator[Guarded]:
    """Give a function that calls any of `functions` on any arguments, and says what happened, whatever it was.

    Args:
        functions: the learner's function, and what was made of it.
        learners: the learner's function: errors are shown by its lines.
        cases: their arguments need not be sent to the process.
        names: of the arguments.
        time_limit: seconds for one call.
    """

    def in_thread(function: Function, args: tuple[Any, ...]) -> Outcome:
        with _captured() as printed:
            outcome = run_guarded(function, args, names, time_limit)
        return replace(plain_outcome(outcome, learners), printed=printed.text)

    worker = _Worker(functions, learners, cases, names)

    def call(function: Function, args: tuple[Any, ...]) -> Outcome:
        return worker.call(function, args, time_limit) or in_thread(function, args)

    try:
        yield call
    finally:
        worker.end()


@contextmanager
def _captured() -> Iterator[Printed]:
    """Keep what a function prints, without torch's warnings: they have several lines, and a verdict follows anyway."""
    printed = Printed()
    with redirect_stdout(printed), redirect_stderr(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield printed


def can_copy_a_process() -> bool:
    """Return True where a copy of this process can go on computing."""
    return sys.platform == "linux" and not torch.cuda.is_initialized()


# Processes that were ended; the system forgets each when it is asked for, which need not be waited for.
_ended: list[int] = []


class _Worker:
    """The process and the way to it; the process starts with the first call, and again after one was ended."""

    def __init__(
        self, functions: Sequence[Function], learners: Function, cases: Sequence[Case], names: tuple[str, ...]
    ) -> None:
        self.functions, self.learners, self.names = functions, learners, names
        self.shared = [arg for case in cases for arg in case.args]
        self.usable = can_copy_a_process()
        self.process = 0
        self.line: Connection | None = None

    def call(self, function: Function, args: tuple[Any, ...], time_limit: float) -> Outcome | None:
        """Return what happened; None if this has to be tried in another way."""
        request = self._request(function, args) if self.usable else None
        line = self._line() if request else None
        if request is None or line is None:
            return None
        try:
            line.send_bytes(request)
            if self._came(line, time_limit):
                return _unpacked(line.recv_bytes())
        except (EOFError, OSError, pickle.UnpicklingError):  # it is gone
            self.end()
            return Outcome("raised", error=remembered("Crash", "it ended the whole Python process"))
        self.usable = not _asleep(self.process)
        self.end()
        return Outcome("endless") if self.usable else None

    def _came(self, line: Connection, time_limit: float) -> bool:
        """Return True when the answer is there; wait until the function has computed for `time_limit` seconds.

        On a busy machine that takes longer by the clock. One that sleeps, or stalls otherwise, is not waited for.
        """
        began, latest = _seconds_computed(self.process), time.monotonic() + PATIENCE * time_limit
        left = time_limit
        while not line.poll(left):
            left = time_limit - (_seconds_computed(self.process) - began)
            if left < 0.1 * time_limit or time.monotonic() > latest or _asleep(self.process):
                return False
        return True

    def _request(self, function: Function, args: tuple[Any, ...]) -> bytes | None:
        try:
            return _pickled((self.functions.index(function), args), self.shared)
        except Exception:  # a probe may ask with something that cannot be sent
            return None

    def _line(self) -> Connection | None:
        if self.line is None:
            try:
                self.line, self.process = self._started()
            except OSError:  # no more processes, or no more memory
                self.usable = False
        return self.line

    def _started(self) -> tuple[Connection, int]:
        _ended[:] = [process for process in _ended if os.waitpid(process, os.WNOHANG) == (0, 0)]
        here, there = Pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python's general doubt about forks and threads
            process = os.fork()
        if not process:
            try:
                here.close()
                _serve(there, self)
            finally:
                os._exit(0)
        there.close()
        return here, process

    def end(self) -> None:
        """End the process if there is one."""
        if self.line is not None:
            self.line.close()
            self.line = None
            with suppress(ProcessLookupError):
                os.kill(self.process, signal.SIGKILL)
            _ended.append(self.process)


def _asleep(process: int) -> bool:
    """Return True if the process only waits, for a sleep or for a lock that a copied thread will never give back."""
    for _ in range(5):
        if _status(process)[0] != "S":
            return False
        time.sleep(0.01)
    return True


def _seconds_computed(process: int) -> float:
    user, system = _status(process)[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _status(process: int) -> list[str]:
    """Return what the system says of a process after its name, which stands in brackets: first a letter, its state."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()


def _serve(line: Connection, worker: _Worker) -> None:
    """Answer calls until the line closes. This is all that the process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # interrupting the notebook ends this process, too
    sys.settrace(None)
    logging.disable()  # a notebook's kernel would report every picture that is shown here, and does not arrive
    gc.freeze()  # the collector would touch, and so copy, all memory
    torch.set_num_threads(1)  # the other threads of torch were not copied
    torch.set_grad_enabled(True)
    _limit_memory()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    with suppress(EOFError, OSError):
        while True:
            index, args = _Unpickler(io.BytesIO(line.recv_bytes()), worker.shared).load()
            line.send_bytes(_answer(worker.functions[index], args, worker))


def _limit_memory() -> None:
    import resource  # not on Windows

    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = now + MEMORY if hard == resource.RLIM_INFINITY else min(now + MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def _answer(function: Function, args: tuple[Any, ...], worker: _Worker) -> bytes:
    with _captured() as printed:
        outcome = run_directly(function, args, worker.names)
    outcome = replace(plain_outcome(outcome, worker.learners), printed=printed.text)
    try:
        return _packed(outcome)
    except Exception:  # a tensor of a kind that cannot be sent
        return _packed(replace(outcome, value=stranger(outcome.value)))


def _packed(outcome: Outcome) -> bytes:
    """Return a plain outcome as bytes. The type of an error is made anew there, so its name is sent."""
    error = outcome.error
    about = error and (type(error).__name__, str(error), type(error).__base__)
    return _pickled((replace(outcome, error=None), about), [])


def _unpacked(data: bytes) -> Outcome:
    outcome, about = pickle.loads(data)
    return replace(outcome, error=remembered(*about)) if about else outcome


class _Pickler(pickle.Pickler):
    """Sends what both processes have had since the beginning as its number: also functions, which cannot be sent."""

    def __init__(self, file: io.BytesIO, shared: Sequence[object]) -> None:
        super().__init__(file)
        self._numbers = {id(value): number for number, value in enumerate(shared)}

    def persistent_id(self, obj: object) -> int | None:
        return self._numbers.get(id(obj))


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, shared: Sequence[object]) -> None:
        super().__init__(file)
        self._shared = shared

    def persistent_load(self, pid: int) -> object:
        return self._shared[pid]


def _pickled(value: object, shared: Sequence[object]) -> bytes:
    file = io.BytesIO()
    _Pickler(file, shared).dump(value)
    return file.getvalue()
