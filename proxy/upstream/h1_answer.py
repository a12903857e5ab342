"""Pieces of an answer come in from its connection; chunks for whoever reads it go out."""

import asyncio
from collections import deque
from typing import Protocol

from proxy.errors import StreamTruncated, UpstreamError
from proxy.wire import Headers

HIGH_BYTES = 256 * 1024
"""What is kept for a slow reader before the upstream is asked to wait."""


class Source(Protocol):
    """The connection that an answer arrives on."""

    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def abort(self) -> None: ...


class Answer:
    """An answer whose head is here; read by one task."""

    __slots__ = (
        "_ended",
        "_error",
        "_kept",
        "_paused",
        "_size",
        "_source",
        "_waiter",
        "headers",
        "status",
    )

    def __init__(self, status: int, headers: Headers, source: Source) -> None:
        self.status = status
        self.headers = headers
        self._source: Source | None = source
        self._kept: deque[bytes] = deque()
        self._size = 0
        self._paused = False
        self._ended = False
        self._error: UpstreamError | None = None
        self._waiter: asyncio.Future[None] | None = None

    def feed(self, piece: bytes) -> None:
        """Bytes of the body, as one socket read brought them."""
        self._kept.append(piece)
        self._size += len(piece)
        if self._size > HIGH_BYTES and not self._paused and self._source is not None:
            self._paused = True
            self._source.pause()
        self._wake()

    def end(self) -> None:
        """The body is whole; the connection is no longer this answer's."""
        self._ended = True
        self._source = None
        self._wake()

    def fail(self, error: UpstreamError) -> None:
        """The body will not be whole; what has come of it can still be read."""
        self._error = error
        self._source = None
        self._wake()

    def chunks(self) -> "Answer":
        """One item per socket read. Raises StreamTruncated or UpstreamTimeout."""
        return self

    def __aiter__(self) -> "Answer":
        return self

    async def __anext__(self) -> bytes:
        if not self._kept:
            await self._more()
        piece = self._kept.popleft()
        self._size -= len(piece)
        if self._paused and self._size <= HIGH_BYTES // 2:
            self._paused = False
            if self._source is not None:
                self._source.resume()
        return piece

    async def read(self) -> bytes:
        """The rest of the body at once."""
        return b"".join([piece async for piece in self])

    def take_whole(self) -> bytes | None:
        """The body, when all of it is here."""
        if not self._ended:
            return None
        kept = self._kept
        whole = kept[0] if len(kept) == 1 else b"".join(kept)
        kept.clear()
        return whole

    async def aclose(self) -> None:
        """Let go; an upstream that is still answering is disconnected at once."""
        source = self._source
        if source is not None:
            self.fail(StreamTruncated("the answer was let go"))
            source.abort()
        self._kept.clear()

    async def _more(self) -> None:
        """Wait for a piece; StopAsyncIteration at the end."""
        while not self._kept:
            if self._ended:
                raise StopAsyncIteration
            if self._error is not None:
                raise self._error
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            except asyncio.CancelledError:
                await self.aclose()
                raise
            finally:
                self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
