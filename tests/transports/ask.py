"""Requests for the tests of this folder."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from proxy.errors import UpstreamError
from proxy.upstream.transport import Transport, UpstreamRequest
from proxy.wire import Headers

FIELDS: Headers = [
    (b"content-type", b"application/json"),
    (b"x-stainless-lang", b"python"),
    (b"x-twice", b"1"),
    (b"x-twice", "ü".encode()),
]


def post(
    url: str,
    body: bytes | AsyncIterator[bytes] | None = b'{"a": 1}',
    *,
    method: str = "POST",
    headers: Headers | None = None,
    idle: float = 5.0,
) -> UpstreamRequest:
    fields = FIELDS if headers is None else headers
    return UpstreamRequest(method, url, fields, body, connect_seconds=2.0, idle_seconds=idle)


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
        await asyncio.sleep(0)


async def read_error(transport: Transport, request: UpstreamRequest) -> tuple[bytes, UpstreamError]:
    """What arrived of a body that does not end well, and the error it ended with."""
    response = await transport.send(request)
    got = b""
    try:
        async for piece in response.chunks():
            got += piece
    except UpstreamError as error:
        return got, error
    pytest.fail(f"the body ended as if it were whole: {got!r}")
