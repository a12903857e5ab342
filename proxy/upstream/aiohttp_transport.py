"""Transport over aiohttp: bytes up, bytes down, nothing added, nothing decoded."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from functools import lru_cache, partial
from typing import Final

import aiohttp
from aiohttp.http import HttpProcessingError, RawResponseMessage
from yarl import URL

from proxy.errors import BadRequest, ConnectFailed, UpstreamError, UpstreamTimeout
from proxy.upstream.aiohttp_answer import AiohttpAnswer, Lent
from proxy.upstream.aiohttp_kept import HEAD_BYTES, READ_BYTES, Kept
from proxy.upstream.aiohttp_pool import Connector, Watch
from proxy.upstream.request_head import Origin, locate, render_head
from proxy.upstream.transport import IDEMPOTENT, PerLoop, UpstreamRequest, site

SMALL_BYTES: Final = 64 * 1024
"""A body that one write hands to the kernel: nothing to watch."""
_FINAL: Final = 200
_SWITCHING: Final = 101
OWN_HEADERS: Final = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")


class _Local:
    """What belongs to one event loop."""

    def __init__(self, ssl_context: ssl.SSLContext | None) -> None:
        self.loop = asyncio.get_running_loop()
        self.connector = Connector(ssl_context)
        self.session = aiohttp.ClientSession(
            connector=self.connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            read_bufsize=READ_BYTES,
            max_line_size=HEAD_BYTES,
            max_field_size=HEAD_BYTES,
            skip_auto_headers=OWN_HEADERS,
            requote_redirect_url=False,
        )
        self._ways: dict[Origin, aiohttp.ClientRequest] = {}

    async def dial(self, origin: Origin, request: UpstreamRequest) -> Kept:
        """A connection that is not kept yet; aiohttp wants a request of its own to tell where."""
        way = self._ways.get(origin)
        if way is None:
            url = _url(request.url)
            way = self._ways[origin] = aiohttp.ClientRequest("GET", url, loop=self.loop)
        clock = _clock(request.connect_seconds, request.idle_seconds)
        try:
            connection = await self.connector.connect(way, [], clock)
        except TimeoutError:
            raise aiohttp.ConnectionTimeoutError from None
        if connection.protocol is None:
            raise aiohttp.ServerDisconnectedError
        return Kept(connection, connection.protocol, self.loop)


class AiohttpTransport:
    """The default transport: one connection pool without a limit."""

    def __init__(self, ssl_context: ssl.SSLContext | None = None) -> None:
        self._ssl = ssl_context
        self._locals = PerLoop(lambda: _Local(self._ssl))
        self._watch = Watch()

    async def send(self, request: UpstreamRequest) -> AiohttpAnswer:
        """Return once the head of the answer is here. Raises as Transport says."""
        try:
            if _fits_one_write(request):
                return await self._ask(request)
            return await self._upload(request)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise _failure(request, error) from None

    async def aclose(self) -> None:
        """Close the connections that the running event loop owns."""
        local = self._locals.release()
        if local is not None:
            await local.session.close()

    async def _ask(self, request: UpstreamRequest) -> AiohttpAnswer:
        """Write a small request on a connection of the pool, and read its answer, by aiohttp.

        aiohttp's own way up makes a request, a response, a writer and a task for each, which is
        two thirds of what it costs; from the socket to the parser all is aiohttp's.
        """
        place = locate(request.url)
        head = render_head(request, place)
        local = self._locals.current()
        kept = local.connector.take(place.origin) or await local.dial(place.origin, request)
        try:
            message, content = await _exchange(kept, head, request)
        except BaseException:
            kept.hang_up()
            raise
        lent = Lent(kept, partial(local.connector.keep, place.origin))
        if not content.is_eof():
            self._watch.follow(kept.protocol, content)
        content.on_eof(lent.end)
        found = message.code, list(message.raw_headers), message.headers
        return AiohttpAnswer(found, content, kept.protocol, lent, lent)

    async def _upload(self, request: UpstreamRequest) -> AiohttpAnswer:
        """Send a large body, or one that is still coming, by aiohttp alone."""
        upload = _Upload(request.body, request.idle_seconds)
        try:
            async with asyncio.timeout(None) as upload.clock:
                response = await self._locals.current().session.request(
                    request.method,
                    _url(request.url),
                    headers=_text_headers(request),
                    data=upload.chunks(),
                    allow_redirects=False,
                    timeout=_clock(request.connect_seconds, request.idle_seconds),
                )
        finally:
            upload.clock = None
        protocol = response.connection.protocol if response.connection else None
        if protocol is not None:
            self._watch.follow(protocol, response.content)
        found = response.status, list(response.raw_headers), response.headers
        return AiohttpAnswer(found, response.content, protocol, response)


async def _exchange(
    kept: Kept, head: bytes, request: UpstreamRequest
) -> tuple[RawResponseMessage, aiohttp.StreamReader]:
    """Send a request and return with the head of its answer; what is announced first is skipped."""
    protocol = kept.protocol
    if protocol.transport is None:
        raise aiohttp.ServerDisconnectedError
    kept.expect(body=request.method != "HEAD")
    protocol.transport.write(head + request.body if isinstance(request.body, bytes) else head)
    kept.begin(request.idle_seconds)
    while True:
        try:
            message, content = await protocol.read()
        except HttpProcessingError:
            raise UpstreamError(f"{site(request.url)} did not answer in HTTP") from None
        if message.code >= _FINAL or message.code == _SWITCHING:
            kept.heard()
            return message, content


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


def _fits_one_write(request: UpstreamRequest) -> bool:
    """Whether nothing has to be watched while it goes up; a login in the URL is aiohttp's part."""
    body = request.body
    small = body is None or (isinstance(body, bytes) and len(body) <= SMALL_BYTES)
    return small and "@" not in request.url


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
