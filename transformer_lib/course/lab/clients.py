"""Clients of a `tl.server.Server`, several at once: who hears the first word when, and how fast the others follow."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from transformer_lib.decoding.server import Refused, Served, Server, ask
from transformer_lib.decoding.translator import Translator


@dataclass(frozen=True)
class Heard:
    """What one client heard: the answer, and when each word came, in seconds after all clients began."""

    text: str
    times: tuple[float, ...]

    @property
    def first(self) -> float:
        """Seconds until the first word."""
        return self.times[0]

    @property
    def between(self) -> float:
        """Seconds from one word to the next, on average."""
        return (self.times[-1] - self.times[0]) / max(len(self.times) - 1, 1)


def all_at_once(address: tuple[str, int], texts: Sequence[str]) -> list[Heard]:
    """Send every text from a client (a thread) of its own, all at the same time, and return what each of them heard.

    The last line of an answer counts as its end: its time is the last of `times`.
    """
    heard: list[Heard | BaseException] = [RuntimeError("nothing was heard")] * len(texts)
    ready = threading.Barrier(len(texts) + 1)
    began = 0.0

    def listen(number: int) -> None:
        ready.wait()
        times, text = [], ""
        try:
            for line in ask(address, texts[number]):
                times.append(time.perf_counter() - began)
                text = line.get("text", text)
            heard[number] = Heard(text, tuple(times))
        except Exception as error:  # raised where the clients are asked for
            heard[number] = error

    clients = [threading.Thread(target=listen, args=(number,)) for number in range(len(texts))]
    for client in clients:
        client.start()
    began = time.perf_counter()
    ready.wait()
    for client in clients:
        client.join()
    found = [one for one in heard if isinstance(one, Heard)]
    for one in heard:
        if not isinstance(one, Heard):
            raise one
    return found


def served(translator: Translator, texts: Sequence[str], capacity: int, tries: int = 3) -> tuple[list[Heard], Served]:
    """Return what clients that ask all at once hear of a server with room for `capacity`, and what it has counted.

    Of several tries, each with a server of its own, it is the one that was done first, so that other programs on the
    machine hardly show.
    """

    def once() -> tuple[list[Heard], Served]:
        with Server(translator, capacity=capacity) as server:
            heard = all_at_once(server.address, texts)
        return heard, server.served

    return min((once() for _ in range(tries)), key=lambda found: max(one.times[-1] for one in found[0]))


def answer(address: tuple[str, int], text: str) -> str:
    """Return a server's answer as a whole, or the status and the reason with which it refuses the text."""
    try:
        return str(list(ask(address, text))[-1]["text"])
    except Refused as refused:
        return str(refused)
