"""The pool of the small HTTP client."""

import asyncio

import pytest

from proxy.upstream.h1_transport import H1Transport
from tests.fakes.scripted import Received, Script, ScriptedUpstream, Wait, json_reply
from tests.transports.ask import post

pytestmark = pytest.mark.anyio


async def test_answers_never_get_mixed_up() -> None:
    """Thousands of requests over a few connections: each gets the answer to its own body."""

    async def echo(request: Received) -> Script:
        await asyncio.sleep(0)
        return [json_reply(request.body)]

    async def client(number: int) -> None:
        for turn in range(100):
            body = b"%d-%d" % (number, turn)
            assert await (await transport.send(post(upstream.url, body))).read() == body

    transport = H1Transport()
    async with ScriptedUpstream(answer=echo) as upstream:
        async with asyncio.TaskGroup() as clients:
            for number in range(20):
                clients.create_task(client(number))
        assert upstream.connections <= 20
        await transport.aclose()


async def test_cancelled_requests_do_not_disturb_others() -> None:
    """Giving up at any moment costs one's own connection and nobody else's."""

    def echo(request: Received) -> Script:
        return [Wait(0.001), json_reply(request.body)]

    async def client(number: int) -> None:
        for turn in range(30):
            body = b"%d-%d" % (number, turn)
            asked = asyncio.get_running_loop().create_task(transport.send(post(upstream.url, body)))
            if (number + turn) % 3 == 0:
                await asyncio.sleep(0.0005 * (turn % 5))
                asked.cancel()
                await asyncio.gather(asked, return_exceptions=True)
            else:
                assert await (await asked).read() == body

    transport = H1Transport()
    async with ScriptedUpstream(answer=echo) as upstream:
        async with asyncio.TaskGroup() as clients:
            for number in range(8):
                clients.create_task(client(number))
        await transport.aclose()


async def test_connection_that_comes_free_after_the_end_is_closed() -> None:
    """What was under way while the transport closed leaves nothing behind."""
    transport = H1Transport()
    async with ScriptedUpstream([Wait(0.05), json_reply(b"{}")]) as upstream:
        asked = asyncio.get_running_loop().create_task(transport.send(post(upstream.url)))
        request = await upstream.received()
        await transport.aclose()
        assert await (await asked).read() == b"{}"
        await asyncio.wait_for(request.gone.wait(), 1)
