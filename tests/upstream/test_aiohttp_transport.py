"""What only the aiohttp transport has to care about; test_transport.py has the rest."""

import warnings

import pytest

from proxy.upstream.aiohttp_transport import AiohttpTransport
from proxy.upstream.transport import UpstreamRequest
from tests.fakes.scripted import CUT, ScriptedUpstream, Step, Wait, chunk, json_reply, stream_head

pytestmark = pytest.mark.anyio


def post(url: str, value: bytes = b"1", body: bytes = b"{}") -> UpstreamRequest:
    return UpstreamRequest("POST", url, [(b"x-value", value)], body, 1.0, 5.0)


async def test_header_bytes_are_kept_or_read_as_latin_1() -> None:
    """UTF-8 in a header goes up as it is; other bytes go up as the Latin-1 text they were."""
    transport = AiohttpTransport()
    async with ScriptedUpstream([json_reply(b"{}")], [json_reply(b"{}")]) as upstream:
        for value in ("ü".encode(), "ü".encode("latin-1")):
            await (await transport.send(post(upstream.url, value))).read()
        await transport.aclose()
    assert all(b"x-value: \xc3\xbc\r\n" in got.raw for got in upstream.requests)


async def test_large_body_goes_up_without_a_warning() -> None:
    """A body of megabytes is ordinary here, whatever aiohttp says of it."""
    transport = AiohttpTransport()
    async with ScriptedUpstream([json_reply(b"{}")]) as upstream:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            await (await transport.send(post(upstream.url, body=b"x" * 2_000_000))).read()
        await transport.aclose()
    assert caught == []


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
