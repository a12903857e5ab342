"""A connection to servers that do not behave."""

import pytest

from proxy.errors import StreamTruncated, UpstreamError
from proxy.upstream.h1_transport import H1Transport
from tests.fakes.scripted import CUT, RST, Drip, Script, ScriptedUpstream, json_reply
from tests.transports.ask import post, read_error

pytestmark = pytest.mark.anyio

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"


async def _read(*scripts: Script) -> list[bytes]:
    """The bodies of as many answers as there are scripts, one request after the other."""
    transport = H1Transport()
    async with ScriptedUpstream(*scripts) as upstream:
        got = [await (await transport.send(post(upstream.url))).read() for _ in scripts]
        await transport.aclose()
    return got


async def test_trailers_are_passed_over() -> None:
    """Fields after the last chunk are no headers, and the connection goes on."""
    first = CHUNKED + b"2\r\nab\r\n0\r\nx-t: 1\r\n\r\n"
    assert await _read([Drip(first)], [json_reply(b"{}")]) == [b"ab", b"{}"]


async def test_answer_that_nobody_asked_for_is_not_the_next_ones() -> None:
    """A second answer on the wire ends the connection instead of answering another request."""
    twice = OK + b"content-length: 1\r\n\r\na" + OK + b"content-length: 1\r\n\r\nb"
    assert await _read([twice], [json_reply(b"{}")]) == [b"a", b"{}"]


async def test_bytes_after_an_answer_end_the_connection() -> None:
    """The same for bytes that are no answer."""
    assert await _read([OK + b"content-length: 1\r\n\r\nabc"], [json_reply(b"{}")]) == [b"a", b"{}"]


async def test_body_without_length_ends_with_the_connection() -> None:
    """HTTP/1.0 servers do that."""
    assert await _read([b"HTTP/1.0 200 OK\r\n\r\nabc", CUT]) == [b"abc"]


@pytest.mark.parametrize(
    "script",
    [
        [CHUNKED + b"5\r\nab", CUT],
        [CHUNKED + b"2\r\nabXX\r\n"],
        [CHUNKED + b"zz\r\nab\r\n"],
        [OK + b"content-length: 5\r\n\r\nab", CUT],
        [OK + b"\r\nab", RST],
    ],
)
async def test_broken_body_is_an_error(script: Script) -> None:
    """A body that is cut, reset or garbled never looks whole."""
    transport = H1Transport()
    async with ScriptedUpstream(script) as upstream:
        _, error = await read_error(transport, post(upstream.url))
        await transport.aclose()
    assert isinstance(error, StreamTruncated)


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"x: " + b"y" * 200_000 + b"\r\n\r\n",
        OK + b"content-length: 1\r\ncontent-length: 2\r\n\r\na",
        OK + b"content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nabc",
        b"SSH-2.0-server\r\n",
    ],
)
async def test_what_is_no_answer_is_an_upstream_error(answer: bytes) -> None:
    """Heads that are endless, ambiguous, or not HTTP."""
    transport = H1Transport()
    async with ScriptedUpstream([answer, CUT]) as upstream:
        with pytest.raises(UpstreamError):
            await (await transport.send(post(upstream.url))).read()
        await transport.aclose()
