"""Stopping a run between two steps: what a signal asks for is noted, and done when nothing is half finished."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, TypeVar

from . import distributed

Result = TypeVar("Result")
SIGNALS = (signal.SIGINT, signal.SIGTERM)  # Ctrl-C or a notebook's stop button; what a scheduler or `kill` sends


class StopRequest:
    """While entered, notes Ctrl-C and SIGTERM in `made` instead of letting them break a training step.

    Within `at_once` they raise KeyboardInterrupt as usual. So does a second Ctrl-C outside it, for those who cannot
    wait for the step; not in a group of processes, where a launcher repeats the terminal's signal. A signal that this
    process ignores stays ignored. Python handles signals in its main thread alone, so nothing is noted in another
    thread.
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
        self._make(signal.Signals(number))
        if self._at_once or again:
            raise KeyboardInterrupt

    def _make(self, number: signal.Signals) -> None:
        """Note the request, also for a run within whose callbacks this one trains."""
        self.made = True
        outer = getattr(self._before.get(number), "__self__", None)
        if isinstance(outer, StopRequest):
            outer._make(number)

    def at_once(self, call: Callable[..., Result], *args: object) -> Result | None:
        """Return call(*args), which a signal ends at once; the request is then noted, and what returns is None."""
        try:
            self._at_once = True
            try:
                return call(*args)
            finally:
                self._at_once = False
        except KeyboardInterrupt:  # a signal's, or raised by what was called
            self._at_once, self.made = False, True
            return None
