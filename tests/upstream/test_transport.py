"""What every transport does, over a loopback upstream that answers exactly as told."""

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator, Sequence

import pytest

from proxy.errors import (
    BadRequest,
    BodyTooLarge,
    ConnectFailed,
    StreamTruncated,
    UpstreamError,
    UpstreamTimeout,
)
from proxy.upstream.transport import PerLoop, Prepared, Transport, UpstreamRequest, site
from proxy.wire import Headers
from tests.fakes.scripted import (
    CLOSE_ON_NEXT,
    CUT,
    DEAF,
    EARLY,
    HANG,
    HEAR,
    RST,
    Drip,
    Received,
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

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    """Both event loops: they differ in how they report hang-ups."""
    return "asyncio", {"use_uvloop": request.param == "uvloop"}


FIELDS: Headers = [
    (b"content-type", b"application/json"),
    (b"x-stainless-lang", b"python"),
    (b"x-twice", b"1"),
    (b"x-twice", "ü".encode()),
]


def post(
    url: str,
    body: bytes | AsyncIterator[bytes] | None = b'{"a": 1}',
    *,
    method: str = "POST",
    headers: Headers | None = None,
    idle: float = 5.0,
) -> UpstreamRequest:
    fields = FIELDS if headers is None else headers
    return UpstreamRequest(method, url, fields, body, connect_seconds=2.0, idle_seconds=idle)


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
        await asyncio.sleep(0)


async def read_error(transport: Transport, request: UpstreamRequest) -> tuple[bytes, UpstreamError]:
    """What arrived of a body that does not end well, and the error it ended with."""
    response = await transport.send(request)
    got = b""
    try:
        async for piece in response.chunks():
            got += piece
    except UpstreamError as error:
        return got, error
    pytest.fail(f"the body ended as if it were whole: {got!r}")


async def test_request_goes_up_byte_for_byte(transport: Transport) -> None:
    """The upstream sees our headers, Host and the length, and nothing that a library adds."""
    async with ScriptedUpstream([json_reply(b"{}")]) as upstream:
        response = await transport.send(post(upstream.url + "/v1/chat/completions"))
        assert (response.status, await response.read()) == (200, b"{}")
    [got] = upstream.requests
    names = [name.lower() for name, _ in got.headers]
    assert sorted(names) == [
        "content-length",
        "content-type",
        "host",
        "x-stainless-lang",
        "x-twice",
        "x-twice",
    ]
    assert got.header("host") == f"127.0.0.1:{upstream.port}"
    assert b"x-twice: 1\r\nx-twice: \xc3\xbc\r\n" in got.raw
    assert got.raw.endswith(b'\r\n\r\n{"a": 1}')


@pytest.mark.parametrize(
    "target",
    [
        "/v1/files?after=a%2Fb&include[]=x&include[]=y",
        "/v1/files/a%20b%2Fc/content",
        "/v1/x?q={\"a\":'<b>'}&e=%C3%A4+|^`",
        "/v1//double///slash/",
        "/v1/x?a=b?c=/d",
        "/v1/x;p=1,2:3@$!*()'",
    ],
)
async def test_path_and_query_are_byte_exact(transport: Transport, target: str) -> None:
    """Escapes, brackets and odd characters arrive as the client wrote them."""
    async with ScriptedUpstream([json_reply(b"{}")]) as upstream:
        await (await transport.send(post(upstream.url + target, None, method="GET"))).read()
    assert upstream.requests[0].target == target


@pytest.mark.parametrize("query", ["", "?x=1"])
async def test_url_without_a_path_asks_for_the_root(transport: Transport, query: str) -> None:
    """An origin alone is the path `/`."""
    async with ScriptedUpstream([json_reply(b"{}")]) as upstream:
        await (await transport.send(post(upstream.url + query, None, method="GET"))).read()
    assert upstream.requests[0].target == "/" + query


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "OPTIONS", "POST", "PATCH", "PUT"])
async def test_every_method_goes_without_a_body(transport: Transport, method: str) -> None:
    """A request without a body has none on the wire, whatever its method."""
    async with ScriptedUpstream([head(204)]) as upstream:
        response = await transport.send(post(upstream.url, None, method=method, headers=[]))
        assert (response.status, await response.read()) == (204, b"")
    [got] = upstream.requests
    assert (got.method, got.body) == (method, b"")
    assert got.header("content-length") in {None, "0"}
    assert got.header("transfer-encoding") is None


