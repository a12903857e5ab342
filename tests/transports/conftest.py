"""All transports on both event loops, each closed after its test."""

from collections.abc import AsyncIterator

import pytest

from proxy.upstream.aiohttp_transport import AiohttpTransport
from proxy.upstream.httpx_transport import HttpxTransport
from proxy.upstream.transport import Transport


@pytest.fixture(params=[AiohttpTransport, HttpxTransport], ids=["aiohttp", "httpx"])
async def transport(request: pytest.FixtureRequest) -> AsyncIterator[Transport]:
    chosen: Transport = request.param()
    yield chosen
    await chosen.aclose()


@pytest.fixture(params=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    """Both event loops: they differ in how they report hang-ups."""
    return "asyncio", {"use_uvloop": request.param == "uvloop"}
