"""The tee: usage of replies that are only passed on."""

import gzip

import orjson
import pytest

from proxy.edge.tee import MAX_ENCODED, Tee
from tests.edge.driver import JSON_TYPE, SSE_TYPE

pytestmark = pytest.mark.anyio

USAGE = {"prompt_tokens": 7, "total_tokens": 7}
REPLY = orjson.dumps({"object": "list", "data": [], "model": "ada", "usage": USAGE})


async def test_usage_of_a_json_reply_is_found() -> None:
    """Embeddings state their usage and model in the body, however it was cut."""
    tee = Tee(JSON_TYPE)
    for byte in REPLY:
        tee.feed(bytes([byte]))
    assert await tee.read() == (USAGE, "ada")


async def test_usage_of_a_compressed_reply_is_found() -> None:
    """A reply that the client gets compressed is read all the same."""
    tee = Tee([*JSON_TYPE, (b"Content-Encoding", b"gzip")])
    tee.feed(gzip.compress(REPLY))
    assert await tee.read() == (USAGE, "ada")


async def test_usage_of_a_response_stream_is_found() -> None:
    """The Responses API states its usage in the last event."""
    event = {"type": "response.completed", "response": {"model": "m", "usage": USAGE}}
    tee = Tee(SSE_TYPE)
    tee.feed(b'event: response.created\ndata: {"type":"response.created"}\n\n')
    tee.feed(b"event: response.completed\ndata: " + orjson.dumps(event) + b"\n\n")
    assert await tee.read() == (USAGE, "m")


async def test_large_reply_is_read() -> None:
    """A reply of a megabyte is read, too."""
    tee = Tee(JSON_TYPE)
    tee.feed(orjson.dumps({"data": "x" * 1_000_000, "usage": USAGE}))
    assert await tee.read() == (USAGE, None)


@pytest.mark.parametrize("body", [b"\xff\xd8binary", b"", b"{not json", b"[1]", b"{}"])
async def test_other_bodies_state_nothing(body: bytes) -> None:
    """Whatever is no statement of usage is no error either."""
    tee = Tee(JSON_TYPE)
    tee.feed(body)
    assert await tee.read() == (None, None)


async def test_broken_coding_states_nothing() -> None:
    """A reply that is not of its announced coding is the client's business only."""
    tee = Tee([*JSON_TYPE, (b"content-encoding", b"gzip")])
    tee.feed(b"not gzip")
    assert await tee.read() == (None, None)


async def test_large_encoded_reply_is_let_go() -> None:
    """Copies of a compressed download are not kept without limit."""
    tee = Tee([*JSON_TYPE, (b"content-encoding", b"br")])
    for _ in range(5):
        tee.feed(bytes(MAX_ENCODED // 4))
    assert await tee.read() == (None, None)
