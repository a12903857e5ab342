"""One connection in memory, and what an application behind it is told."""

import asyncio
from typing import Any

import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from proxy.edge.protocol import Protocol
from proxy.wire import Headers


class Wire(asyncio.Transport):
    """A connection that keeps what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += bytes(data)

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        """Nobody sends more than is asked for here."""

    def resume_reading(self) -> None:
        """The same."""


class Told:
    """An application behind one connection, and what it was told."""

    def __init__(self) -> None:
        config = uvicorn.Config(
            self.work, http=Protocol, ws="none", interface="asgi3", log_config=None
        )
        config.load()
        self.wire = Wire()
        self.answering = asyncio.Event()
        self.answering.set()
        self.asked: list[tuple[Headers, dict[str, Any], bytes]] = []
        state: dict[str, Any] = {"shared": 1}
        self.connection = Protocol(config, ServerState(), state, asyncio.get_running_loop())
        self.connection.connection_made(self.wire)

    async def work(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        own = {name: scope[name] for name in scope if not name.startswith("usher.")}
        own["state"]["mine"] = True
        self.asked.append((own.pop("headers"), own, body))
        await self.answering.wait()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def read(self, *pieces: bytes) -> "Told":
        for piece in pieces:
            if not self.wire.closed:
                self.connection.data_received(piece)
            for _ in range(4):
                await asyncio.sleep(0)
        return self

    def outcome(self, since: int) -> tuple[object, bytes, bool]:
        """What came of everything after the first `since` requests."""
        answers = self.wire.sent.replace(b"HTTP/1.1 204 No Content\r\n\r\n", b"", since)
        return self.asked[since:], answers, self.wire.closed
