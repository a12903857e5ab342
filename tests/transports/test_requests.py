"""What goes up is what the caller gave, whatever library carries it."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from proxy.errors import BadRequest, BodyTooLarge, UpstreamError
from proxy.upstream.transport import Transport
from tests.fakes.scripted import EARLY, HANG, ScriptedUpstream, head, json_reply
from tests.transports.ask import pieces, post

pytestmark = pytest.mark.anyio


async def test_request_goes_up_byte_for_byte(transport: Transport) -> None:
    """The upstream sees our headers, Host and the length, and nothing that a library adds."""
    async with ScriptedUpstream([json_reply(b"{}")]) as upstream:
        response = await transport.send(post(upstream.url + "/v1/chat/completions"))
        assert (response.status, await response.read()) == (200, b"{}")
    [got] = upstream.requests
    names = [name.lower() for name, _ in got.headers]
    assert sorted(names) == [
        "content-length",
        "content-type",
        "host",
        "x-stainless-lang",
        "x-twice",
        "x-twice",
    ]
    assert got.header("host") == f"127.0.0.1:{upstream.port}"
    assert b"x-twice: 1\r\nx-twice: \xc3\xbc\r\n" in got.raw
    assert got.raw.endswith(b'\r\n\r\n{"a": 1}')


@pytest.mark.parametrize(
    "target",
    [
        "/v1/files?after=a%2Fb&include[]=x&include[]=y",
        "/v1/files/a%20b%2Fc/content",
        "/v1/x?q={\"a\":'<b>'}&e=%C3%A4+|^`",
        "/v1//double///slash/",
        "/v1/x?a=b?c=/d",
        "/v1/x;p=1,2:3@$!*()'",
    ],
)
async def test_path_and_query_are_byte_exact(transport: Transport, target: str) -> None:
    """Escapes, brackets and odd characters arrive as the client wrote them."""
    async with ScriptedUpstream([json_reply(b"{}")]) as upstream:
        await (await transport.send(post(upstream.url + target, None, method="GET"))).read()
    assert upstream.requests[0].target == target


@pytest.mark.parametrize("query", ["", "?x=1"])
async def test_url_without_a_path_asks_for_the_root(transport: Transport, query: str) -> None:
    """An origin alone is the path `/`."""
    async with ScriptedUpstream([json_reply(b"{}")]) as upstream:
        await (await transport.send(post(upstream.url + query, None, method="GET"))).read()
    assert upstream.requests[0].target == "/" + query


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "OPTIONS", "POST", "PATCH", "PUT"])
async def test_every_method_goes_without_a_body(transport: Transport, method: str) -> None:
    """A request without a body has none on the wire, whatever its method."""
    async with ScriptedUpstream([head(204)]) as upstream:
        response = await transport.send(post(upstream.url, None, method=method, headers=[]))
        assert (response.status, await response.read()) == (204, b"")
    [got] = upstream.requests
    assert (got.method, got.body) == (method, b"")
    assert got.header("content-length") in {None, "0"}
    assert got.header("transfer-encoding") is None


async def test_iterator_body_is_chunked(transport: Transport) -> None:
    """A streamed body without a known length goes up in chunks."""
    async with ScriptedUpstream([json_reply(b"{}")]) as upstream:
        body = pieces(b"one,", b"two,", b"\x00\xff")
        await (await transport.send(post(upstream.url, body))).read()
    [got] = upstream.requests
    assert got.body == b"one,two,\x00\xff"
    assert (got.header("transfer-encoding"), got.header("content-length")) == ("chunked", None)


async def test_iterator_body_keeps_its_length(transport: Transport) -> None:
    """A streamed body whose length the client stated goes up with it: some servers want one."""
    async with ScriptedUpstream([json_reply(b"{}")]) as upstream:
        request = post(upstream.url, pieces(b"abc", b"def"), headers=[(b"content-length", b"6")])
        await (await transport.send(request)).read()
    [got] = upstream.requests
    assert got.raw.endswith(b"\r\n\r\nabcdef")
    assert (got.header("transfer-encoding"), got.header("content-length")) == (None, "6")


async def test_stale_length_is_corrected(transport: Transport) -> None:
    """A length left over from the client's body never contradicts the bytes that go up."""
    async with ScriptedUpstream([json_reply(b"{}")]) as upstream:
        request = post(upstream.url, b"12345", headers=[(b"content-length", b"99")])
        await (await transport.send(request)).read()
    assert upstream.requests[0].header("content-length") == "5"


async def test_large_body_arrives_whole(transport: Transport) -> None:
    """A body of several megabytes goes up unchanged."""
    body = bytes(range(256)) * 12_000
    async with ScriptedUpstream([json_reply(b"{}")]) as upstream:
        await (await transport.send(post(upstream.url, body))).read()
    assert upstream.requests[0].body == body


async def test_failure_of_the_callers_body_is_the_callers(transport: Transport) -> None:
    """What the body iterator raises comes out as it is, not as an upstream's fault."""

    async def broken() -> AsyncIterator[bytes]:
        yield b"a"
        await upstream.received()
        raise BodyTooLarge("too much")

    async with ScriptedUpstream([EARLY, HANG]) as upstream:
        with pytest.raises(BodyTooLarge):
            await transport.send(post(upstream.url, broken()))
        await asyncio.wait_for(upstream.requests[0].gone.wait(), 1)


async def test_header_that_would_split_a_request_is_refused(transport: Transport) -> None:
    """A line break in a header is the caller's fault and never reaches the wire."""
    async with ScriptedUpstream([json_reply(b"{}")]) as upstream:
        with pytest.raises(BadRequest):
            await transport.send(post(upstream.url, headers=[(b"x-a", b"1\r\nx-b: 2")]))
    assert upstream.requests == []


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/v1", "http:///v1", "http://[/v1"])
async def test_unusable_url_is_an_upstream_error(transport: Transport, url: str) -> None:
    """A wrong base URL is a clean 502."""
    with pytest.raises(UpstreamError):
        await transport.send(post(url))
