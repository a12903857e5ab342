"""Requests ask for a connection; one of aiohttp's that is still good comes out, and is watched."""

import asyncio
import select
import ssl
from collections import deque
from functools import partial
from weakref import WeakKeyDictionary

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

from proxy.upstream.aiohttp_kept import Kept, watch_end
from proxy.upstream.request_head import Origin
from proxy.upstream.transport import KEEPALIVE_SECONDS

SWEEP_SECONDS = 1.0


class Connector(aiohttp.TCPConnector):
    """aiohttp's pool, and before it the connections that small requests keep.

    To give one back and take it out again costs aiohttp more than to read an answer. A kept
    connection is looked at before it is used again: the event loop may not have come round yet to
    an end that has already arrived.
    """

    def __init__(self, ssl_context: ssl.SSLContext | None) -> None:
        super().__init__(limit=0, keepalive_timeout=KEEPALIVE_SECONDS, ssl=ssl_context or True)
        self._kept: dict[Origin, deque[Kept]] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        self._used: WeakKeyDictionary[ResponseHandler, select.poll | None] = WeakKeyDictionary()

    def take(self, origin: Origin) -> Kept | None:
        """The newest kept connection to a place that is still good."""
        idle = self._kept.get(origin)
        before = self._loop.time() - KEEPALIVE_SECONDS
        while idle:
            kept = idle.pop()
            if kept.idle_since > before and kept.usable():
                return kept
            kept.close()
        return None

    def keep(self, origin: Origin, kept: Kept) -> None:
        """Keep a connection whose answer is whole, as long as others may follow on it."""
        if self.closed or kept.protocol.should_close or kept.unsent():
            kept.hang_up()
            return
        kept.idle_since = self._loop.time()
        self._kept.setdefault(origin, deque()).append(kept)
        if self._sweeper is None:
            self._sweeper = self._loop.call_later(SWEEP_SECONDS, self._sweep)

    async def close(self, *, abort_ssl: bool = False) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
        for idle in self._kept.values():
            for kept in idle:
                kept.close()
        self._kept.clear()
        await super().close(abort_ssl=abort_ssl)

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109  aiohttp's signature
    ) -> Connection:
        key = req.connection_key
        kept = self.take(Origin(key.is_ssl, key.host, key.port or 0))
        if kept is not None:
            kept.part()
            return kept.connection
        while True:
            connection = await super().connect(req, traces, timeout)
            protocol = connection.protocol
            if protocol is None:
                break
            if protocol not in self._used:
                self._used[protocol] = watch_end(connection.transport)
                break
            poll = self._used[protocol]
            # Only its end can be there on an idle connection, or garbage, read or unread.
            if not protocol.should_close and (poll is None or not poll.poll(0)):
                break
            connection.close()
        connection.add_callback(partial(_drop_unsent, connection))
        return connection

    def _sweep(self) -> None:
        """Hang up on what has been idle for too long, oldest first."""
        self._sweeper = None
        before = self._loop.time() - KEEPALIVE_SECONDS
        for origin, idle in list(self._kept.items()):
            while idle and (idle[0].idle_since <= before or not idle[0].protocol.is_connected()):
                idle.popleft().close()
            if not idle:
                del self._kept[origin]
        if self._kept:
            self._sweeper = self._loop.call_later(SWEEP_SECONDS, self._sweep)


def _drop_unsent(connection: Connection) -> None:
    """On release, keep no half-sent request alive: a close would wait until the rest is taken."""
    transport = connection.transport
    if transport is not None and transport.get_write_buffer_size():
        transport.abort()


class Watch:
    """Tells a body that its connection is gone.

    aiohttp closes a connection whose bytes are not HTTP any more, a broken chunk say, without a
    word to the body that is being read from it, and stops the clock: the reader would hang.
    """

    def __init__(self) -> None:
        self._reading: WeakKeyDictionary[ResponseHandler, aiohttp.StreamReader] = (
            WeakKeyDictionary()
        )

    def follow(self, protocol: ResponseHandler, content: aiohttp.StreamReader) -> None:
        known = protocol in self._reading
        self._reading[protocol] = content
        if known:
            return
        closed = protocol.closed
        if closed is None:
            self._break(protocol)
        else:
            closed.add_done_callback(partial(self._lose, protocol))

    def _lose(self, protocol: ResponseHandler, closed: asyncio.Future[None]) -> None:
        closed.exception()  # now it counts as seen; aiohttp reports it to the reader as well
        self._break(protocol)

    def _break(self, protocol: ResponseHandler) -> None:
        content = self._reading.pop(protocol, None)
        if content is not None and not content.is_eof() and content.exception() is None:
            content.set_exception(aiohttp.ClientPayloadError("the connection is gone"))
