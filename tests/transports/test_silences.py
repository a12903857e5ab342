"""Silences are timed, and whoever leaves is let go at once, in every phase."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from proxy.errors import UpstreamTimeout
from proxy.upstream.transport import Transport
from tests.fakes.scripted import (
    DEAF,
    HANG,
    HEAR,
    ScriptedUpstream,
    Step,
    Wait,
    chunk,
    json_reply,
    last_chunk,
    stream_head,
)
from tests.transports.ask import post, read_error

pytestmark = pytest.mark.anyio


async def test_silence_before_the_answer_times_out(transport: Transport) -> None:
    """An upstream that says nothing is a timeout, and it is disconnected."""
    async with ScriptedUpstream([HANG]) as upstream:
        with pytest.raises(UpstreamTimeout):
            await transport.send(post(upstream.url, idle=0.1))
        await asyncio.wait_for(upstream.requests[0].gone.wait(), 1)


async def test_each_request_has_its_own_patience(transport: Transport) -> None:
    """A connection that is used again does not keep the clock of a more patient request."""
    async with ScriptedUpstream([json_reply(b"{}")], [HANG]) as upstream:
        assert await (await transport.send(post(upstream.url, idle=60))).read() == b"{}"
        async with asyncio.timeout(2):
            with pytest.raises(UpstreamTimeout):
                await transport.send(post(upstream.url, idle=0.1))


async def test_silence_inside_the_answer_times_out(transport: Transport) -> None:
    """An upstream that goes quiet inside its answer is a timeout."""
    async with ScriptedUpstream([stream_head() + chunk(b"some"), HANG]) as upstream:
        got, error = await read_error(transport, post(upstream.url, idle=0.1))
        await asyncio.wait_for(upstream.requests[0].gone.wait(), 1)
    assert (got, type(error)) == (b"some", UpstreamTimeout)


async def test_slow_steady_answer_does_not_time_out(transport: Transport) -> None:
    """The timeout counts silence, not the length of the answer."""
    steps: list[Step] = [stream_head()]
    for _ in range(6):
        steps += [chunk(b"."), Wait(0.05)]
    async with ScriptedUpstream([*steps, last_chunk()]) as upstream:
        response = await transport.send(post(upstream.url, idle=0.2))
        assert await response.read() == b"......"


async def test_upstream_that_takes_no_body_times_out(transport: Transport) -> None:
    """An upstream that stops reading our upload does not hold us for ever."""
    async with ScriptedUpstream([DEAF, HANG]) as upstream:
        with pytest.raises(UpstreamTimeout):
            await transport.send(post(upstream.url, bytes(32_000_000), idle=0.2))


async def test_slow_client_is_not_the_upstreams_silence(transport: Transport) -> None:
    """Waiting for the caller's own body is not held against the upstream."""

    async def slow() -> AsyncIterator[bytes]:
        yield b"a"
        await asyncio.sleep(0.3)
        yield b"b"

    async with ScriptedUpstream([json_reply(b"{}")]) as upstream:
        assert await (await transport.send(post(upstream.url, slow(), idle=0.1))).read() == b"{}"


async def test_cancelled_before_the_answer_disconnects(transport: Transport) -> None:
    """When the caller goes before the first byte, the upstream is let go at once."""
    async with ScriptedUpstream([HANG]) as upstream, asyncio.TaskGroup() as tasks:
        sending = tasks.create_task(transport.send(post(upstream.url)))
        request = await upstream.received()
        sending.cancel()
        await asyncio.wait_for(request.gone.wait(), 1)


async def test_cancelled_inside_the_request_sends_no_more(transport: Transport) -> None:
    """When the caller goes during an upload that stalls, the rest is dropped, not sent later."""
    body = bytes(32_000_000)
    script: list[Step] = [DEAF, Wait(0.2), HEAR, HANG]
    async with ScriptedUpstream(script) as upstream, asyncio.TaskGroup() as tasks:
        sending = tasks.create_task(transport.send(post(upstream.url, body)))
        request = await upstream.received()
        await asyncio.sleep(0.1)
        sending.cancel()
        await asyncio.wait_for(request.gone.wait(), 2)
    assert upstream.taken < len(body)


async def test_cancelled_inside_the_answer_disconnects(transport: Transport) -> None:
    """When the caller goes inside a stream, the upstream is let go at once."""
    script: list[Step] = [stream_head(), chunk(b"one"), HANG]
    async with ScriptedUpstream(script) as upstream, asyncio.TaskGroup() as tasks:
        started = asyncio.Event()

        async def listen() -> None:
            response = await transport.send(post(upstream.url))
            async for _ in response.chunks():
                started.set()

        listening = tasks.create_task(listen())
        await started.wait()
        listening.cancel()
        await asyncio.wait_for(upstream.requests[0].gone.wait(), 1)


async def test_unread_answer_is_let_go_on_close(transport: Transport) -> None:
    """Closing an answer that nobody reads disconnects an upstream that still writes."""
    script: list[Step] = [stream_head(), *[chunk(b"x" * 100_000)] * 50, HANG]
    async with ScriptedUpstream(script) as upstream:
        response = await transport.send(post(upstream.url))
        await response.aclose()
        await asyncio.wait_for(upstream.requests[0].gone.wait(), 1)
        await response.aclose()
