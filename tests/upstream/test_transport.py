"""The parts of the seam that need no socket; tests/transports has what every transport does."""

import asyncio
import threading

import pytest

from proxy.errors import UpstreamError
from proxy.upstream.aiohttp_transport import AiohttpTransport
from proxy.upstream.httpx_transport import HttpxTransport
from proxy.upstream.transport import PerLoop, Prepared, Transport, site, take_whole
from tests.fakes.scripted import (
    CUT,
    ScriptedUpstream,
    Step,
    Wait,
    chunk,
    head,
    json_reply,
    last_chunk,
)
from tests.transports.ask import pieces, post

pytestmark = pytest.mark.anyio


async def test_prepared_response_behaves_like_a_real_one() -> None:
    """An answer made in this process can be read at once or by pieces, and be closed unread."""
    assert await Prepared(200, [], b"abc").read() == b"abc"
    assert await Prepared(204, []).read() == b""
    body = pieces(b"a", b"b", b"c")
    response = Prepared(200, [], body)
    assert await anext(response.chunks()) == b"a"
    await response.aclose()
    assert [rest async for rest in body] == []


def test_site_hides_credentials_and_queries() -> None:
    """Only host and port of a URL may stand in a message."""
    assert site("https://user:pw@api.example.com/v1?key=k") == "api.example.com"
    assert site("http://127.0.0.1:8000/v1") == "127.0.0.1:8000"
    with pytest.raises(UpstreamError):
        site("http://127.0.0.1:port/v1")


async def test_object_per_loop_is_opened_once() -> None:
    """One loop gets one object until it is released."""
    held = PerLoop(object)
    first = held.current()
    assert held.current() is first
    assert held.release() is first
    assert held.release() is None
    assert held.current() is not first


def test_loops_never_share_an_object() -> None:
    """Whichever thread a loop runs in, and whatever ran there before, its object is its own."""
    held = PerLoop(object)
    seen: list[object] = []

    async def look() -> None:
        seen.extend((held.current(), held.current()))

    asyncio.run(look())
    asyncio.run(look())
    thread = threading.Thread(target=lambda: asyncio.run(look()))
    thread.start()
    thread.join()
    assert seen[0] is seen[1]
    assert len({id(one) for one in seen}) == 3


async def test_answer_that_is_all_here_can_be_taken_at_once() -> None:
    """Its connection is free again; an answer of several reads is left for who reads chunks."""
    slow: list[Step] = [head(200, ("content-length", "4")) + b"ab", Wait(0.05), b"cd"]
    framed = head(200, ("transfer-encoding", "chunked")) + chunk(b"{}") + last_chunk()
    transport = AiohttpTransport()
    async with ScriptedUpstream([json_reply(b"{1}")], [framed], slow) as upstream:
        for body in (b"{1}", b"{}"):
            response = await transport.send(post(upstream.url))
            assert take_whole(response) == body
            await response.aclose()
        response = await transport.send(post(upstream.url))
        assert take_whole(response) is None
        assert await response.read() == b"abcd"
        assert upstream.connections == 1
        await transport.aclose()


@pytest.mark.parametrize("make", [AiohttpTransport, HttpxTransport])
async def test_answer_that_was_cut_is_never_taken_for_whole(make: type[Transport]) -> None:
    """What was announced and did not come is missed, however early the end was seen."""
    transport = make()
    async with ScriptedUpstream([head(200, ("content-length", "9")) + b"ab", CUT]) as upstream:
        response = await transport.send(post(upstream.url))
        await asyncio.sleep(0.05)
        assert take_whole(response) is None
        with pytest.raises(UpstreamError):
            await response.read()
        await transport.aclose()
