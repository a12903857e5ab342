"""Transport over aiohttp: bytes up, bytes down, nothing added, nothing decoded."""

import asyncio
import select
import ssl
from collections.abc import AsyncIterator
from functools import lru_cache, partial
from typing import Final
from weakref import WeakKeyDictionary

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from yarl import URL

from proxy.errors import (
    BadRequest,
    ConnectFailed,
    StreamTruncated,
    UpstreamError,
    UpstreamTimeout,
)
from proxy.upstream.transport import (
    IDEMPOTENT,
    KEEPALIVE_SECONDS,
    PerLoop,
    UpstreamRequest,
    site,
)
from proxy.wire import Headers

READ_BYTES: Final = 256 * 1024
HEAD_BYTES: Final = 64 * 1024
SMALL_BYTES: Final = 64 * 1024
"""A body that one write hands to the kernel: nothing to watch."""
OWN_HEADERS: Final = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")


class AiohttpTransport:
    """The default transport: one connection pool without a limit."""

    def __init__(self, ssl_context: ssl.SSLContext | None = None) -> None:
        self._ssl = ssl_context
        self._sessions = PerLoop(self._open)
        self._watch = _Watch()

    def _open(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=_Connector(self._ssl),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            read_bufsize=READ_BYTES,
            max_line_size=HEAD_BYTES,
            max_field_size=HEAD_BYTES,
            skip_auto_headers=OWN_HEADERS,
            requote_redirect_url=False,
        )

    async def send(self, request: UpstreamRequest) -> "AiohttpResponse":
        try:
            if isinstance(request.body, bytes) and len(request.body) <= SMALL_BYTES:
                response = await self._ask(request, request.body or None)
            else:
                response = await self._upload(request)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise _failure(request, error) from None
        protocol = response.connection.protocol if response.connection else None
        if protocol is not None:
            self._watch.follow(protocol, response.content)
        return AiohttpResponse(response, protocol)

    async def _upload(self, request: UpstreamRequest) -> aiohttp.ClientResponse:
        upload = _Upload(request.body, request.idle_seconds)
        try:
            async with asyncio.timeout(None) as upload.clock:
                return await self._ask(request, upload.chunks())
        finally:
            upload.clock = None

    async def _ask(
        self, request: UpstreamRequest, data: bytes | AsyncIterator[bytes] | None
    ) -> aiohttp.ClientResponse:
        return await self._sessions.current().request(
            request.method,
            _url(request.url),
            headers=_text_headers(request),
            data=data,
            allow_redirects=False,
            timeout=_clock(request.connect_seconds, request.idle_seconds),
        )

    async def aclose(self) -> None:
        session = self._sessions.release()
        if session is not None:
            await session.close()


class AiohttpResponse:
    """An answer on an aiohttp connection."""

    __slots__ = ("_protocol", "_response", "headers", "status")

    def __init__(self, response: aiohttp.ClientResponse, protocol: ResponseHandler | None) -> None:
        self._response = response
        self._protocol = protocol
        self.status = response.status
        self.headers: Headers = list(response.raw_headers)

    async def chunks(self) -> AsyncIterator[bytes]:
        content = self._response.content
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
        return b"".join([chunk async for chunk in self.chunks()])

    def take_whole(self) -> bytes | None:
        """The body, when all of it is here and its own framing says so."""
        response = self._response
        content = response.content
        if not content.is_eof() or content.exception() is not None:
            return None
        framing = response.headers
        if "Content-Length" not in framing and "Transfer-Encoding" not in framing:
            return None
        return content.read_nowait()

    async def aclose(self) -> None:
        self._abort()

    def _abort(self) -> None:
        """Disconnect unless the answer was read to its end, when the pool has the connection."""
        connection = self._response.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()
        self._response.close()


class _Connector(aiohttp.TCPConnector):
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


class _Watch:
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


class _Upload:
    """Hands a body to aiohttp and watches that the upstream takes it.

    aiohttp has a clock for the answer only, and warns about bytes of more than a megabyte.
    """

    def __init__(self, body: bytes | AsyncIterator[bytes] | None, idle_seconds: float) -> None:
        self._body = body
        self._idle_seconds = idle_seconds
        self.clock: asyncio.Timeout | None = None

    def chunks(self) -> AsyncIterator[bytes] | None:
        if not self._body:
            return None
        return self._whole(self._body) if isinstance(self._body, bytes) else self._each(self._body)

    async def _whole(self, body: bytes) -> AsyncIterator[bytes]:
        self._expect_progress(self._idle_seconds)
        yield body
        self._expect_progress(None)

    async def _each(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in body:
            self._expect_progress(self._idle_seconds)
            yield chunk
            self._expect_progress(None)

    def _expect_progress(self, seconds: float | None) -> None:
        """Limit how long the upstream may take to accept a chunk; waiting for ours is free."""
        if self.clock is not None:
            now = asyncio.get_running_loop().time()
            self.clock.reschedule(None if seconds is None else now + seconds)


@lru_cache(maxsize=1024)
def _url(url: str) -> URL:
    """The URL as it is. Raises ValueError."""
    return URL(url, encoded=True)


@lru_cache
def _clock(connect_seconds: float, idle_seconds: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=None, connect=connect_seconds, sock_read=idle_seconds)


def _text_headers(request: UpstreamRequest) -> list[tuple[str, str]]:
    """The headers as aiohttp wants them; it writes UTF-8, so that is how bytes are read."""
    fields = request.headers
    if request.replayable:
        fields = [field for field in fields if field[0] != b"content-length"]
    try:
        headers = [(name.decode(), value.decode()) for name, value in fields]
    except UnicodeDecodeError:
        headers = [(name.decode("latin-1"), _text(value)) for name, value in fields]
    if isinstance(request.body, bytes) and request.body:
        headers.append(("content-length", str(len(request.body))))
    return headers


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _failure(request: UpstreamRequest, error: Exception) -> BaseException:
    """Name what went wrong before the head of an answer arrived."""
    where, kind = site(request.url), type(error).__name__
    match error:
        case aiohttp.ClientConnectorError() | aiohttp.ConnectionTimeoutError():
            return ConnectFailed(f"cannot connect to {where} ({kind})")
        case TimeoutError():
            return UpstreamTimeout(f"no answer from {where} within {request.idle_seconds:g} s")
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            return UpstreamError("the upstream's URL is not valid")
        case ValueError():
            return BadRequest("a request header or the path cannot be forwarded")
        case aiohttp.ClientResponseError():
            return UpstreamError(f"{where} did not answer in HTTP")
        case _ if type(error) is aiohttp.ClientConnectionError and error.__cause__ is not None:
            return error.__cause__  # the caller's own body iterator failed
        case _ if request.method in IDEMPOTENT:
            return ConnectFailed(f"{where} hung up before its answer ({kind})")
    return UpstreamError(f"{where} hung up without an answer ({kind})")
