"""Replies that tell."""

from collections.abc import AsyncGenerator

import pytest

from proxy.memory.change import Outcome
from proxy.memory.principal import Principal
from proxy.memory.session import Session
from proxy.memory.telling import precede, tell

pytestmark = pytest.mark.anyio


async def chunks(*parts: bytes) -> AsyncGenerator[bytes]:
    for part in parts:
        yield part


def session() -> Session:
    made = Session("r", Principal("t", "a"), "pass")
    made.settle([Outcome("update", "city", "Rome")])
    return made


async def told(content_type: bytes, *parts: bytes) -> bytes:
    return b"".join([c async for c in tell(chunks(*parts), session(), content_type)])


async def test_json_gets_a_member() -> None:
    """Whole replies, in however many reads."""
    assert b'"usher":{"memory":[{"type":"update"' in await told(
        b"application/json", b'{"a"', b":1}"
    )


@pytest.mark.parametrize("body", [b"not json", b"[1]", b""])
async def test_what_is_no_object_passes(body: bytes) -> None:
    """Nothing is broken that we do not understand."""
    assert await told(b"application/json", body) == body
    assert await told(b"text/plain", body) == body


async def test_usher_s_own_streams() -> None:
    """The comment goes before the chunk that is sent after joining."""
    made = session()
    await made.join()
    out = [c async for c in precede(chunks(b"x", b"y"), made)]
    assert out[0].startswith(b": usher-memory ")
    assert out[1] == b"y"
