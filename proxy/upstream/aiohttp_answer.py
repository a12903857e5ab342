"""An answer on one of aiohttp's connections comes in; its status, headers and chunks go out."""

from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Protocol

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection

from proxy.errors import StreamTruncated, UpstreamTimeout
from proxy.upstream.aiohttp_kept import Kept
from proxy.wire import Headers


class Hold(Protocol):
    """Who keeps the connection for as long as the answer is on it; aiohttp's own answer is one."""

    @property
    def connection(self) -> Connection | None:
        """None when the answer is whole and the pool has the connection."""

    def close(self) -> None:
        """Let go; a connection that is still held is hung up."""


class Clock(Protocol):
    """Who limits how long the upstream may be quiet inside its answer."""

    def wait(self, content: aiohttp.StreamReader) -> None:
        """More is expected from now on."""

    def heard(self) -> None:
        """It is here."""


class Lent:
    """A kept connection, until the answer on it is whole; then `give_back` gets it."""

    __slots__ = ("_give_back", "_kept")

    def __init__(self, kept: Kept, give_back: Callable[[Kept], None]) -> None:
        self._kept: Kept | None = kept
        self._give_back = give_back

    @property
    def connection(self) -> Connection | None:
        return None if self._kept is None else self._kept.connection

    def wait(self, content: aiohttp.StreamReader) -> None:
        if self._kept is not None:
            self._kept.wait(content)

    def heard(self) -> None:
        if self._kept is not None:
            self._kept.heard()

    def end(self) -> None:
        """The answer is whole. A connection that speaks something else is hung up later."""
        kept = self._kept
        if kept is None or kept.protocol.upgraded:
            return
        kept.heard()
        self._kept = None
        self._give_back(kept)

    def close(self) -> None:
        """Hang up, unless the answer was whole."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.hang_up()


class AiohttpAnswer:
    """An answer whose head is here."""

    __slots__ = ("_clock", "_content", "_framed", "_hold", "_protocol", "headers", "status")

    def __init__(
        self,
        head: tuple[int, Headers, Mapping[str, str]],
        content: aiohttp.StreamReader,
        protocol: ResponseHandler | None,
        hold: Hold,
        clock: Clock | None = None,
    ) -> None:
        self.status, self.headers, framing = head
        self._framed = "Content-Length" in framing or "Transfer-Encoding" in framing
        self._content = content
        self._protocol = protocol
        self._hold = hold
        self._clock = clock

    async def chunks(self) -> AsyncIterator[bytes]:
        """One item per socket read. Raises StreamTruncated or UpstreamTimeout."""
        try:
            while chunk := await self._next():
                yield chunk
            if not self._framed and isinstance(self._error(), OSError):
                # Without a length or chunks an answer ends with the connection, and aiohttp
                # lets a reset pass for that end. Of a framed one the connection may be another's.
                raise StreamTruncated("the upstream reset the connection inside its answer")
        except TimeoutError:
            raise UpstreamTimeout("the upstream went quiet inside its answer") from None
        except aiohttp.ClientError as error:
            raise StreamTruncated(
                f"the upstream's answer ended early ({type(error).__name__})"
            ) from None
        finally:
            self._abort()

    def _error(self) -> BaseException | None:
        return None if self._protocol is None else self._protocol.exception()

    async def _next(self) -> bytes:
        if self._clock is None:
            return await _read_some(self._content)
        self._clock.wait(self._content)
        try:
            return await _read_some(self._content)
        finally:
            self._clock.heard()

    async def read(self) -> bytes:
        """The rest of the body at once. Raises as `chunks` does."""
        return b"".join([chunk async for chunk in self.chunks()])

    def take_whole(self) -> bytes | None:
        """The body, when all of it is here and its own framing says so."""
        content = self._content
        if not self._framed or not content.is_eof() or content.exception() is not None:
            return None
        return content.read_nowait()

    async def aclose(self) -> None:
        """Let go; an upstream that is still answering is disconnected at once."""
        self._abort()

    def _abort(self) -> None:
        """Disconnect unless the answer was read to its end, when the pool has the connection."""
        connection = self._hold.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()
        self._hold.close()


async def _read_some(content: aiohttp.StreamReader) -> bytes:
    """What is there, or comes next; empty at the end.

    The same as `readany`, which for each HTTP chunk asks aiohttp's parser to go on: half of what
    it takes to read a stream. So chunks that came together are made one before it sees them.
    """
    waiting: deque[bytes] | None = getattr(content, "_buffer", None)
    if waiting is None:
        return await content.readany()
    while not waiting and not content.is_eof() and content.exception() is None:
        await content._wait("readany")  # noqa: SLF001 - `readany` would read at once
    if len(waiting) > 1:
        whole = b"".join(waiting)
        waiting.clear()
        waiting.append(whole)
    return await content.readany()
