"""A Reply or an error comes in; the ASGI messages of one whole response go out."""

from collections.abc import AsyncIterator, Callable
from math import ceil

import orjson
from starlette.types import Send
from uvicorn.protocols.http.httptools_impl import HEADER_RE, HEADER_VALUE_RE

from proxy.edge.lump import Answer
from proxy.edge.pulse import FRAME_ENDS, Pulse
from proxy.errors import UsherError
from proxy.plan.exchange import Reply
from proxy.wire import Headers

DONE = b"data: [DONE]\n\n"
# Framing is made anew on this hop, and the server adds the date.
_DROPPED = frozenset({b"content-length", b"transfer-encoding", b"connection", b"date"})
_UNBUFFERED: Headers = [(b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no")]
_BODILESS = frozenset({204, 304})


def error_body(error: UsherError) -> bytes:
    """The one place where an error becomes a body."""
    return orjson.dumps(error.body())


def error_reply(error: UsherError) -> Reply:
    headers: Headers = [(b"content-type", b"application/json")]
    if error.retry_after is not None:
        headers.append((b"retry-after", str(max(1, ceil(error.retry_after))).encode()))
    headers.extend(error.headers)
    if error.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    return Reply(error.status, headers, error_body(error))


def error_frames(error: UsherError) -> bytes:
    """The same inside an event stream, as its end."""
    return b"data: " + error_body(error) + b"\n\n" + DONE


class Response:
    """One response on its way to one client.

    `status` is None until something was sent; `done` turns true with its regular end.
    """

    __slots__ = (
        "_answer",
        "_frames",
        "_last",
        "_left",
        "_on_end",
        "_on_start",
        "_request_id",
        "_send",
        "closing",
        "done",
        "status",
    )

    def __init__(
        self,
        send: Send,
        request_id: str,
        on_start: Callable[[], None],
        on_end: Callable[[], None],
        answer: Answer | None = None,
    ) -> None:
        self._answer = answer
        self._send = send
        self._request_id = request_id
        self._on_start = on_start
        self._on_end = on_end
        self._frames = False
        self._last = b""
        self._left = -1
        self.closing = False
        self.status: int | None = None
        self.done = False

    async def write(self, reply: Reply, ping_seconds: float) -> None:
        """Send a reply; its head waits for the first chunk of its body, which may yet fail."""
        if isinstance(reply.body, bytes):
            await self._write_whole(reply, reply.body)
            return
        try:
            await self._write_stream(reply, reply.body, ping_seconds)
        finally:
            close = getattr(reply.body, "aclose", None)
            if close is not None:
                await close()

    async def fail(self, error: UsherError) -> None:
        """End a response that cannot go on: as an error reply as long as nothing was sent.

        In an event stream the error is the last frame. Any other body stays cut short, without
        its regular end, and that is how the client can tell.
        """
        if self.status is None:
            await self._write_whole(error_reply(error), error_body(error))
        elif self._frames and not self.done:
            cut = self._last and not self._last.endswith(FRAME_ENDS)
            await self._finish((b"\n\n" if cut else b"") + error_frames(error))

    async def _write_whole(self, reply: Reply, body: bytes) -> None:
        headers = self._head(reply, {})
        if reply.status in _BODILESS:
            body = b""
        else:
            headers.append((b"content-length", b"%d" % len(body)))
        status = self._begin(reply.status, headers)
        self._on_end()
        if self._answer is None or not self._answer(status, headers, body):
            await self._send_head(status, headers)
            await self._finish(body)
        self.done = True

    async def _write_stream(
        self, reply: Reply, body: AsyncIterator[bytes], ping_seconds: float
    ) -> None:
        async def write(chunk: bytes) -> None:
            if self.status is None:
                await self._start(reply.status, self._stream_head(reply))
            self._last = chunk
            self._left -= len(chunk)
            if self._left == 0:
                await self._finish(chunk)
                return
            if reply.pings and chunk.endswith(DONE):
                self._on_end()  # SDKs hang up here, and the turn has its books to do
            await self._send({"type": "http.response.body", "body": chunk, "more_body": True})

        pulse = Pulse(write, ping_seconds) if reply.pings else None
        put = pulse.write if pulse else write
        try:
            async for chunk in body:
                if chunk:
                    await put(chunk)
        finally:
            if pulse:
                pulse.stop()
        if self.status is None:
            await self._start(reply.status, self._stream_head(reply))
        if not self.done:
            await self._finish(b"")

    async def _start(self, status: int, headers: Headers) -> None:
        await self._send_head(self._begin(status, headers), headers)

    def _begin(self, status: int, headers: Headers) -> int:
        """The status to send; HTTP has no other final ones, and some upstreams invent one."""
        self.status = status if 200 <= status <= 599 else 502
        self._on_start()
        if self.closing:
            headers.append((b"connection", b"close"))
        return self.status

    async def _send_head(self, status: int, headers: Headers) -> None:
        # An upstream may send what HTTP cannot carry; uvicorn would end the connection over it.
        sent = [pair for pair in headers if not _is_broken(*pair)]
        await self._send({"type": "http.response.start", "status": status, "headers": sent})

    async def _finish(self, body: bytes) -> None:
        self._on_end()
        await self._send({"type": "http.response.body", "body": body, "more_body": False})
        self.done = True

    def _head(self, reply: Reply, sent: dict[bytes, bytes]) -> Headers:
        """The headers to send; those of the reply are added to `sent` by name."""
        headers: Headers = []
        for pair in reply.headers:
            name = pair[0].lower()
            sent[name] = pair[1]
            if name not in _DROPPED:
                headers.append(pair)
        if b"x-request-id" not in sent:
            headers.append((b"x-request-id", self._request_id.encode()))
        return headers

    def _stream_head(self, reply: Reply) -> Headers:
        sent: dict[bytes, bytes] = {}
        headers = self._head(reply, sent)
        if not sent.get(b"content-type", b"").lower().startswith(b"text/event-stream"):
            length = sent.get(b"content-length", b"")
            if length and reply.status not in _BODILESS:
                headers.append((b"content-length", length))
                self._left = int(length) if length.isdigit() else -1
            return headers
        self._frames = b"content-encoding" not in sent
        headers += [pair for pair in _UNBUFFERED if pair[0] not in sent]
        return headers


def _is_broken(name: bytes, value: bytes) -> bool:
    return HEADER_RE.search(name) is not None or HEADER_VALUE_RE.search(value) is not None
