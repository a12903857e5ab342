"""Transport over httpx: the same behaviour, with HTTP/2, proxies from the environment and vcrpy."""

import re
import ssl
from collections.abc import AsyncIterator
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final

import httpx

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

NO_LIMIT: Final = httpx.Limits(
    max_connections=None, max_keepalive_connections=None, keepalive_expiry=KEEPALIVE_SECONDS
)


class HttpxTransport:
    """The second transport; it takes six to ten times the CPU of aiohttp per request."""

    def __init__(self, ssl_context: ssl.SSLContext | None = None) -> None:
        self._ssl = ssl_context
        self._clients = PerLoop(self._open)

    def _open(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            verify=self._ssl or ssl.create_default_context(),
            http2=True,
            limits=NO_LIMIT,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        )

    async def send(self, request: UpstreamRequest) -> "HttpxResponse":
        client = self._clients.current()
        try:
            response = await client.send(_build(request), stream=True, follow_redirects=False)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise _failure(request, error) from None
        return HttpxResponse(response)

    async def aclose(self) -> None:
        client = self._clients.release()
        if client is not None:
            await client.aclose()


class HttpxResponse:
    """An answer on an httpx connection."""

    __slots__ = ("_response", "headers", "status")

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self.status = response.status_code
        self.headers: Headers = response.headers.raw

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._response.aiter_raw():
                yield chunk
        except httpx.TimeoutException:
            raise UpstreamTimeout("the upstream went quiet inside its answer") from None
        except httpx.TransportError as error:
            raise StreamTruncated(
                f"the upstream's answer ended early ({type(error).__name__})"
            ) from None
        finally:
            await self._response.aclose()

    async def read(self) -> bytes:
        return b"".join([chunk async for chunk in self.chunks()])

    async def aclose(self) -> None:
        await self._response.aclose()


class _ExactURL(httpx.URL):
    """A URL whose path and query go out as they were written; httpx would quote them anew."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        rest = url.partition("://")[2].partition("#")[0]
        target = rest[len(re.split("[/?]", rest, maxsplit=1)[0]) :]
        self._target = (target if target.startswith("/") else f"/{target}").encode()

    @property
    def raw_path(self) -> bytes:
        return self._target


def _build(request: UpstreamRequest) -> httpx.Request:
    """An httpx request without any of its client's headers."""
    headers = request.headers
    if request.replayable:
        headers = [field for field in headers if field[0] != b"content-length"]
    built = httpx.Request(
        request.method,
        request.url,
        headers=headers,
        content=request.body or None,
        extensions={
            "timeout": {
                "connect": request.connect_seconds,
                "read": request.idle_seconds,
                "write": request.idle_seconds,
                "pool": None,
            },
        },
    )
    built.url = _ExactURL(request.url)
    return built


def _failure(request: UpstreamRequest, error: Exception) -> Exception:
    """Name what went wrong before the head of an answer arrived."""
    where, kind = site(request.url), type(error).__name__
    match error:
        case httpx.ConnectError() | httpx.ConnectTimeout() | httpx.ProxyError():
            return ConnectFailed(f"cannot connect to {where} ({kind})")
        case httpx.TimeoutException():
            return UpstreamTimeout(f"no answer from {where} within {request.idle_seconds:g} s")
        case httpx.InvalidURL() | httpx.UnsupportedProtocol():
            return UpstreamError("the upstream's URL is not valid")
        case httpx.LocalProtocolError() | ValueError():
            return BadRequest("a request header or the path cannot be forwarded")
        case _ if request.method in IDEMPOTENT:
            return ConnectFailed(f"{where} hung up before its answer ({kind})")
    return UpstreamError(f"{where} hung up without an answer ({kind})")
