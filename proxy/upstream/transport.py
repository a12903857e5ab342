"""The seam to an upstream: a request of bytes goes out; status, raw headers, chunks come back."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Final, Generic, Protocol, TypeVar
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import msgspec

from proxy.errors import UpstreamError
from proxy.wire import Headers

IDEMPOTENT: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})
"""Methods that may be sent twice without doing anything twice (RFC 9110 §9.2.2)."""

KEEPALIVE_SECONDS: Final = 4.0
"""How long an idle connection is kept: uvicorn and Node hang up after 5 s, and a request that
meets their hang-up half-way may not be repeated, so we hang up first."""

T = TypeVar("T")


class UpstreamRequest(msgspec.Struct, frozen=True):
    """What goes up; a body that is an iterator can be sent once only.

    `url` is sent byte for byte, and `headers` are all there are besides Host and the framing.
    """

    method: str
    url: str
    headers: Headers
    body: bytes | AsyncIterator[bytes] | None
    connect_seconds: float
    idle_seconds: float

    @property
    def replayable(self) -> bool:
        """Whether the body can be sent a second time."""
        return self.body is None or isinstance(self.body, bytes)


class UpstreamResponse(Protocol):
    """An answer whose head has arrived; its body is still on the wire."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Headers:
        """Raw, in wire order; the body is not decompressed."""

    def chunks(self) -> AsyncIterator[bytes]:
        """One item per socket read. Raises StreamTruncated or UpstreamTimeout."""

    async def read(self) -> bytes:
        """Return the rest of the body at once. Raises as `chunks` does."""

    async def aclose(self) -> None:
        """Let go; an upstream that is still answering is disconnected at once."""


class Transport(Protocol):
    """A way to reach upstreams, shared by the whole process."""

    async def send(self, request: UpstreamRequest) -> UpstreamResponse:
        """Return once the head of the answer is here.

        Raises ConnectFailed when a repeat is safe, UpstreamTimeout or UpstreamError otherwise. It
        is safe when no connection was made, and after a hang-up without a word for IDEMPOTENT
        methods. A POST on a kept connection that ends under it is not: the upstream may have read
        it (RFC 9110 §9.2.2). Connections whose end has been seen are not used in the first place.
        """

    async def aclose(self) -> None:
        """Close the connections that the running event loop owns."""


def take_whole(response: UpstreamResponse) -> bytes | None:
    """The body, when a transport that can tell has all of it already; then it is read."""
    take = getattr(response, "take_whole", None)
    whole: bytes | None = take() if take is not None else None
    return whole


class Prepared:
    """A response made in this process, for transports without a socket."""

    def __init__(
        self, status: int, headers: Headers, body: bytes | AsyncIterator[bytes] = b""
    ) -> None:
        self.status = status
        self.headers = headers
        self._body = body

    async def chunks(self) -> AsyncIterator[bytes]:
        if isinstance(self._body, bytes):
            if self._body:
                yield self._body
            return
        async for chunk in self._body:
            yield chunk

    async def read(self) -> bytes:
        return b"".join([chunk async for chunk in self.chunks()])

    async def aclose(self) -> None:
        close = getattr(self._body, "aclose", None)
        if close is not None:
            await close()


class PerLoop(Generic[T]):
    """One lazily opened object per event loop: sockets belong to the loop that made them."""

    def __init__(self, opener: Callable[[], T]) -> None:
        self._open = opener
        self._held: WeakKeyDictionary[asyncio.AbstractEventLoop, T] = WeakKeyDictionary()
        self._latest: tuple[int, asyncio.AbstractEventLoop, T] | None = None

    def current(self) -> T:
        latest = self._latest
        # Asking for the running loop is a system call; a loop that runs in this thread is it.
        if latest is not None and latest[0] == threading.get_ident() and latest[1].is_running():
            return latest[2]
        loop = asyncio.get_running_loop()
        held = self._held.get(loop)
        if held is None:
            held = self._held[loop] = self._open()
        self._latest = (threading.get_ident(), loop, held)
        return held

    def release(self) -> T | None:
        """Hand out the running loop's object for closing; the next `current` opens a new one."""
        self._latest = None
        return self._held.pop(asyncio.get_running_loop(), None)


def site(url: str) -> str:
    """The part of an URL that may appear in a message: no user, no query."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise UpstreamError("the upstream's URL is not valid") from None
    return f"{host}:{port}" if port else str(host)