async def test_iterator_body_is_chunked(transport: Transport) -> None:
    """A streamed body without a known length goes up in chunks."""
    async with ScriptedUpstream([json_reply(b"{}")]) as upstream:
        body = pieces(b"one,", b"two,", b"\x00\xff")
        await (await transport.send(post(upstream.url, body))).read()
    [got] = upstream.requests
    assert got.body == b"one,two,\x00\xff"
    assert (got.header("transfer-encoding"), got.header("content-length")) == ("chunked", None)


async def test_iterator_body_keeps_its_length(transport: Transport) -> None:
    """A streamed body whose length the client stated goes up with it: some servers want one."""
    async with ScriptedUpstream([json_reply(b"{}")]) as upstream:
        request = post(upstream.url, pieces(b"abc", b"def"), headers=[(b"content-length", b"6")])
        await (await transport.send(request)).read()
    [got] = upstream.requests
    assert got.raw.endswith(b"\r\n\r\nabcdef")
    assert (got.header("transfer-encoding"), got.header("content-length")) == (None, "6")


async def test_stale_length_is_corrected(transport: Transport) -> None:
    """A length left over from the client's body never contradicts the bytes that go up."""
    async with ScriptedUpstream([json_reply(b"{}")]) as upstream:
        request = post(upstream.url, b"12345", headers=[(b"content-length", b"99")])
        await (await transport.send(request)).read()
    assert upstream.requests[0].header("content-length") == "5"


async def test_large_body_arrives_whole(transport: Transport) -> None:
    """A body of several megabytes goes up unchanged."""
    body = bytes(range(256)) * 12_000
    async with ScriptedUpstream([json_reply(b"{}")]) as upstream:
        await (await transport.send(post(upstream.url, body))).read()
    assert upstream.requests[0].body == body


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


async def test_silence_before_the_answer_times_out(transport: Transport) -> None:
    """An upstream that says nothing is a timeout, and it is disconnected."""
    async with ScriptedUpstream([HANG]) as upstream:
        with pytest.raises(UpstreamTimeout):
            await transport.send(post(upstream.url, idle=0.1))
        await asyncio.wait_for(upstream.requests[0].gone.wait(), 1)


async def test_silence_inside_the_answer_times_out(transport: Transport) -> None:
    """An upstream that goes quiet inside its answer is a timeout."""
    async with ScriptedUpstream([stream_head() + chunk(b"some"), HANG]) as upstream:
        got, error = await read_error(transport, post(upstream.url, idle=0.1))
        await asyncio.wait_for(upstream.requests[0].gone.wait(), 1)
    assert (got, type(error)) == (b"some", UpstreamTimeout)


async def test_slow_steady_answer_does_not_time_out(transport: Transport) -> None:
    """The timeout counts silence, not the length of the answer."""
    steps: list[Step] = [stream_head()]
    for _ in range(6):
        steps += [chunk(b"."), Wait(0.05)]
    async with ScriptedUpstream([*steps, last_chunk()]) as upstream:
        response = await transport.send(post(upstream.url, idle=0.2))
        assert await response.read() == b"......"


async def test_upstream_that_takes_no_body_times_out(transport: Transport) -> None:
    """An upstream that stops reading our upload does not hold us for ever."""
    async with ScriptedUpstream([DEAF, HANG]) as upstream:
        with pytest.raises(UpstreamTimeout):
            await transport.send(post(upstream.url, bytes(32_000_000), idle=0.2))


async def test_slow_client_is_not_the_upstreams_silence(transport: Transport) -> None:
    """Waiting for the caller's own body is not held against the upstream."""

    async def slow() -> AsyncIterator[bytes]:
        yield b"a"
        await asyncio.sleep(0.3)
        yield b"b"

    async with ScriptedUpstream([json_reply(b"{}")]) as upstream:
        assert await (await transport.send(post(upstream.url, slow(), idle=0.1))).read() == b"{}"


async def test_answer_may_come_before_the_body_is_sent(transport: Transport) -> None:
    """An upstream that refuses a body early is heard, and its connection is not reused."""
    refusal = json_reply(b'{"error": {}}', ("Connection", "close"), status=413)
    async with ScriptedUpstream([EARLY, refusal, Wait(0.2), CUT], [json_reply(b"{}")]) as upstream:
        response = await transport.send(post(upstream.url, pieces(*[b"x" * 1000] * 50)))
        assert (response.status, await response.read()) == (413, b'{"error": {}}')
        assert await (await transport.send(post(upstream.url))).read() == b"{}"
    assert upstream.connections == 2


