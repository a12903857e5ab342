"""Connections: made, kept, lost, and never used to send a POST twice."""

import asyncio
import socket
from collections.abc import Sequence

import pytest

from proxy.errors import ConnectFailed, UpstreamError
from proxy.upstream.transport import Transport, UpstreamRequest
from tests.fakes.scripted import (
    CLOSE_ON_NEXT,
    CUT,
    HANG,
    RST,
    Received,
    ScriptedUpstream,
    Step,
    head,
    json_reply,
    stream_head,
)
from tests.transports.ask import post

pytestmark = pytest.mark.anyio


async def test_connections_are_reused(transport: Transport) -> None:
    """One request after another needs one connection."""
    async with ScriptedUpstream(*[[json_reply(b"{}")]] * 5) as upstream:
        for _ in range(5):
            await (await transport.send(post(upstream.url))).read()
    assert upstream.connections == 1


async def test_many_requests_run_at_once(transport: Transport) -> None:
    """No pool limit makes one caller wait for another's stream."""
    arrived = asyncio.Event()

    def answer(request: Received) -> Sequence[Step]:
        if len(upstream.requests) == 150:
            arrived.set()
        return [stream_head(), HANG]

    async with ScriptedUpstream(answer=answer) as upstream:
        responses = await asyncio.gather(*(transport.send(post(upstream.url)) for _ in range(150)))
        assert arrived.is_set()
        await asyncio.gather(*(response.aclose() for response in responses))


async def test_connection_closed_while_idle_is_not_used(transport: Transport) -> None:
    """After the upstream hung up on an idle connection the next request opens another."""
    async with ScriptedUpstream([json_reply(b"{}"), CUT], [json_reply(b"{}")]) as upstream:
        await (await transport.send(post(upstream.url))).read()
        await asyncio.wait_for(upstream.requests[0].gone.wait(), 1)
        assert await (await transport.send(post(upstream.url))).read() == b"{}"
    assert [got.connection for got in upstream.requests] == [1, 2]


async def test_close_race_never_repeats_a_post(transport: Transport) -> None:
    """A connection that dies under a POST may have accepted it: an error, and no second copy."""
    async with ScriptedUpstream(
        [json_reply(b"{}"), CLOSE_ON_NEXT], [json_reply(b"{}")]
    ) as upstream:
        await (await transport.send(post(upstream.url))).read()
        with pytest.raises(UpstreamError) as caught:
            await transport.send(post(upstream.url))
    assert type(caught.value) is UpstreamError
    assert upstream.connections == 1


async def test_close_race_may_repeat_a_get(transport: Transport) -> None:
    """A request that changes nothing survives the same race, at the latest through `call`."""
    async with ScriptedUpstream(
        [json_reply(b"{}"), CLOSE_ON_NEXT], [json_reply(b"{}")]
    ) as upstream:
        request = post(upstream.url, None, method="GET")
        await (await transport.send(request)).read()
        try:
            response = await transport.send(request)
        except ConnectFailed:
            response = await transport.send(request)
        assert await response.read() == b"{}"
    assert upstream.connections == 2


@pytest.mark.parametrize("control", [CUT, RST])
async def test_hang_up_without_an_answer_is_no_connect_error(
    transport: Transport, control: Step
) -> None:
    """A POST that was read and not answered is never called safe to retry."""
    async with ScriptedUpstream([control]) as upstream:
        with pytest.raises(UpstreamError) as caught:
            await transport.send(post(upstream.url))
    assert type(caught.value) is UpstreamError
    assert caught.value.status == 502


async def test_refused_connection_is_a_connect_error(transport: Transport) -> None:
    """Nobody listens: nothing was accepted, and the message names the address without the query."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ConnectFailed, match=rf"127\.0\.0\.1:{port} \(\w+\)$"):
        await transport.send(post(f"http://127.0.0.1:{port}/v1?key=secret"))


async def test_unknown_host_is_a_connect_error(transport: Transport) -> None:
    """A name that resolves to nothing is a connect error."""
    with pytest.raises(ConnectFailed, match=r"upstream\.invalid"):
        await transport.send(post("http://upstream.invalid/v1"))


async def test_broken_tls_is_a_connect_error(transport: Transport) -> None:
    """A server that does not speak TLS accepted nothing."""

    async def answer_plainly(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head(400))
        writer.close()

    async with await asyncio.start_server(answer_plainly, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ConnectFailed):
            await transport.send(post(f"https://127.0.0.1:{port}/v1"))


async def test_silent_tls_server_is_a_connect_error(transport: Transport) -> None:
    """A handshake that never ends counts against the connect timeout."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}/v1"
        request = UpstreamRequest("POST", url, [], b"x", connect_seconds=0.1, idle_seconds=5)
        with pytest.raises(ConnectFailed):
            await transport.send(request)


async def test_closed_transport_opens_anew(transport: Transport) -> None:
    """Closing gives back the connections; a later request is served all the same."""
    async with ScriptedUpstream([json_reply(b"{}")], [json_reply(b"{}")]) as upstream:
        await (await transport.send(post(upstream.url))).read()
        await transport.aclose()
        await transport.aclose()
        await asyncio.wait_for(upstream.requests[0].gone.wait(), 1)
        assert await (await transport.send(post(upstream.url))).read() == b"{}"


async def test_transport_serves_several_event_loops(transport: Transport) -> None:
    """Each loop gets sockets of its own: a gateway in a thread and a test may share a transport."""

    async def elsewhere(url: str) -> bytes:
        try:
            return await (await transport.send(post(url))).read()
        finally:
            await transport.aclose()

    async with ScriptedUpstream(*[[json_reply(b"{}")]] * 2) as upstream:
        assert await (await transport.send(post(upstream.url))).read() == b"{}"
        assert await asyncio.to_thread(asyncio.run, elsewhere(upstream.url)) == b"{}"
    assert upstream.connections == 2
