"""Connections that small requests keep, and their clock."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from yarl import URL

from proxy.errors import UpstreamTimeout
from proxy.upstream import aiohttp_pool
from proxy.upstream.aiohttp_kept import Kept
from proxy.upstream.aiohttp_transport import AiohttpTransport
from proxy.upstream.request_head import Origin
from proxy.upstream.transport import UpstreamRequest
from tests.fakes.scripted import (
    HANG,
    ScriptedUpstream,
    Step,
    Wait,
    chunk,
    head,
    json_reply,
    last_chunk,
    stream_head,
)

pytestmark = pytest.mark.anyio


def ask(url: str, idle_seconds: float = 5.0) -> UpstreamRequest:
    return UpstreamRequest("POST", url, [], b"{}", 1.0, idle_seconds)


@asynccontextmanager
async def dialled(url: str) -> AsyncIterator[Kept]:
    """A connection of aiohttp's to some server."""
    loop = asyncio.get_running_loop()
    async with aiohttp.TCPConnector() as connector:
        way = aiohttp.ClientRequest("GET", URL(url), loop=loop)
        connection = await connector.connect(way, [], aiohttp.ClientTimeout())
        assert connection.protocol is not None
        yield Kept(connection, connection.protocol, loop)
        connection.close()


async def test_quiet_upstream_is_told_apart_from_a_slow_reader() -> None:
    """Time runs while the reader waits, not while it has something to do."""
    async with ScriptedUpstream([HANG]) as upstream, dialled(upstream.url) as kept:
        kept.begin(0.05)
        kept.heard()
        await asyncio.sleep(0.1)
        assert kept.protocol.exception() is None
        kept.wait()
        await asyncio.sleep(0.15)
        assert isinstance(kept.protocol.exception(), TimeoutError)
        kept.hang_up()


async def test_time_runs_from_the_last_wait() -> None:
    """A timer that was set for an earlier request does not end a later one early."""
    async with ScriptedUpstream([HANG]) as upstream, dialled(upstream.url) as kept:
        kept.begin(0.2)
        for _ in range(6):
            await asyncio.sleep(0.05)
            kept.heard()
            kept.wait()
        assert kept.protocol.exception() is None
        kept.hang_up()


async def test_each_request_may_have_a_patience_of_its_own() -> None:
    """A short one after a long one is short, and none at all is endless."""
    async with ScriptedUpstream([HANG]) as upstream, dialled(upstream.url) as kept:
        kept.begin(60)
        kept.begin(0)
        await asyncio.sleep(0.02)
        assert kept.protocol.exception() is None
        kept.begin(0.02)
        await asyncio.sleep(0.1)
        assert isinstance(kept.protocol.exception(), TimeoutError)
        kept.hang_up()


async def test_each_byte_counts_as_a_sign_of_life() -> None:
    """Announcements, a head in pieces, a chunk in pieces: slow is not quiet."""
    transport = AiohttpTransport()
    slow: list[Step] = [
        head(102), Wait(0.12), head(102), Wait(0.12), b"HTTP/1.1 200 OK\r\n", Wait(0.12),
        b"transfer-encoding: chunked\r\n\r\n", Wait(0.12), b"4", Wait(0.12), b"\r\nab", Wait(0.12),
        b"cd\r\n", Wait(0.12), last_chunk(),
    ]  # fmt: skip
    async with ScriptedUpstream(slow) as upstream:
        answer = await transport.send(ask(upstream.url, 0.2))
        assert await answer.read() == b"abcd"
        await transport.aclose()


async def test_event_loop_that_was_held_up_is_not_taken_for_silence() -> None:
    """The bytes arrived in time; it is us who were late to look."""
    transport = AiohttpTransport()
    script: list[Step] = [stream_head() + chunk(b"a"), Wait(0.1), chunk(b"b"), last_chunk()]
    async with ScriptedUpstream(script) as upstream:
        answer = await transport.send(ask(upstream.url, 0.2))
        chunks = answer.chunks()
        assert await anext(chunks) == b"a"
        asyncio.get_running_loop().call_later(0.05, time.sleep, 0.3)
        async with asyncio.timeout(2):
            assert [chunk async for chunk in chunks] == [b"b"]
        await transport.aclose()


async def test_half_sent_request_keeps_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """An upstream that answered early does not get the next request behind the rest of this one."""
    async with ScriptedUpstream([HANG]) as upstream, dialled(upstream.url) as kept:
        connector = aiohttp_pool.Connector(None)
        monkeypatch.setattr(Kept, "unsent", lambda _: 5)
        connector.keep(Origin(False, "x", 1), kept)
        assert not kept.usable()
        assert connector.take(Origin(False, "x", 1)) is None
        await connector.close()


