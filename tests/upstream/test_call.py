"""Retrying: only what was never accepted, only what can be sent twice."""

from collections.abc import AsyncIterator

import pytest

from proxy.errors import ConnectFailed, UpstreamError, UpstreamTimeout
from proxy.upstream.call import LONGEST_PAUSE_SECONDS, call, pause_seconds
from proxy.upstream.transport import Prepared, UpstreamRequest
from tests.fakes.transport import FakeTransport

pytestmark = pytest.mark.anyio

REFUSED = ConnectFailed("cannot connect")


def request(body: bytes | AsyncIterator[bytes] | None = b"{}") -> UpstreamRequest:
    return UpstreamRequest("POST", "http://127.0.0.1/v1", [], body, 1.0, 1.0)


async def test_connect_errors_are_tried_again() -> None:
    """An upstream that restarts is reached on a later attempt."""
    transport = FakeTransport(REFUSED, REFUSED, Prepared(200, [], b"ok"))
    response = await call(transport, request(), retries=2)
    assert await response.read() == b"ok"
    assert len(transport.sent) == 3


async def test_attempts_are_bounded() -> None:
    """After the last retry the connect error comes out."""
    transport = FakeTransport(REFUSED, REFUSED, Prepared(200, []))
    with pytest.raises(ConnectFailed):
        await call(transport, request(), retries=1)
    assert len(transport.sent) == 2


@pytest.mark.parametrize("error", [UpstreamTimeout("quiet"), UpstreamError("hung up")])
async def test_later_failures_are_not_tried_again(error: UpstreamError) -> None:
    """What may have been accepted could be generated, and paid for, twice."""
    transport = FakeTransport(error, Prepared(200, []))
    with pytest.raises(type(error)):
        await call(transport, request(), retries=3)
    assert len(transport.sent) == 1


async def test_status_codes_are_answers() -> None:
    """A 503 of the upstream is the client's to see: its SDK retries with the upstream's hints."""
    transport = FakeTransport(Prepared(503, [(b"retry-after", b"1")]))
    assert (await call(transport, request(), retries=3)).status == 503


async def test_streamed_body_is_not_sent_twice() -> None:
    """A body iterator may be half used, so its request is not repeated."""

    async def body() -> AsyncIterator[bytes]:
        yield b"x"

    transport = FakeTransport(REFUSED, Prepared(200, []))
    with pytest.raises(ConnectFailed):
        await call(transport, request(body()), retries=3)
    assert len(transport.sent) == 1


def test_pauses_grow_and_are_capped() -> None:
    """Each pause is about twice the one before, and never long."""
    assert 0.05 <= pause_seconds(0) <= 0.1
    assert 0.2 <= pause_seconds(2) <= 0.4
    assert pause_seconds(50) <= LONGEST_PAUSE_SECONDS
