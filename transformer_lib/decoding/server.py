"""A translator behind an address: a small HTTP server for this machine alone, which sends each word when it is said.

    POST /translate  {"text": "The bank was near the river."}
    200              {"token": "die"} and so on, a line each; the last is {"text": "Die …", "ended": true}

Requests join and leave one batch (`JoiningBatch`); who finds it full waits in line, in the order of arrival. Everything
happens in one thread, model and network by turns: between two steps the network sends and receives. HTTP itself is
Tornado's (the extra "serve"). The address is of the loopback, so no other machine can reach it; for more than that, a
server needs at least encryption, names and limits, none of which is here.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from .._validate import check_flag, check_int
from ..data.tokenizers import pad_batch
from .serving import JoiningBatch
from .translator import Translator

HOST = "127.0.0.1"  # the loopback: this machine alone
LONGEST_BODY = 16_384  # bytes of a request


class Refused(Exception):
    """The server has answered with a status that is not 200; `status` is that number, the message its reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{status}: {reason}")
        self.status, self.reason = status, reason


@dataclass
class Served:
    """What a server has done so far: requests by how they ended, tokens said, steps of the model."""

    answered: int = 0
    cancelled: int = 0  # the client went away
    refused: int = 0  # by a status that is not 200
    tokens: int = 0
    steps: int = 0


@dataclass(eq=False)
class Request:
    """One that was accepted: its source, what it was told so far, and what it has not been sent yet."""

    source: list[int]
    ids: list[int] = field(default_factory=list)
    unsent: asyncio.Queue[int | None] = field(default_factory=asyncio.Queue)  # None: nothing more will come
    cut: bool = False  # the client or the server has gone


