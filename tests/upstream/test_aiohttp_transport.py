"""What only the aiohttp transport has to care about; test_transport.py has the rest."""

import warnings

import pytest

from proxy.upstream.aiohttp_transport import SMALL_BYTES, AiohttpTransport
from proxy.upstream.transport import UpstreamRequest
from tests.fakes.scripted import ScriptedUpstream, json_reply

pytestmark = pytest.mark.anyio


def post(url: str, value: bytes = b"1", body: bytes = b"{}") -> UpstreamRequest:
    return UpstreamRequest("POST", url, [(b"x-value", value)], body, 1.0, 5.0)


@pytest.mark.parametrize("value", ["ü".encode(), "ü".encode("latin-1"), "日".encode()])
async def test_header_bytes_are_kept(value: bytes) -> None:
    """What a header holds goes up as it is, whatever it is encoded in."""
    transport = AiohttpTransport()
    async with ScriptedUpstream([json_reply(b"{}")]) as upstream:
        await (await transport.send(post(upstream.url, value))).read()
        await transport.aclose()
    assert b"x-value: %b\r\n" % value in upstream.requests[0].raw


async def test_headers_of_a_large_request_are_kept_or_read_as_latin_1() -> None:
    """With UTF-8 alone in aiohttp, that goes up as it is, other bytes as the Latin-1 they were."""
    transport = AiohttpTransport()
    async with ScriptedUpstream([json_reply(b"{}")], [json_reply(b"{}")]) as upstream:
        for value in ("ü".encode(), "ü".encode("latin-1")):
            request = post(upstream.url, value, b"x" * (SMALL_BYTES + 1))
            await (await transport.send(request)).read()
        await transport.aclose()
    assert all(b"x-value: \xc3\xbc\r\n" in got.raw for got in upstream.requests)


async def test_login_in_the_url_goes_up() -> None:
    """A user and a password before the host are sent as Basic credentials."""
    transport = AiohttpTransport()
    async with ScriptedUpstream([json_reply(b"{}")]) as upstream:
        url = upstream.url.replace("://", "://me:secret@")
        await (await transport.send(post(url))).read()
        await transport.aclose()
    assert b"authorization: basic bwu6c2vjcmv0" in upstream.requests[0].raw.lower()


async def test_large_body_goes_up_without_a_warning() -> None:
    """A body of megabytes is ordinary here, whatever aiohttp says of it."""
    transport = AiohttpTransport()
    async with ScriptedUpstream([json_reply(b"{}")]) as upstream:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            await (await transport.send(post(upstream.url, body=b"x" * 2_000_000))).read()
        await transport.aclose()
    assert caught == []
