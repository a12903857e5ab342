"""Replies are listened to without a byte being changed."""

from collections.abc import AsyncIterator

import pytest

from proxy.triage.hear import Heard
from proxy.triage.signed import seal_of
from proxy.upstream.transport import Prepared

pytestmark = pytest.mark.anyio
BODY = b'data: {"delta":{"thinking_blocks":[{"signature":"abcdefghijkl"}]}}\n\ndata: [DONE]\n\n'


@pytest.mark.parametrize("size", [1, 7, 50, 1000])
async def test_a_signature_is_heard_however_it_is_cut(size: int) -> None:
    """Before the client can have it."""
    heard: list[bytes] = []

    async def note(seal: bytes) -> None:
        heard.append(seal)

    async def play() -> AsyncIterator[bytes]:
        for start in range(0, len(BODY), size):
            yield BODY[start : start + size]

    response = Heard(Prepared(200, [(b"a", b"b")], play()), note)
    assert b"".join([chunk async for chunk in response.chunks()]) == BODY
    assert set(heard) == {seal_of(b"abcdefghijkl")}
    assert (response.status, response.headers) == (200, [(b"a", b"b")])
    await response.aclose()


async def test_a_whole_reply_is_heard_too() -> None:
    """In JSON."""
    heard: list[bytes] = []

    async def note(seal: bytes) -> None:
        heard.append(seal)

    body = b'{"message":{"thinking_blocks":[{"signature":"abcdefghijkl"}]}}'
    assert await Heard(Prepared(200, [], body), note).read() == body
    assert heard == [seal_of(b"abcdefghijkl")]
