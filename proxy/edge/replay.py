"""Requests come in at a local upstream; what a cassette has recorded for them goes out."""

import asyncio
import re
from collections.abc import Callable

from starlette.types import Receive, Scope, Send

from proxy.edge.body import read_body
from proxy.edge.respond import error_body
from proxy.edge.watch import ClientGone
from proxy.errors import NotFound
from proxy.upstream.cassette import Cassette, Interaction
from proxy.wire import Headers

MAX_BODY = 256 * 1024 * 1024
_EVENTS = re.compile(rb".*?(?:\r\n\r\n|\n\n|\r\r|$)", re.DOTALL)

Tell = Callable[[str, str, str | None], None]
"""Is told of each request: method, target, and why there was no answer, if there was none."""


class NotRecorded(NotFound):
    """The cassette has no answer; SDKs do not try again."""

    code = "not_recorded"


class Replay:
    """A raw ASGI application; event streams come event by event, `pace` seconds apart."""

    def __init__(self, cassette: Cassette, tell: Tell, pace: float = 0.0) -> None:
        self._cassette = cassette
        self._tell = tell
        self._pace = pace

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        query = scope["query_string"].decode("latin-1")
        path = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1")
        method, target = scope["method"], f"{path}?{query}" if query else path
        try:
            body = await read_body(receive, None, MAX_BODY)
        except ClientGone:
            return
        found = self._cassette.play(method, target, body)
        reason = None if found else self._cassette.explain(method, target, body)
        self._tell(method, target, reason)
        if found is None:
            error = NotRecorded(f"Not in the cassette: {method} {target}; {reason}.")
            headers: Headers = [(b"content-type", b"application/json")]
            found = Interaction(method, target, b"", error.status, headers, error_body(error))
        await self._send(found, send)

    async def _send(self, found: Interaction, send: Send) -> None:
        streamed = any(
            name == b"content-type" and value.startswith(b"text/event-stream")
            for name, value in found.headers
        )
        pieces = [piece for piece in _EVENTS.findall(found.answer) if piece] if streamed else []
        length = [] if streamed else [(b"content-length", b"%d" % len(found.answer))]
        headers = [*found.headers, *length]
        await send({"type": "http.response.start", "status": found.status, "headers": headers})
        for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            await asyncio.sleep(self._pace)
        rest = b"" if streamed else found.answer
        await send({"type": "http.response.body", "body": rest, "more_body": False})


async def _live(receive: Receive, send: Send) -> None:
    """Nothing begins and nothing ends."""
    while (message := await receive())["type"] != "lifespan.shutdown":
        await send({"type": f"{message['type']}.complete"})
    await send({"type": "lifespan.shutdown.complete"})