async def test_failure_of_the_callers_body_is_the_callers(transport: Transport) -> None:
    """What the body iterator raises comes out as it is, not as an upstream's fault."""

    async def broken() -> AsyncIterator[bytes]:
        yield b"a"
        await upstream.received()
        raise BodyTooLarge("too much")

    async with ScriptedUpstream([EARLY, HANG]) as upstream:
        with pytest.raises(BodyTooLarge):
            await transport.send(post(upstream.url, broken()))
        await asyncio.wait_for(upstream.requests[0].gone.wait(), 1)


async def test_cancelled_before_the_answer_disconnects(transport: Transport) -> None:
    """When the caller goes before the first byte, the upstream is let go at once."""
    async with ScriptedUpstream([HANG]) as upstream, asyncio.TaskGroup() as tasks:
        sending = tasks.create_task(transport.send(post(upstream.url)))
        request = await upstream.received()
        sending.cancel()
        await asyncio.wait_for(request.gone.wait(), 1)


async def test_cancelled_inside_the_request_sends_no_more(transport: Transport) -> None:
    """When the caller goes during an upload that stalls, the rest is dropped, not sent later."""
    body = bytes(32_000_000)
    script: list[Step] = [DEAF, Wait(0.2), HEAR, HANG]
    async with ScriptedUpstream(script) as upstream, asyncio.TaskGroup() as tasks:
        sending = tasks.create_task(transport.send(post(upstream.url, body)))
        request = await upstream.received()
        await asyncio.sleep(0.1)
        sending.cancel()
        await asyncio.wait_for(request.gone.wait(), 2)
    assert upstream.taken < len(body)


async def test_cancelled_inside_the_answer_disconnects(transport: Transport) -> None:
    """When the caller goes inside a stream, the upstream is let go at once."""
    script: list[Step] = [stream_head(), chunk(b"one"), HANG]
    async with ScriptedUpstream(script) as upstream, asyncio.TaskGroup() as tasks:
        started = asyncio.Event()

        async def listen() -> None:
            response = await transport.send(post(upstream.url))
            async for _ in response.chunks():
                started.set()

        listening = tasks.create_task(listen())
        await started.wait()
        listening.cancel()
        await asyncio.wait_for(upstream.requests[0].gone.wait(), 1)


async def test_unread_answer_is_let_go_on_close(transport: Transport) -> None:
    """Closing an answer that nobody reads disconnects an upstream that still writes."""
    script: list[Step] = [stream_head(), *[chunk(b"x" * 100_000)] * 50, HANG]
    async with ScriptedUpstream(script) as upstream:
        response = await transport.send(post(upstream.url))
        await response.aclose()
        await asyncio.wait_for(upstream.requests[0].gone.wait(), 1)
        await response.aclose()


async def test_connections_are_reused(transport: Transport) -> None:
    """One request after another needs one connection."""
    async with ScriptedUpstream(*[[json_reply(b"{}")]] * 5) as upstream:
        for _ in range(5):
            await (await transport.send(post(upstream.url))).read()
    assert upstream.connections == 1


async def test_many_requests_run_at_once(transport: Transport) -> None:
    """No pool limit makes one caller wait for another's stream."""
    arrived = asyncio.Event()

    def answer(request: Received) -> Sequence[Step]:
        if len(upstream.requests) == 150:
            arrived.set()
        return [stream_head(), HANG]

    async with ScriptedUpstream(answer=answer) as upstream:
        responses = await asyncio.gather(*(transport.send(post(upstream.url)) for _ in range(150)))
        assert arrived.is_set()
        await asyncio.gather(*(response.aclose() for response in responses))


async def test_connection_closed_while_idle_is_not_used(transport: Transport) -> None:
    """After the upstream hung up on an idle connection the next request opens another."""
    async with ScriptedUpstream([json_reply(b"{}"), CUT], [json_reply(b"{}")]) as upstream:
        await (await transport.send(post(upstream.url))).read()
        await asyncio.wait_for(upstream.requests[0].gone.wait(), 1)
        assert await (await transport.send(post(upstream.url))).read() == b"{}"
    assert [got.connection for got in upstream.requests] == [1, 2]


async def test_close_race_never_repeats_a_post(transport: Transport) -> None:
    """A connection that dies under a POST may have accepted it: an error, and no second copy."""
    async with ScriptedUpstream(
        [json_reply(b"{}"), CLOSE_ON_NEXT], [json_reply(b"{}")]
    ) as upstream:
        await (await transport.send(post(upstream.url))).read()
        with pytest.raises(UpstreamError) as caught:
            await transport.send(post(upstream.url))
    assert type(caught.value) is UpstreamError
    assert upstream.connections == 1


