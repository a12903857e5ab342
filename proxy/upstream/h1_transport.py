"""Transport over a small HTTP/1.1 client of our own, for the least work per request."""

import asyncio
import ssl
from collections import deque

from proxy.errors import ConnectFailed, UpstreamError
from proxy.upstream.h1_answer import Answer
from proxy.upstream.h1_connection import Connection, HungUp
from proxy.upstream.h1_head import Origin, locate, render_head
from proxy.upstream.transport import (
    IDEMPOTENT,
    KEEPALIVE_SECONDS,
    PerLoop,
    UpstreamRequest,
    site,
)

SWEEP_SECONDS = 1.0


class Pool:
    """The connections of one event loop; the newest idle one is used first."""

    def __init__(self, ssl_context: ssl.SSLContext | None) -> None:
        self._ssl = ssl_context
        self._loop = asyncio.get_running_loop()
        self._idle: dict[Origin, deque[Connection]] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        self._closed = False

    def take(self, origin: Origin) -> Connection | None:
        """An idle connection that is still good."""
        idle = self._idle.get(origin)
        while idle:
            connection = idle.pop()
            fresh = self._loop.time() - connection.idle_since < KEEPALIVE_SECONDS
            if fresh and not connection.closed and not connection.has_news():
                return connection
            connection.abort()
        return None

    async def dial(self, origin: Origin) -> Connection:
        """A new connection. Raises OSError or TimeoutError."""
        _, connection = await self._loop.create_connection(
            lambda: Connection(lambda one: self._keep(origin, one)),
            origin.host,
            origin.port,
            ssl=self._context() if origin.secure else None,
        )
        return connection

    def close(self) -> None:
        """Disconnect all."""
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        for idle in self._idle.values():
            for connection in idle:
                connection.abort()
        self._idle.clear()

    def _context(self) -> ssl.SSLContext:
        if self._ssl is None:
            self._ssl = ssl.create_default_context()
            self._ssl.set_alpn_protocols(["http/1.1"])
        return self._ssl

    def _keep(self, origin: Origin, connection: Connection) -> None:
        if self._closed:
            connection.abort()
            return
        connection.idle_since = self._loop.time()
        self._idle.setdefault(origin, deque()).append(connection)
        if self._sweeper is None:
            self._sweeper = self._loop.call_later(SWEEP_SECONDS, self._sweep)

    def _sweep(self) -> None:
        """Hang up on what has been idle for too long, oldest first."""
        self._sweeper = None
        before = self._loop.time() - KEEPALIVE_SECONDS
        for origin, idle in list(self._idle.items()):
            while idle and (idle[0].closed or idle[0].idle_since <= before):
                idle.popleft().abort()
            if not idle:
                del self._idle[origin]
        if self._idle:
            self._sweeper = self._loop.call_later(SWEEP_SECONDS, self._sweep)


class H1Transport:
    """HTTP/1.1 over TCP or TLS: no proxies, no HTTP/2."""

    def __init__(self, ssl_context: ssl.SSLContext | None = None) -> None:
        self._pools = PerLoop(lambda: Pool(ssl_context))

    async def send(self, request: UpstreamRequest) -> Answer:
        """Return once the head of the answer is here. Raises as Transport says."""
        place = locate(request.url)
        head = render_head(request, place)
        pool = self._pools.current()
        connection = pool.take(place.origin)
        if connection is None:
            connection = await _dial(pool, place.origin, request)
        try:
            return await connection.ask(head, request.body or None, request.idle_seconds)
        except HungUp:
            where = site(request.url)
            if request.method in IDEMPOTENT:
                raise ConnectFailed(f"{where} hung up before its answer") from None
            raise UpstreamError(f"{where} hung up without an answer") from None

    async def aclose(self) -> None:
        """Close the connections that the running event loop owns."""
        pool = self._pools.release()
        if pool is not None:
            pool.close()


async def _dial(pool: Pool, origin: Origin, request: UpstreamRequest) -> Connection:
    try:
        async with asyncio.timeout(request.connect_seconds):
            return await pool.dial(origin)
    except (OSError, UnicodeError) as error:  # TimeoutError is an OSError
        kind = type(error).__name__
        raise ConnectFailed(f"cannot connect to {site(request.url)} ({kind})") from None
