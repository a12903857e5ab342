"""An answer on a connection of aiohttp's pool."""

import asyncio

import pytest

from proxy.upstream.aiohttp_transport import AiohttpTransport
from proxy.upstream.transport import UpstreamRequest
from tests.fakes.scripted import (
    HANG,
    ScriptedUpstream,
    Step,
    Wait,
    chunk,
    head,
    json_reply,
    stream_head,
)

pytestmark = pytest.mark.anyio


def ask(url: str, method: str = "POST") -> UpstreamRequest:
    return UpstreamRequest(method, url, [], b"{}" if method == "POST" else None, 1.0, 5.0)


async def test_whole_answer_gives_its_connection_back() -> None:
    """What came whole is there at once, and the next request goes out on the same connection."""
    transport = AiohttpTransport()
    async with ScriptedUpstream([json_reply(b"{}")], [json_reply(b"[]")]) as upstream:
        for expected in (b"{}", b"[]"):
            answer = await transport.send(ask(upstream.url))
            assert answer.take_whole() == expected
            await answer.aclose()
        await transport.aclose()
    assert [got.connection for got in upstream.requests] == [1, 1]


async def test_answer_that_is_let_go_is_hung_up() -> None:
    """Whoever stops reading half-way disconnects the upstream; it does not go on for nobody."""
    transport = AiohttpTransport()
    async with ScriptedUpstream([stream_head(), chunk(b"some"), HANG]) as upstream:
        answer = await transport.send(ask(upstream.url))
        assert answer.take_whole() is None
        assert await anext(answer.chunks()) == b"some"
        await answer.aclose()
        await asyncio.wait_for(upstream.requests[0].gone.wait(), 2)
        await transport.aclose()


async def test_answer_without_an_end_of_its_own_is_not_taken_for_whole() -> None:
    """Neither a length nor chunks: more may come until the connection ends, so it is read."""
    transport = AiohttpTransport()
    script: list[Step] = [head(200), b"all of it", HANG]
    async with ScriptedUpstream(script) as upstream:
        answer = await transport.send(ask(upstream.url))
        await asyncio.sleep(0.05)
        assert answer.take_whole() is None
        await answer.aclose()
        await transport.aclose()


async def test_announcements_are_skipped() -> None:
    """1xx heads before the answer are not the answer."""
    transport = AiohttpTransport()
    early = head(103, ("link", "</a>; rel=preload"))
    async with ScriptedUpstream([early, Wait(0.01), json_reply(b"{}")]) as upstream:
        answer = await transport.send(ask(upstream.url))
        assert (answer.status, await answer.read()) == (200, b"{}")
        await transport.aclose()


async def test_connection_that_changed_its_language_is_not_used_again() -> None:
    """After 101 the connection is not HTTP; it is hung up when the answer is let go."""
    transport = AiohttpTransport()
    switched = head(101, ("connection", "upgrade"), ("upgrade", "x"))
    async with ScriptedUpstream([switched, HANG], [json_reply(b"{}")]) as upstream:
        answer = await transport.send(ask(upstream.url, "GET"))
        assert answer.status == 101
        await answer.aclose()
        assert await (await transport.send(ask(upstream.url))).read() == b"{}"
        await transport.aclose()
    assert [got.connection for got in upstream.requests] == [1, 2]


async def test_nothing_follows_the_head_of_a_head_request() -> None:
    """The length that HEAD is told belongs to a body that does not come."""
    transport = AiohttpTransport()
    scripts = [[head(200, ("content-length", "9"))], [json_reply(b"{}")]]
    async with ScriptedUpstream(*scripts) as upstream:
        assert await (await transport.send(ask(upstream.url, "HEAD"))).read() == b""
        assert await (await transport.send(ask(upstream.url))).read() == b"{}"
        await transport.aclose()
    assert [got.connection for got in upstream.requests] == [1, 1]
