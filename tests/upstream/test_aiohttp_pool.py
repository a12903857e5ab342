"""The connections of aiohttp's pool, looked at before each use."""

import asyncio

import pytest

from proxy.errors import StreamTruncated
from proxy.upstream.aiohttp_transport import SMALL_BYTES, AiohttpTransport
from proxy.upstream.transport import UpstreamRequest
from tests.fakes.scripted import (
    CUT,
    RST,
    ScriptedUpstream,
    Step,
    Wait,
    chunk,
    head,
    json_reply,
    stream_head,
)

pytestmark = pytest.mark.anyio


def post(url: str, body: bytes = b"{}") -> UpstreamRequest:
    return UpstreamRequest("POST", url, [], body, 1.0, 5.0)


async def test_connection_lost_later_breaks_nothing() -> None:
    """A connection that carried several answers and ends on the last is watched to its end."""
    transport = AiohttpTransport()
    broken: list[Step] = [stream_head() + chunk(b"some"), Wait(0.01), b"zz\r\n", CUT]
    async with ScriptedUpstream([json_reply(b"{}")], [json_reply(b"{}"), CUT], broken) as upstream:
        for _ in range(2):
            assert await (await transport.send(post(upstream.url))).read() == b"{}"
        await upstream.requests[1].gone.wait()
        response = await transport.send(post(upstream.url))
        assert await anext(response.chunks()) == b"some"
        await transport.aclose()
    assert [got.connection for got in upstream.requests] == [1, 1, 2]


async def test_small_and_large_requests_share_the_pool() -> None:
    """Both ways up take the connection that the other has given back."""
    transport = AiohttpTransport()
    scripts = [[json_reply(b"{}")]] * 4
    async with ScriptedUpstream(*scripts) as upstream:
        for size in (2, SMALL_BYTES + 1, 2, SMALL_BYTES + 1):
            await (await transport.send(post(upstream.url, b"x" * size))).read()
        await transport.aclose()
    assert [got.connection for got in upstream.requests] == [1, 1, 1, 1]


async def test_requests_at_once_have_a_connection_each() -> None:
    """Nobody waits for another request's answer, and nobody gets it."""
    transport = AiohttpTransport()
    scripts: list[list[Step]] = [[Wait(0.05), json_reply(b"%d" % n)] for n in range(5)]
    async with ScriptedUpstream(*scripts) as upstream:
        answers = await asyncio.gather(*[transport.send(post(upstream.url)) for _ in range(5)])
        bodies = [await answer.read() for answer in answers]
        await transport.aclose()
    assert sorted(bodies) == [b"0", b"1", b"2", b"3", b"4"]
    assert len({got.connection for got in upstream.requests}) == 5


@pytest.mark.parametrize("first", [2, SMALL_BYTES + 1])
@pytest.mark.parametrize("second", [2, SMALL_BYTES + 1])
async def test_answer_that_nobody_asked_for_is_nobodys(first: int, second: int) -> None:
    """What an upstream says on an idle connection does not answer the next request."""
    transport = AiohttpTransport()
    chatty: list[Step] = [json_reply(b"{}"), Wait(0.02), json_reply(b"[1]")]
    async with ScriptedUpstream(chatty, [json_reply(b"[2]")]) as upstream:
        await (await transport.send(post(upstream.url, b"x" * first))).read()
        await asyncio.sleep(0.1)
        answer = await transport.send(post(upstream.url, b"x" * second))
        assert await answer.read() == b"[2]"
        await transport.aclose()


async def test_slow_reader_is_not_told_of_a_later_request() -> None:
    """A whole answer stays whole, whatever becomes of the next one on its connection."""
    transport = AiohttpTransport()
    torn: list[Step] = [head(200, ("content-length", "9")) + b"ab", RST]
    async with ScriptedUpstream([json_reply(b"x" * 300_000)], torn) as upstream:
        first = await transport.send(post(upstream.url))
        await asyncio.sleep(0.1)
        second = await transport.send(post(upstream.url))
        await asyncio.sleep(0.1)
        assert len(await first.read()) == 300_000
        with pytest.raises(StreamTruncated):
            await second.read()
        await transport.aclose()
    assert [got.connection for got in upstream.requests] == [1, 1]
