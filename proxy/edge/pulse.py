"""The chunks of an event stream pass through; a comment line joins them when they pause."""

import asyncio
from collections.abc import Awaitable, Callable

PING = b": ping\n"
"""One line and no blank line: some SDKs fail on a comment that ends like an event."""
FRAME_ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r", PING)


class Pulse:
    """Writes chunks, and a ping after each `seconds` of silence, but never inside a frame.

    Costs a timer per stream and a clock reading per chunk; a task only while a ping is written.
    """

    def __init__(self, write: Callable[[bytes], Awaitable[None]], seconds: float) -> None:
        self._write = write
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._last_at = self._loop.time()
        self._last = PING
        self._writing = False
        self._ping: asyncio.Task[None] | None = None
        self._timer = self._loop.call_later(seconds, self._tick)

    async def write(self, chunk: bytes) -> None:
        if self._ping is not None:
            await self._ping
            self._ping = None
        await self._put(chunk)

    async def _put(self, chunk: bytes) -> None:
        self._writing = True
        await self._write(chunk)
        self._writing = False
        self._last = chunk
        self._last_at = self._loop.time()

    def stop(self) -> None:
        self._timer.cancel()
        if self._ping is not None:
            self._ping.cancel()

    def _tick(self) -> None:
        due_in = self._last_at + self._seconds - self._loop.time()
        if due_in > 0:
            self._timer = self._loop.call_later(due_in, self._tick)
            return
        self._timer = self._loop.call_later(self._seconds, self._tick)
        # A client that does not read needs no ping, and half a frame must not meet one.
        if not self._writing and self._last.endswith(FRAME_ENDS):
            # Not bare: it is held here, and ends with the stream.
            self._ping = self._loop.create_task(self._put(PING))
