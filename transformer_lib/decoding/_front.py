"""What `server` says in HTTP, by Tornado: one path, its answers, and why a request is refused."""

from __future__ import annotations

import json
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from tornado.iostream import StreamClosedError
from tornado.web import Application, RequestHandler

from ..data.tokenizers import EOS_ID

if TYPE_CHECKING:
    from .server import Request, Server


class Answer(RequestHandler):
    """Any path but /translate."""

    def initialize(self, server: Server) -> None:
        """Remember whose answer it is."""
        self.server = server

    def refuse(self, status: int, reason: str) -> None:
        """Answer with another status than 200, and a reason."""
        self.server.served.refused += 1
        self.set_status(status)
        self.finish({"error": reason})

    def prepare(self) -> Awaitable[None] | None:
        """Refuse."""
        self.refuse(404, "POST /translate is all that there is")
        return None


class Translate(Answer):
    """POST /translate."""

    asked: Request | None = None

    def prepare(self) -> Awaitable[None] | None:
        """Refuse other methods."""
        if self.request.method != "POST":
            self.refuse(405, f"POST a text to /translate, got {self.request.method}")
        return None

    async def post(self) -> None:
        """Send a line for each word when it is said, and a last one."""
        asked = self.server.accept(_text(self.request.body))
        if isinstance(asked, tuple):
            self.refuse(*asked)
            return
        self.asked = asked
        self.set_header("Content-Type", "application/x-ndjson")
        try:
            await self.send(asked)
        except StreamClosedError:
            self.on_connection_close()
        if asked.cut:
            self.detach().close()  # not `finish`: what was sent must not look complete

    async def send(self, asked: Request) -> None:
        """Send what is said to a request, until it has ended or is cut off."""
        tokenizer = self.server.translator.tgt_tokenizer
        while (token := await asked.unsent.get()) is not None:
            for word in tokenizer.tokens([token]):  # none for eos
                self.write(json.dumps({"token": word}, ensure_ascii=False) + "\n")
                await self.flush()
        if asked.cut:
            return
        last = {"text": tokenizer.decode(asked.ids), "ended": EOS_ID in asked.ids}
        self.asked = None
        self.server.served.answered += 1
        await self.finish(json.dumps(last, ensure_ascii=False) + "\n")

    def on_connection_close(self) -> None:
        """Let nobody go on for a client that has gone."""
        if self.asked is not None:
            self.server.forget(self.asked)
            self.asked = None


def application(server: Server) -> Application:
    """Return Tornado's application, which logs nothing: what went wrong is in the answer."""
    handlers: list[Any] = [("/translate", Translate, {"server": server}), (".*", Answer, {"server": server})]
    return Application(handlers, log_function=lambda handler: None)


def _text(body: bytes) -> object:
    """Return what stands at "text" in a body of JSON; None if there is nothing."""
    try:
        said = json.loads(body)
    except ValueError:  # neither JSON nor UTF-8
        return body.decode("utf-8", "replace")[:60].encode()  # no string, so it is refused, and shown
    return said.get("text") if isinstance(said, dict) else None
