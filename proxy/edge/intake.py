"""The pieces of a body of unknown length come in as they are read; all of them go out at once.

What ASGI offers is a message per read: two copies of each piece and a turn of the event loop,
which for a body of megabytes is most of what it costs to receive.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from starlette.types import Scope

from proxy.edge.watch import ClientGone

CONNECTION = "usher.connection"
"""Where a scope names the connection that it came from; only our own server says so."""


class Connection(Protocol):
    """What a request may ask of its connection."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop that serves it: to ask asyncio for it takes a system call each time."""

    async def read_rest(self, begun: bytes, length: int | None, cap: int) -> bytes:
        """The body that is arriving and has begun, of the length that its head announced, if any.

        A result that is larger than `cap` bytes is not the whole. Raises ClientGone.
        """

    def watch(self, on_lost: Callable[[], None] | None) -> None:
        """Call that when the client goes, at once when it has gone; None calls nobody."""


class Intake:
    """Collects one body."""

    __slots__ = ("_done", "_pieces", "_room")

    def __init__(self, loop: asyncio.AbstractEventLoop, room: int) -> None:
        self._pieces: list[bytes] = []
        self._room = room
        self._done: asyncio.Future[bool] = loop.create_future()

    async def wait(self) -> list[bytes]:
        """The pieces, when there are no more or there is no room. Raises ClientGone."""
        # Not as the future's exception: its traceback would hold the pieces.
        if not await self._done:
            raise ClientGone
        return self._pieces

    def add(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._room -= len(piece)
        if self._room < 0:
            self.end()

    def end(self) -> None:
        if not self._done.done():
            self._done.set_result(True)

    def lose(self) -> None:
        """The client has gone."""
        if not self._done.done():
            self._done.set_result(False)


def connection_of(scope: Scope) -> Connection | None:
    """The connection of a request, when our own server reads it."""
    connection: Connection | None = scope.get(CONNECTION)
    return connection


def loop_of(scope: Scope) -> asyncio.AbstractEventLoop:
    """The loop that serves a request."""
    connection = connection_of(scope)
    return asyncio.get_running_loop() if connection is None else connection.loop
