"""What comes down is what the upstream wrote, or an error where it broke off."""

import gzip

import pytest

from proxy.errors import StreamTruncated, UpstreamError
from proxy.upstream.transport import Transport
from tests.fakes.scripted import (
    CUT,
    EARLY,
    HANG,
    RST,
    Drip,
    Script,
    ScriptedUpstream,
    Step,
    Wait,
    chunk,
    head,
    json_reply,
    last_chunk,
    reply,
    sse_reply,
    stream_head,
)
from tests.transports.ask import pieces, post, read_error

pytestmark = pytest.mark.anyio


async def test_response_headers_come_back_raw(transport: Transport) -> None:
    """Case, order and repeats of the answer's headers are the upstream's."""
    fields = [("X-Request-Id", "r"), ("x-ratelimit-a", "1"), ("X-Ratelimit-A", "2")]
    async with ScriptedUpstream([json_reply(b"{}", *fields)]) as upstream:
        response = await transport.send(post(upstream.url))
        await response.read()
    assert [(name.decode(), value.decode()) for name, value in response.headers] == [
        ("Content-Type", "application/json"),
        *fields,
        ("Content-Length", "2"),
    ]


async def test_compressed_answer_stays_compressed(transport: Transport) -> None:
    """An encoded body is handed on as it is, with its header."""
    packed = gzip.compress(b"x" * 1000)
    script = [json_reply(packed, ("Content-Encoding", "gzip"))]
    async with ScriptedUpstream(script) as upstream:
        response = await transport.send(post(upstream.url))
        assert await response.read() == packed
    assert (b"Content-Encoding", b"gzip") in response.headers


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("GET", head(204)),
        ("GET", head(304, ("Content-Length", "10"), ("ETag", "e"))),
        ("HEAD", head(200, ("Content-Length", "10"))),
        ("GET", reply(200, b"")),
    ],
)
async def test_answers_without_a_body_leave_the_connection_usable(
    transport: Transport, method: str, answer: bytes
) -> None:
    """204, 304 and HEAD have no body, whatever length they state; the connection is reused."""
    async with ScriptedUpstream([answer], [json_reply(b"{}")]) as upstream:
        response = await transport.send(post(upstream.url, None, method=method))
        assert [piece async for piece in response.chunks()] == []
        assert await (await transport.send(post(upstream.url))).read() == b"{}"
    assert upstream.connections == 1


async def test_redirect_is_an_answer(transport: Transport) -> None:
    """A redirect reaches the client; following it could carry the key elsewhere."""
    async with ScriptedUpstream([reply(307, b"", ("Location", "http://127.0.0.1:1/"))]) as upstream:
        response = await transport.send(post(upstream.url))
        await response.read()
    assert response.status == 307


async def test_cookies_are_forgotten(transport: Transport) -> None:
    """A cookie that the upstream sets for one caller is not sent for the next."""
    answers = [[json_reply(b"{}", ("Set-Cookie", "session=1; Path=/"))], [json_reply(b"{}")]]
    async with ScriptedUpstream(*answers) as upstream:
        for _ in answers:
            await (await transport.send(post(upstream.url))).read()
    assert upstream.requests[1].header("cookie") is None


async def test_informational_answers_are_skipped(transport: Transport) -> None:
    """100 and 103 are not the answer."""
    early = head(103, ("Link", "</x>; rel=preload"))
    async with ScriptedUpstream([head(100), early, Wait(0.01), json_reply(b"{}")]) as upstream:
        response = await transport.send(post(upstream.url))
        assert (response.status, await response.read()) == (200, b"{}")


@pytest.mark.parametrize(
    "script",
    [
        [Drip(stream_head() + chunk(b"data: 1\n\n") + chunk("ü".encode()) + last_chunk())],
        [stream_head(), chunk(b"data: 1\n\n\xc3"), Wait(0.01), chunk(b"\xbc"), last_chunk()],
        [stream_head(), chunk(b"data: 1\n\n\xc3\xbc"), last_chunk(("X-Sum", "1"))],
        [head(200, ("Connection", "close")) + b"data: 1\n\n\xc3", Wait(0.01), b"\xbc", CUT],
        [b"HTTP/1.0 200 OK\r\n\r\n", b"data: 1\n\n\xc3\xbc", CUT],
        [reply(200, b"data: 1\n\n\xc3\xbc")],
    ],
    ids=["1-byte writes", "split utf-8", "trailers", "until close", "HTTP/1.0", "length"],
)
async def test_body_arrives_whole(transport: Transport, script: Script) -> None:
    """However the upstream frames and cuts its body, its bytes arrive and then it ends."""
    async with ScriptedUpstream(script) as upstream:
        response = await transport.send(post(upstream.url))
        assert b"".join([piece async for piece in response.chunks()]) == "data: 1\n\nü".encode()


