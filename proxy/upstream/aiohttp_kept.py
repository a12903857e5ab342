"""A connection of aiohttp's comes in; one request after the other goes out on it, on one clock."""

import asyncio
import select
from typing import Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection

GRACE_SECONDS = 0.05
READ_BYTES: Final = 256 * 1024
HEAD_BYTES: Final = 64 * 1024


class Kept:
    """A connection between two requests, or for the time of one.

    aiohttp sets and cancels a timer for each read. Here one timer serves all requests of a
    connection: it looks now and then for how long there was no byte although one was waited for.
    """

    __slots__ = (
        "_content",
        "_idle_seconds",
        "_loop",
        "_parses_body",
        "_poll",
        "_since",
        "_timer",
        "_waiting",
        "connection",
        "idle_since",
        "protocol",
    )

    def __init__(
        self, connection: Connection, protocol: ResponseHandler, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._loop = loop
        self.connection = connection
        self.protocol = protocol
        self.idle_since = 0.0
        self._poll = watch_end(connection.transport)
        self._timer: asyncio.TimerHandle | None = None
        self._idle_seconds = 0.0
        self._since = 0.0
        self._waiting = False
        self._parses_body: bool | None = None
        # aiohttp says so with each read, for a clock of its own, which is off.
        protocol._reschedule_timeout = self._touch  # type: ignore[method-assign]  # noqa: SLF001 - told, not asked
        self._content: aiohttp.StreamReader | None = None

    def expect(self, *, body: bool) -> None:
        """Have the next answer parsed, by the parser of the one before if that does."""
        if self._parses_body is body:
            return
        self._parses_body = body
        self.protocol.set_response_params(
            skip_payload=not body,
            read_until_eof=True,
            auto_decompress=False,
            read_bufsize=READ_BYTES,
            max_line_size=HEAD_BYTES,
            max_field_size=HEAD_BYTES,
        )

    def usable(self) -> bool:
        """Whether another request may go out; only its end can be there to read, or garbage."""
        protocol = self.protocol
        if protocol.should_close or not protocol.is_connected():
            return False
        return self._poll is None or not self._poll.poll(0)

    def unsent(self) -> int:
        """Bytes of a request that the upstream has not taken."""
        transport = self.connection.transport
        return 0 if transport is None else transport.get_write_buffer_size()

    def begin(self, idle_seconds: float) -> None:
        """A request is sent: the upstream may be quiet for so long, now and inside its answer."""
        if idle_seconds != self._idle_seconds:
            self.stop()
        self._idle_seconds = idle_seconds
        self._content = None
        self.wait()

    def wait(self, content: aiohttp.StreamReader | None = None) -> None:
        """From now on something is expected: the head of an answer, or more of its content."""
        self._content = content
        self._waiting = True
        self._since = self._loop.time()
        if self._timer is None and self._idle_seconds:
            self._timer = self._loop.call_later(self._idle_seconds, self._look)

    def heard(self) -> None:
        """It came, and the reader has something to do."""
        self._waiting = False

    def stop(self) -> None:
        """Stop the clock."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def part(self) -> None:
        """Leave the connection to aiohttp and its clock."""
        self.stop()
        self.protocol.__dict__.pop("_reschedule_timeout", None)

    def close(self) -> None:
        """Leave the connection, which carries nothing."""
        self.part()
        self.connection.close()

    def hang_up(self) -> None:
        """Disconnect at once, whatever is on its way."""
        transport = self.connection.transport
        if transport is not None:
            transport.abort()
        self.close()

    def _touch(self) -> None:
        self._since = self._loop.time()

    def _look(self) -> None:
        self._timer = None
        if not self._waiting:
            return
        left = self._since + self._idle_seconds - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._look)
        else:
            # If it is the event loop that was held up, the bytes are there already.
            self._timer = self._loop.call_later(GRACE_SECONDS, self._fail, self._since)

    def _fail(self, since: float) -> None:
        self._timer = None
        if not self._waiting or self._since != since:
            self._look()
            return
        error = aiohttp.SocketTimeoutError("the upstream went quiet")
        self.protocol.set_exception(error)
        if self._content is not None:
            self._content.set_exception(error)


def watch_end(transport: asyncio.Transport | None) -> "select.poll | None":
    """What tells whether a connection can be read; None where the system has no such call."""
    if transport is None or not hasattr(select, "poll"):
        return None
    poll = select.poll()
    poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN)
    return poll
