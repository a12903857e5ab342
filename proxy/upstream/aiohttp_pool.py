"""Requests ask for a connection; one of aiohttp's that is still good comes out, and is watched."""

import asyncio
import select
import ssl
from functools import partial
from weakref import WeakKeyDictionary

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

from proxy.upstream.transport import KEEPALIVE_SECONDS


class Connector(aiohttp.TCPConnector):
    """A pool that looks at a kept connection before it is used again.

    The event loop may not have come round yet to an end that has already arrived.
    """

    def __init__(self, ssl_context: ssl.SSLContext | None) -> None:
        super().__init__(limit=0, keepalive_timeout=KEEPALIVE_SECONDS, ssl=ssl_context or True)
        self._used: WeakKeyDictionary[ResponseHandler, select.poll | None] = WeakKeyDictionary()

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109  aiohttp's signature
    ) -> Connection:
        while True:
            connection = await super().connect(req, traces, timeout)
            protocol = connection.protocol
            if protocol is None:
                break
            if protocol not in self._used:
                self._used[protocol] = _watch_end(connection.transport)
                break
            poll = self._used[protocol]
            # Only its end can be there on an idle connection, or garbage.
            if poll is None or not poll.poll(0):
                break
            connection.close()
        connection.add_callback(partial(_drop_unsent, connection))
        return connection


def _drop_unsent(connection: Connection) -> None:
    """On release, keep no half-sent request alive: a close would wait until the rest is taken."""
    transport = connection.transport
    if transport is not None and transport.get_write_buffer_size():
        transport.abort()


def _watch_end(transport: asyncio.Transport | None) -> "select.poll | None":
    """What tells whether a connection can be read; None where the system has no such call."""
    if transport is None or not hasattr(select, "poll"):
        return None
    poll = select.poll()
    poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN)
    return poll


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
