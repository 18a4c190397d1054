"""What every command owes its streams: any character on any console, and a quiet end when nobody reads on."""

from __future__ import annotations

import io
import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn, TextIO

# What a shell says of a program that a signal has ended: 128 and the signal's number.
STOPPED = 130  # SIGINT, from the keyboard
UNREAD = 141  # SIGPIPE: whatever read the output has ended, as `head` does


def run_command(main: Callable[[], int | None]) -> NoReturn:
    """Run a command and leave with the status that it returns, or with those of `as_a_command`."""
    with as_a_command():
        sys.exit(main())


@contextmanager
def as_a_command() -> Iterator[None]:
    """Run the block as a command: its output can be shown on any console, and cut short.

    A character that the console cannot show is written as its number, such as \\u2713. The block leaves with UNREAD
    when nobody reads its output any more, with STOPPED after Ctrl+C, and with 1 and a message, where it has not said so
    itself, when a file cannot be read or written.
    """
    _show_every_character()
    try:
        try:
            yield
        finally:
            _flush()
    except BrokenPipeError:
        unread = [stream for stream in (sys.stdout, sys.stderr) if _is_unread(stream)]
        if not unread:
            raise  # another pipe, such as one to a process of ours
        for stream in unread:
            _discard(stream)
        sys.exit(UNREAD)
    except KeyboardInterrupt:
        sys.exit(STOPPED)
    except OSError as error:
        sys.exit(f"error: {error}")


def _show_every_character() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _flush() -> None:
    """Write what is still held back: at its own exit, Python could only complain about it."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _discard(sys.stdout)
        ended = error.__context__
        if ended is None or getattr(ended, "code", 1) in (0, None):  # otherwise the command's own error goes on
            sys.exit(f"standard output cannot be written: {error.strerror}")


def _is_unread(stream: TextIO | None) -> bool:
    """Return whether the stream is a pipe that nobody reads; where the system does not tell, yes."""
    if not isinstance(stream, io.TextIOWrapper):
        return False
    if not hasattr(select, "poll"):  # Windows
        return True
    poll = select.poll()
    poll.register(stream.fileno(), 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def _discard(stream: TextIO) -> None:
    """Let what the stream still holds go nowhere, so that Python can flush it when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