async def test_close_race_may_repeat_a_get(transport: Transport) -> None:
    """A request that changes nothing survives the same race, at the latest through `call`."""
    async with ScriptedUpstream(
        [json_reply(b"{}"), CLOSE_ON_NEXT], [json_reply(b"{}")]
    ) as upstream:
        request = post(upstream.url, None, method="GET")
        await (await transport.send(request)).read()
        try:
            response = await transport.send(request)
        except ConnectFailed:
            response = await transport.send(request)
        assert await response.read() == b"{}"
    assert upstream.connections == 2


@pytest.mark.parametrize("control", [CUT, RST])
async def test_hang_up_without_an_answer_is_no_connect_error(
    transport: Transport, control: Step
) -> None:
    """A POST that was read and not answered is never called safe to retry."""
    async with ScriptedUpstream([control]) as upstream:
        with pytest.raises(UpstreamError) as caught:
            await transport.send(post(upstream.url))
    assert type(caught.value) is UpstreamError
    assert caught.value.status == 502


async def test_refused_connection_is_a_connect_error(transport: Transport) -> None:
    """Nobody listens: nothing was accepted, and the message names the address without the query."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ConnectFailed, match=rf"127\.0\.0\.1:{port} \(\w+\)$"):
        await transport.send(post(f"http://127.0.0.1:{port}/v1?key=secret"))


async def test_unknown_host_is_a_connect_error(transport: Transport) -> None:
    """A name that resolves to nothing is a connect error."""
    with pytest.raises(ConnectFailed, match=r"upstream\.invalid"):
        await transport.send(post("http://upstream.invalid/v1"))


async def test_broken_tls_is_a_connect_error(transport: Transport) -> None:
    """A server that does not speak TLS accepted nothing."""

    async def answer_plainly(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head(400))
        writer.close()

    async with await asyncio.start_server(answer_plainly, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ConnectFailed):
            await transport.send(post(f"https://127.0.0.1:{port}/v1"))


async def test_silent_tls_server_is_a_connect_error(transport: Transport) -> None:
    """A handshake that never ends counts against the connect timeout."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}/v1"
        request = UpstreamRequest("POST", url, [], b"x", connect_seconds=0.1, idle_seconds=5)
        with pytest.raises(ConnectFailed):
            await transport.send(request)


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


async def test_long_headers_are_accepted(transport: Transport) -> None:
    """A header of 30 KB, as some gateways send, is no error."""
    async with ScriptedUpstream([json_reply(b"{}", ("X-Long", "y" * 30_000))]) as upstream:
        response = await transport.send(post(upstream.url))
        assert await response.read() == b"{}"


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/v1", "http:///v1", "http://[/v1"])
async def test_unusable_url_is_an_upstream_error(transport: Transport, url: str) -> None:
    """A wrong base URL is a clean 502."""
    with pytest.raises(UpstreamError):
        await transport.send(post(url))


async def test_header_that_would_split_a_request_is_refused(transport: Transport) -> None:
    """A line break in a header is the caller's fault and never reaches the wire."""
    async with ScriptedUpstream([json_reply(b"{}")]) as upstream:
        with pytest.raises(BadRequest):
            await transport.send(post(upstream.url, headers=[(b"x-a", b"1\r\nx-b: 2")]))
    assert upstream.requests == []


async def test_closed_transport_opens_anew(transport: Transport) -> None:
    """Closing gives back the connections; a later request is served all the same."""
    async with ScriptedUpstream([json_reply(b"{}")], [json_reply(b"{}")]) as upstream:
        await (await transport.send(post(upstream.url))).read()
        await transport.aclose()
        await transport.aclose()
        await asyncio.wait_for(upstream.requests[0].gone.wait(), 1)
        assert await (await transport.send(post(upstream.url))).read() == b"{}"


async def test_transport_serves_several_event_loops(transport: Transport) -> None:
    """Each loop gets sockets of its own: a gateway in a thread and a test may share a transport."""

    async def elsewhere(url: str) -> bytes:
        try:
            return await (await transport.send(post(url))).read()
        finally:
            await transport.aclose()

    async with ScriptedUpstream(*[[json_reply(b"{}")]] * 2) as upstream:
        assert await (await transport.send(post(upstream.url))).read() == b"{}"
        assert await asyncio.to_thread(asyncio.run, elsewhere(upstream.url)) == b"{}"
    assert upstream.connections == 2


async def test_sse_pieces_come_in_order(transport: Transport) -> None:
    """A stream of frames is the concatenation of what was written."""
    frames = [f"data: {n}\n\n".encode() for n in range(50)]
    async with ScriptedUpstream(sse_reply(frames)) as upstream:
        response = await transport.send(post(upstream.url))
        assert await response.read() == b"".join(frames)


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
