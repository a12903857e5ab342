"""A connection's reads come in, put where the body stays; the body goes out, copied by nobody.

The parser and uvicorn copy each piece of a body twice, and to join the pieces takes a third time.
"""

import asyncio
from io import BytesIO
from typing import Protocol

from proxy.edge.heap import unwritten
from proxy.edge.watch import ClientGone

LARGEST_BYTES = 16 * 1024 * 1024
"""Announced lengths up to here are believed; memory that nothing was written to costs nothing."""


class Reader(Protocol):
    """The connection's own protocol, which steps aside while a body arrives."""

    def body_came(self) -> None:
        """Bytes of the body are here."""

    def body_ended(self) -> None:
        """The body is whole, and what follows is the reader's again."""

    def eof_received(self) -> bool | None: ...

    def connection_lost(self, exc: Exception | None) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...


class Fill(asyncio.BufferedProtocol):
    """Stands in for a reader until `length` bytes are together, of which `begun` are here."""

    def __init__(
        self, reader: Reader, loop: asyncio.AbstractEventLoop, begun: bytes, length: int
    ) -> None:
        self._reader = reader
        self._done: asyncio.Future[bytes | None] = loop.create_future()
        # What a BytesIO hands out at its end is the object that was filled, not a copy.
        self._body = BytesIO(unwritten(length))
        self._view = self._body.getbuffer()
        self._view[: len(begun)] = begun
        self._at = len(begun)

    async def wait(self) -> bytes:
        """The whole body. Raises ClientGone."""
        # Not as the future's exception: its traceback would hold what has come of the body.
        body = await self._done
        if body is None:
            raise ClientGone
        return body

    def get_buffer(self, _sizehint: int) -> memoryview:
        return self._view[self._at :]

    def buffer_updated(self, nbytes: int) -> None:
        self._reader.body_came()
        self._at += nbytes
        if self._at < len(self._view):
            return
        self._view.release()
        self._reader.body_ended()
        if not self._done.done():
            self._done.set_result(self._body.getvalue())

    def eof_received(self) -> bool | None:
        return self._reader.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._reader.connection_lost(exc)
        if not self._done.done():
            self._done.set_result(None)

    def pause_writing(self) -> None:
        self._reader.pause_writing()

    def resume_writing(self) -> None:
        self._reader.resume_writing()
