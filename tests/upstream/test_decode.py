"""Bodies that a server compresses unasked are still read."""

import gzip
import zlib
from collections.abc import AsyncIterator

import brotli
import pytest
import zstandard

from proxy.errors import StreamTruncated, UpstreamError
from proxy.upstream.decode import decode_response
from proxy.upstream.transport import Prepared

pytestmark = pytest.mark.anyio

_TEXT = b'{"choices": []}' * 50
_BODIES = {
    b"gzip": gzip.compress(_TEXT),
    b"deflate": zlib.compress(_TEXT),
    b"br": brotli.compress(_TEXT),
    b"zstd": zstandard.ZstdCompressor().compress(_TEXT),
}


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    for position in range(0, len(body), 7):
        yield body[position : position + 7]


@pytest.mark.parametrize("coding", list(_BODIES))
async def test_an_encoded_body_is_read(coding: bytes) -> None:
    """Whole and in pieces; the headers stop claiming an encoding and a length."""
    headers = [(b"Content-Encoding", coding), (b"content-length", b"9"), (b"x", b"y")]
    whole = decode_response(Prepared(200, headers, _BODIES[coding]))
    assert await whole.read() == _TEXT
    assert whole.headers == [(b"x", b"y")]
    parts = decode_response(Prepared(200, headers, _pieces(_BODIES[coding])))
    assert b"".join([chunk async for chunk in parts.chunks()]) == _TEXT
    await parts.aclose()


async def test_encodings_are_undone_in_reverse() -> None:
    """A body that was encoded twice comes out plain."""
    twice = gzip.compress(brotli.compress(_TEXT))
    response = decode_response(Prepared(200, [(b"content-encoding", b"br, gzip")], twice))
    assert await response.read() == _TEXT


@pytest.mark.parametrize("headers", [[], [(b"content-encoding", b"identity")]])
async def test_plain_responses_are_left_alone(headers: list[tuple[bytes, bytes]]) -> None:
    """The usual case costs nothing."""
    response = Prepared(200, headers, b"x")
    assert decode_response(response) is response


async def test_a_lie_about_the_encoding_is_an_upstream_error() -> None:
    """The client gets a clear 502, not a traceback."""
    response = decode_response(Prepared(200, [(b"content-encoding", b"gzip")], b"plain text"))
    with pytest.raises(UpstreamError, match="stated encoding"):
        await response.read()
    with pytest.raises(UpstreamError, match="cannot read"):
        decode_response(Prepared(200, [(b"content-encoding", b"lzma")], b""))


@pytest.mark.parametrize("coding", list(_BODIES))
async def test_an_encoded_body_that_was_cut_is_not_whole(coding: bytes) -> None:
    """Its framing may be in order: the cut happened before it was put on the wire."""
    headers = [(b"content-encoding", coding)]
    cut = _BODIES[coding][:-6]
    with pytest.raises(StreamTruncated):
        await decode_response(Prepared(200, headers, cut)).read()
    with pytest.raises(StreamTruncated):
        [chunk async for chunk in decode_response(Prepared(200, headers, _pieces(cut))).chunks()]
    assert await decode_response(Prepared(204, headers, b"")).read() == b""