async def test_connection_with_an_end_is_not_usable() -> None:
    """The upstream hung up; the event loop has not been asked since."""
    async with ScriptedUpstream([json_reply(b"{}")]) as upstream, dialled(upstream.url) as kept:
        assert kept.usable()
        assert kept.unsent() == 0
        kept.hang_up()
        assert not kept.usable()


async def test_clock_is_stopped_with_its_connection() -> None:
    """Nothing is left that would hold a closed connection for minutes."""
    async with ScriptedUpstream([HANG]) as upstream, dialled(upstream.url) as kept:
        kept.begin(600)
        timer = kept._timer
        assert timer is not None
        kept.hang_up()
        assert timer.cancelled()


async def test_answers_of_one_connection_are_timed_apart() -> None:
    """An upstream that answers, and falls silent inside its next answer: 504 material."""
    transport = AiohttpTransport()
    silent: list[Step] = [stream_head() + chunk(b"some"), HANG]
    async with ScriptedUpstream([json_reply(b"{}")], silent) as upstream:
        assert await (await transport.send(ask(upstream.url, 0.2))).read() == b"{}"
        answer = await transport.send(ask(upstream.url, 0.2))
        with pytest.raises(UpstreamTimeout, match="went quiet inside"):
            async with asyncio.timeout(2):
                await answer.read()
        await transport.aclose()
    assert [got.connection for got in upstream.requests] == [1, 1]


async def test_chunks_that_came_together_are_read_together() -> None:
    """Two hundred chunks of one write are a read or two, in their order."""
    transport = AiohttpTransport()
    pieces = [b"data: %d\n\n" % number for number in range(200)]
    script: list[Step] = [
        stream_head(),
        Wait(0.02),
        b"".join(map(chunk, pieces)) + last_chunk(),
    ]
    async with ScriptedUpstream(script) as upstream:
        answer = await transport.send(ask(upstream.url))
        reads = [read async for read in answer.chunks()]
        await transport.aclose()
    assert b"".join(reads) == b"".join(pieces)
    assert len(reads) < 10


async def test_connection_that_idled_too_long_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its upstream is about to hang up, also where nobody has swept yet."""
    monkeypatch.setattr(aiohttp_pool, "KEEPALIVE_SECONDS", 0.05)
    transport = AiohttpTransport()
    async with ScriptedUpstream([json_reply(b"{}")], [json_reply(b"{}")]) as upstream:
        await (await transport.send(ask(upstream.url))).read()
        await asyncio.sleep(0.1)
        await (await transport.send(ask(upstream.url))).read()
        await transport.aclose()
    assert [got.connection for got in upstream.requests] == [1, 2]


async def test_idle_connections_leave_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody keeps a connection for ever that nobody uses."""
    monkeypatch.setattr(aiohttp_pool, "KEEPALIVE_SECONDS", 0.05)
    monkeypatch.setattr(aiohttp_pool, "SWEEP_SECONDS", 0.02)
    transport = AiohttpTransport()
    async with ScriptedUpstream([json_reply(b"{}")], [json_reply(b"{}")]) as upstream:
        await (await transport.send(ask(upstream.url))).read()
        await asyncio.wait_for(upstream.requests[0].gone.wait(), 2)
        await (await transport.send(ask(upstream.url))).read()
        await transport.aclose()
    assert [got.connection for got in upstream.requests] == [1, 2]


async def test_one_parser_reads_what_alike_requests_are_answered() -> None:
    """An answer to HEAD has none of the body that it announces, the one after it has its own."""
    transport = AiohttpTransport()
    announced = head(200, ("Content-Length", "5"))
    scripts: list[list[Step]] = [
        [json_reply(b"1")],
        [json_reply(b"22")],
        [announced],
        [announced],
        [json_reply(b"333", status=404)],
        [stream_head() + chunk(b"4") + last_chunk()],
    ]
    async with ScriptedUpstream(*scripts) as upstream:
        bodies = []
        for method in ("POST", "GET", "HEAD", "HEAD", "POST", "POST"):
            request = UpstreamRequest(method, upstream.url, [], None, 1.0, 5.0)
            bodies.append(await (await transport.send(request)).read())
        await transport.aclose()
    assert bodies == [b"1", b"22", b"", b"", b"333", b"4"]
    assert {got.connection for got in upstream.requests} == {1}