async def test_pieces_arrive_as_they_are_written(transport: Transport) -> None:
    """A piece is handed on before the next one exists."""
    script: list[Step] = [stream_head(), chunk(b"one"), HANG]
    async with ScriptedUpstream(script) as upstream:
        response = await transport.send(post(upstream.url))
        assert await anext(response.chunks()) == b"one"
        await response.aclose()


async def test_sse_pieces_come_in_order(transport: Transport) -> None:
    """A stream of frames is the concatenation of what was written."""
    frames = [f"data: {n}\n\n".encode() for n in range(50)]
    async with ScriptedUpstream(sse_reply(frames)) as upstream:
        response = await transport.send(post(upstream.url))
        assert await response.read() == b"".join(frames)


async def test_long_headers_are_accepted(transport: Transport) -> None:
    """A header of 30 KB, as some gateways send, is no error."""
    async with ScriptedUpstream([json_reply(b"{}", ("X-Long", "y" * 30_000))]) as upstream:
        response = await transport.send(post(upstream.url))
        assert await response.read() == b"{}"


async def test_answer_may_come_before_the_body_is_sent(transport: Transport) -> None:
    """An upstream that refuses a body early is heard, and its connection is not reused."""
    refusal = json_reply(b'{"error": {}}', ("Connection", "close"), status=413)
    async with ScriptedUpstream([EARLY, refusal, Wait(0.2), CUT], [json_reply(b"{}")]) as upstream:
        response = await transport.send(post(upstream.url, pieces(*[b"x" * 1000] * 50)))
        assert (response.status, await response.read()) == (413, b'{"error": {}}')
        assert await (await transport.send(post(upstream.url))).read() == b"{}"
    assert upstream.connections == 2


@pytest.mark.parametrize(
    "script",
    [
        [head(200, ("Content-Length", "9")) + b"some", Wait(0.01), CUT],
        [stream_head() + chunk(b"some"), Wait(0.01), CUT],
        [stream_head() + b"9\r\nsome", Wait(0.01), CUT],
        [stream_head() + chunk(b"some"), Wait(0.01), b"zz\r\n", CUT],
        [stream_head() + chunk(b"some"), Wait(0.01), RST],
        [head(200, ("Content-Length", "9")) + b"some", Wait(0.01), RST],
        [head(200, ("Connection", "close")) + b"some", Wait(0.01), RST],
    ],
    ids=[
        "cut in length",
        "cut between chunks",
        "cut inside chunk",
        "broken chunk",
        "reset between chunks",
        "reset in length",
        "reset until close",
    ],
)
async def test_cut_answer_is_an_error(transport: Transport, script: Script) -> None:
    """An answer that breaks off gives what came and then StreamTruncated, never a normal end."""
    async with ScriptedUpstream(script) as upstream:
        got, error = await read_error(transport, post(upstream.url))
    assert got == b"some"
    assert isinstance(error, StreamTruncated)


async def test_read_reports_a_cut_answer(transport: Transport) -> None:
    """Reading everything at once hides no truncation."""
    async with ScriptedUpstream([head(200, ("Content-Length", "9")) + b"some", CUT]) as upstream:
        response = await transport.send(post(upstream.url))
        with pytest.raises(StreamTruncated):
            await response.read()


@pytest.mark.parametrize(
    "garbage",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"\x16\x03\x01\x00\x00" * 10,
        b"\r\n\r\n\r\n",
    ],
)
async def test_garbage_is_an_upstream_error(transport: Transport, garbage: bytes) -> None:
    """What is not HTTP is a bad gateway."""
    async with ScriptedUpstream([garbage, Wait(0.01), CUT]) as upstream:
        with pytest.raises(UpstreamError) as caught:
            await transport.send(post(upstream.url))
    assert caught.value.status == 502
