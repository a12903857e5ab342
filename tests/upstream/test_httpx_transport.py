"""What only the httpx transport has to care about; test_transport.py has the rest."""

import pytest

from proxy.upstream.httpx_transport import HttpxTransport
from proxy.upstream.transport import UpstreamRequest
from tests.fakes.scripted import ScriptedUpstream, json_reply

pytestmark = pytest.mark.anyio


def get(url: str, *headers: tuple[bytes, bytes]) -> UpstreamRequest:
    return UpstreamRequest("GET", url, list(headers), None, 1.0, 5.0)


async def test_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a company's proxy the request goes to it, with the target still byte-exact."""
    async with ScriptedUpstream([json_reply(b"{}")]) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        transport = HttpxTransport()
        url = 'http://upstream.invalid/v1/x?include[]=a&q="{}"'
        await (await transport.send(get(url))).read()
        await transport.aclose()
    assert proxy.requests[0].target == url


async def test_header_bytes_go_up_as_they_are() -> None:
    """Bytes that are no UTF-8 stay the bytes that the client sent."""
    transport = HttpxTransport()
    async with ScriptedUpstream([json_reply(b"{}")]) as upstream:
        await (await transport.send(get(upstream.url, (b"x-value", b"\xfc")))).read()
        await transport.aclose()
    assert b"x-value: \xfc\r\n" in upstream.requests[0].raw
