"""An answer on one of aiohttp's connections comes in; its status, headers and chunks go out."""

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection

from proxy.errors import StreamTruncated, UpstreamTimeout
from proxy.wire import Headers


class Hold(Protocol):
    """Who keeps the connection for as long as the answer is on it; aiohttp's own answer is one."""

    @property
    def connection(self) -> Connection | None:
        """None when the answer is whole and the pool has the connection."""

    def close(self) -> None:
        """Let go; a connection that is still held is hung up."""


class Lent:
    """A connection that goes back to the pool when the answer on it is whole."""

    __slots__ = ("connection",)

    def __init__(self, connection: Connection) -> None:
        self.connection: Connection | None = connection

    def end(self) -> None:
        """The answer is whole. A connection that speaks something else from now on is kept."""
        connection = self.connection
        if connection is None or (connection.protocol is not None and connection.protocol.upgraded):
            return
        self.connection = None
        connection.release()

    def close(self) -> None:
        """Hang up, unless the answer was whole."""
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()


class AiohttpAnswer:
    """An answer whose head is here."""

    __slots__ = ("_content", "_framing", "_hold", "_protocol", "headers", "status")

    def __init__(
        self,
        head: tuple[int, Headers, Mapping[str, str]],
        content: aiohttp.StreamReader,
        protocol: ResponseHandler | None,
        hold: Hold,
    ) -> None:
        self.status, self.headers, self._framing = head
        self._content = content
        self._protocol = protocol
        self._hold = hold

    async def chunks(self) -> AsyncIterator[bytes]:
        """One item per socket read. Raises StreamTruncated or UpstreamTimeout."""
        content = self._content
        try:
            while chunk := await content.readany():
                yield chunk
            if self._protocol is not None and isinstance(self._protocol.exception(), OSError):
                # Without a length or chunks an answer ends with the connection, and aiohttp
                # lets a reset pass for that end.
                raise StreamTruncated("the upstream reset the connection inside its answer")
        except TimeoutError:
            raise UpstreamTimeout("the upstream went quiet inside its answer") from None
        except aiohttp.ClientError as error:
            raise StreamTruncated(
                f"the upstream's answer ended early ({type(error).__name__})"
            ) from None
        finally:
            self._abort()

    async def read(self) -> bytes:
        """The rest of the body at once. Raises as `chunks` does."""
        return b"".join([chunk async for chunk in self.chunks()])

    def take_whole(self) -> bytes | None:
        """The body, when all of it is here and its own framing says so."""
        content, framing = self._content, self._framing
        if not content.is_eof() or content.exception() is not None:
            return None
        if "Content-Length" not in framing and "Transfer-Encoding" not in framing:
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
