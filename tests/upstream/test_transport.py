"""The parts of the seam that need no socket; tests/transports has what every transport does."""

import pytest

from proxy.errors import UpstreamError
from proxy.upstream.transport import PerLoop, Prepared, site
from tests.transports.ask import pieces

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
