"""Stopping a run between two steps: what a signal asks for is noted, and done when nothing is half finished."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

from . import distributed

SIGNALS = (signal.SIGINT, signal.SIGTERM)  # Ctrl-C or a notebook's stop button; what a scheduler or `kill` sends


class StopRequest:
    """While entered, notes Ctrl-C and SIGTERM in `made` instead of letting them break a training step.

    Within `at_once` they raise KeyboardInterrupt as usual. So does a second Ctrl-C outside it, for who cannot wait for
    the step; not in a group of processes, where a launcher repeats the terminal's signal. A signal that this process
    ignores stays ignored. Python handles signals in its main thread alone, so in another thread nothing is noted.
    """

    def __init__(self) -> None:
        self.made = False
        self._at_once = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopRequest:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if signal.getsignal(number) not in (signal.SIG_IGN, None):  # None: not set from Python
                    self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        again = self.made and number == signal.SIGINT and not distributed.together()
        self.made = True
        if self._at_once or again:
            raise KeyboardInterrupt

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Let a signal end what is done inside, which is then left with the request noted."""
        try:
            self._at_once = True
            yield
        except KeyboardInterrupt:  # a signal's, or raised by what was called
            self.made = True
        finally:
            self._at_once = False