class Server:
    """Serves a translator from a thread of its own, between `with Server(translator) as server:` and its end.

    Inside, `server.address` is its (host, port), and `server.served` counts. The end takes back what was begun: sockets
    are closed, requests under way are cut off, and the thread is gone. The model must not be used by others meanwhile.

    Args:
        translator: what is asked, greedily; its answers are those of `translate`.
        capacity: the most sentences in the batch. max_new_tokens: of each answer.
        waiting: the most requests in line; others are refused with 503. joining: as for `serve`.

    Raises:
        TypeError, ValueError: as for `JoiningBatch`, or an argument is out of range.
        ImportError: Tornado is missing.
    """

    def __init__(
        self,
        translator: Translator,
        *,
        capacity: int = 8,
        max_new_tokens: int = 40,
        waiting: int = 64,
        joining: bool = True,
    ) -> None:
        self.translator = translator
        self.capacity, self.joining = capacity, check_flag("joining", joining)
        self.longest_line = check_int("waiting", waiting, minimum=0)
        self.batch = JoiningBatch(translator.model, capacity, max_new_tokens=max_new_tokens)
        self.served = Served()
        self.address: tuple[str, int] = (HOST, 0)  # the port is free, and known once the server has begun
        self._line: deque[Request] = deque()
        self._inside: dict[int, Request] = {}
        self._thread: threading.Thread | None = None
        self._began = threading.Event()
        self._failed: BaseException | None = None

    def __enter__(self) -> Server:
        if self._thread is not None:
            raise RuntimeError("a server can be started once: make another")
        import tornado.httpserver  # noqa: F401  an ImportError belongs here, not into the thread

        self._thread = threading.Thread(target=self._run, name="transformer_lib server", daemon=True)
        self._thread.start()
        self._began.wait()
        if self._failed is not None:
            self._thread.join()
            raise self._failed
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._thread is not None
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()
        if self._failed is not None and error is None:
            raise self._failed

    # In the server's thread ----------------------------------------------------------------------------------
    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception as error:  # shown where the server is used
            self._failed = error
        finally:
            self._began.set()

    async def _serve(self) -> None:
        from tornado.httpserver import HTTPServer
        from tornado.netutil import bind_sockets

        from ._front import application

        self._loop, self._end, self._news = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
        front = HTTPServer(application(self), max_body_size=LONGEST_BODY)
        sockets = bind_sockets(0, HOST)
        front.add_sockets(sockets)
        self.address = (HOST, sockets[0].getsockname()[1])
        work, end = asyncio.create_task(self._work()), asyncio.create_task(self._end.wait())
        self._began.set()
        await asyncio.wait((work, end), return_when=asyncio.FIRST_COMPLETED)
        front.stop()
        for task in (work, end):
            task.cancel()
        outcomes = await asyncio.gather(work, end, return_exceptions=True)
        for request in (*self._line, *self._inside.values()):
            _cut(request)
        await asyncio.sleep(0)
        await front.close_all_connections()
        if isinstance(outcomes[0], Exception):
            raise outcomes[0]

    async def _work(self) -> None:
        """Step after step, as long as somebody is inside; between two steps the network has its turn."""
        while True:
            self._admit()
            if not len(self.batch):
                self._news.clear()
                await self._news.wait()
                continue
            ended = self.batch.step()
            self.served.steps += 1
            for ticket, token in self.batch.newest.items():
                self._tell(self._inside[ticket], token)
            for ticket in ended:
                self._inside.pop(ticket).unsent.put_nowait(None)
            await asyncio.sleep(0)

    def _admit(self) -> None:
        """Let those who wait take the free slots: at any step, or (joining=False) when the batch is empty."""
        if len(self.batch) and not self.joining:
            return
        new = [self._line.popleft() for _ in range(min(self.batch.free, len(self._line)))]
        if not new:
            return
        src = pad_batch([request.source for request in new]).to(self.batch.ids.device)
        for ticket, request in zip(self.batch.join(src), new, strict=True):
            self._inside[ticket] = request

    def _tell(self, request: Request, token: int) -> None:
        request.ids.append(token)
        request.unsent.put_nowait(token)
        self.served.tokens += 1

    def accept(self, text: object) -> Request | tuple[int, str]:
        """Put a text into the line, or return the status with which it is refused, and why.

        It is refused if it is no text of known words (400), is longer than the model reads (413), or the line is full
        (503).
        """
        if not isinstance(text, str):
            return 400, f'the body must be {{"text": "…"}}, with a string, got {text!r:.60}'
        try:
            source = self.translator.src_tokenizer.encode(text)
        except ValueError as error:
            return 400, str(error)
        if not source:
            return 400, "text must have at least one word"
        longest = self.translator.model.config.max_len
        if len(source) > longest:
            return 413, f"text must have at most {longest} tokens, got {len(source)}"
        if len(self._line) >= self.longest_line and (self._line or not self.batch.free):
            return 503, f"{len(self._line)} requests are waiting already: try again later"
        request = Request(source)
        self._line.append(request)
        self._news.set()
        return request

    def forget(self, request: Request) -> None:
        """Take a request out whose client has gone: nobody would read what is said."""
        if request in self._line:
            self._line.remove(request)
        for ticket in [ticket for ticket, other in self._inside.items() if other is request]:
            del self._inside[ticket]
            self.batch.leave(ticket)
        _cut(request)
        self.served.cancelled += 1


def _cut(request: Request) -> None:
    request.cut = True
    request.unsent.put_nowait(None)


# A client --------------------------------------------------------------------------------------------------
def ask(address: tuple[str, int], text: str, *, time_limit: float = 60.0) -> Iterator[dict[str, Any]]:
    """Ask a `Server`, and give each line of its answer when it comes; leaving early cancels the request.

    Raises:
        Refused: the server has not accepted it. ConnectionError: there is no server at the address, or it has ended
            before the answer has.
    """
    line: dict[str, Any] = {}
    connection = http.client.HTTPConnection(*address, timeout=time_limit)
    try:
        connection.request("POST", "/translate", json.dumps({"text": text}).encode())
        answer = connection.getresponse()
        if answer.status != 200:
            said = answer.read().decode("utf-8", "replace")
            raise Refused(answer.status, json.loads(said)["error"] if said.startswith("{") else said)
        for sent in answer:
            line = json.loads(sent)
            yield line
        if "text" not in line:
            raise ConnectionError("the server has ended before its answer has")
    finally:
        connection.close()
