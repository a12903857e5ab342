"""Forwarding: every byte up and down as it was, nothing buffered, usage written down."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import suppress

import orjson
import pytest

from proxy.errors import ConnectFailed, StreamTruncated
from proxy.plan.identity import Caller
from proxy.upstream.aiohttp_transport import AiohttpTransport
from proxy.upstream.transport import Prepared, UpstreamRequest
from tests.edge.driver import JSON_TYPE, SSE_TYPE, Client, KeyBook, Rig, ask, refuse_chat, running
from tests.fakes.scripted import CUT, HANG, ScriptedUpstream, Wait, head, json_reply, reply
from tests.fakes.transport import FakeTransport

pytestmark = pytest.mark.anyio

USAGE = {"prompt_tokens": 5, "total_tokens": 5}
EMBEDDINGS = orjson.dumps({"model": "ada-2", "data": [], "usage": USAGE})


def _rig(transport: FakeTransport) -> Rig:
    return Rig(chat=refuse_chat, transport=transport)


async def test_url_is_forwarded_byte_for_byte() -> None:
    """Percent-encoding, brackets and repeated keys of a URL reach the upstream as sent."""
    transport = FakeTransport(Prepared(200, JSON_TYPE, b"{}"))
    await ask(_rig(transport).app, "GET", "/v1/files/a%2Fb?include[]=x&after=%20&after=")
    assert transport.sent[0].url == "http://up.test/v1/files/a%2Fb?include[]=x&after=%20&after="


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_every_method_is_forwarded(method: str) -> None:
    """Whatever the API does with a method is the upstream's business."""
    transport = FakeTransport(Prepared(200, [], b""))
    answered = await ask(_rig(transport).app, method, "/v1/things/1")
    assert answered.status == 200
    assert transport.sent[0].method == method


async def test_stored_completions_are_forwarded() -> None:
    """Listing stored completions has the path of a chat turn and is none."""
    transport = FakeTransport(Prepared(200, JSON_TYPE, b"{}"))
    assert (await ask(_rig(transport).app, "GET", "/v1/chat/completions?limit=2")).status == 200


async def test_binary_body_is_forwarded_untouched() -> None:
    """Multipart and compressed bodies go up as they are, with their headers."""
    transport = FakeTransport(Prepared(200, JSON_TYPE, b"{}"))
    body = b'--b\r\nContent-Disposition: form-data; name="f"\r\n\r\n\x00\xff\r\n--b--'
    headers = [("content-type", "multipart/form-data; boundary=b"), ("content-encoding", "snappy")]
    await ask(_rig(transport).app, "POST", "/v1/files", body, headers)
    (sent,) = transport.sent
    assert sent.body == body
    assert (b"content-type", b"multipart/form-data; boundary=b") in sent.headers
    assert (b"content-encoding", b"snappy") in sent.headers


async def test_upload_streams() -> None:
    """A large body goes up piece by piece, at the pace at which the upstream takes it."""
    seen: list[bytes] = []

    class Slow(FakeTransport):
        async def send(self, request: UpstreamRequest) -> Prepared:
            assert isinstance(request.body, AsyncIterator)
            seen.append(await anext(request.body))
            assert seen == [b"one"], "nothing is read ahead"
            seen.extend([piece async for piece in request.body])
            return Prepared(200, JSON_TYPE, b"{}")

    answered = await Client(b"one", b"two", b"three").ask(
        _rig(Slow()).app, "POST", "/v1/files", [("content-length", "11")]
    )
    assert answered.status == 200
    assert seen == [b"one", b"two", b"three"]


async def test_answer_is_returned_untouched() -> None:
    """Status, range headers, codings and bytes of the upstream reach the client."""
    body = gzip.compress(b"partial")
    headers = [
        (b"Content-Type", b"audio/mpeg"),
        (b"Content-Range", b"bytes 0-9/100"),
        (b"Content-Encoding", b"gzip"),
        (b"Content-Length", str(len(body)).encode()),
        (b"openai-processing-ms", b"12"),
        (b"x-ratelimit-remaining-requests", b"9"),
        (b"retry-after-ms", b"20"),
    ]
    answered = await ask(
        _rig(FakeTransport(Prepared(206, headers, body))).app, "GET", "/v1/files/1/content"
    )
    assert (answered.status, answered.body) == (206, body)
    for name, value in headers:
        assert answered.headers[name.decode().lower()] == value.decode()


async def test_upstream_error_is_returned_verbatim() -> None:
    """An error of the upstream is the client's to see, HTML or not."""
    headers = [(b"content-type", b"text/html"), (b"retry-after", b"7")]
    rig = _rig(FakeTransport(Prepared(503, headers, b"<h1>busy</h1>"), Prepared(200, [], b"{}")))
    answered = await ask(rig.app, "GET", "/v1/models")
    assert (answered.status, answered.body) == (503, b"<h1>busy</h1>")
    assert answered.headers["retry-after"] == "7"
    assert (await ask(rig.app, "GET", "/v1/models")).status == 200
    value = rig.metrics.registry.get_sample_value
    assert value("usher_upstream_errors_total", {"kind": "http_5xx"}) == 1


async def test_unreachable_upstream_is_a_502() -> None:
    """Without an upstream the client gets an error in OpenAI's shape."""
    answered = await ask(_rig(FakeTransport(ConnectFailed("No route."))).app, "GET", "/v1/models")
    assert answered.status == 502
    assert b'"code":"upstream_unreachable"' in answered.body


async def test_usage_is_written_down() -> None:
    """What a forwarded reply says about usage is a line of the ledger."""
    rig = _rig(FakeTransport(Prepared(200, JSON_TYPE, EMBEDDINGS)))
    await ask(rig.app, "POST", "/v1/embeddings", b"{}", [("x-request-id", "r1")])
    (row,) = rig.ledger.rows
    assert (row.request_id, row.context, row.answered_model) == ("r1", "main", "ada-2")
    assert (row.prompt_tokens, row.completion_tokens, row.outcome) == (5, None, "ok")


async def test_ledger_names_the_id_that_the_client_sees() -> None:
    """An upstream's own request id is on the response, so the ledger's line is found by it."""
    headers = [*JSON_TYPE, (b"X-Request-Id", b"up_7")]
    rig = _rig(FakeTransport(Prepared(200, headers, EMBEDDINGS)))
    await ask(rig.app, "POST", "/v1/embeddings", b"{}")
    assert [row.request_id for row in rig.ledger.rows] == ["up_7"]


async def test_reply_without_usage_is_not_written_down() -> None:
    """Listing models is no use of a model."""
    rig = _rig(FakeTransport(Prepared(200, JSON_TYPE, b'{"data":[]}')))
    await ask(rig.app, "GET", "/v1/models")
    assert rig.ledger.rows == []


async def test_gateway_key_stays_here() -> None:
    """The caller's gateway key is checked and never reaches the upstream."""
    transport = FakeTransport(Prepared(200, JSON_TYPE, b"{}"))
    book = KeyBook({"s3cret": Caller(key="alice", used_gateway_key=True)})
    rig = Rig(chat=refuse_chat, transport=transport, keys=book)
    assert (await ask(rig.app, "GET", "/v1/models")).status == 401
    answered = await ask(rig.app, "GET", "/v1/models", None, [("authorization", "Bearer s3cret")])
    assert answered.status == 200
    assert len(transport.sent) == 1
    assert b"s3cret" not in repr(transport.sent[0].headers).encode()


async def test_own_credential_is_forwarded() -> None:
    """Without a configured key the caller's own Authorization goes up."""
    transport = FakeTransport(Prepared(200, JSON_TYPE, b"{}"))
    await ask(_rig(transport).app, "GET", "/v1/models", None, [("authorization", "Bearer sk-me")])
    assert (b"authorization", b"Bearer sk-me") in transport.sent[0].headers


async def test_provider_is_chosen_by_model() -> None:
    """With several providers a JSON body's model decides, as it does for chat."""
    transport = FakeTransport(answer=lambda _: Prepared(200, JSON_TYPE, b"{}"))
    provider = {"name": "near", "models": ["ada*"], "base_url": "http://near.test/v1"}
    rig = Rig(transport=transport, overrides={"providers": [provider]})
    json_type = [("content-type", "application/json")]
    for body in (
        b'{"input":"x","model":"ada-2"}',
        b'{"model":"other"}',
        b"{broken",
        b'{"model":7}',
    ):
        await ask(rig.app, "POST", "/v1/embeddings", body, json_type)
    hosts = [request.url.split("/")[2] for request in transport.sent]
    assert hosts == ["near.test", "up.test", "up.test", "up.test"]


async def test_websocket_is_refused_clearly() -> None:
    """Realtime over a WebSocket is a 501 instead of a request that hangs."""
    answered = await ask(
        _rig(FakeTransport()).app, "GET", "/v1/realtime", None, [("upgrade", "WebSocket")]
    )
    assert answered.status == 501
    assert b"WebSocket" in answered.body


async def test_cut_upload_is_nobodys_request() -> None:
    """A client that leaves inside its upload gets the upstream's connection cut, too."""

    class Reader(FakeTransport):
        async def send(self, request: UpstreamRequest) -> Prepared:
            assert isinstance(request.body, AsyncIterator)
            _ = [piece async for piece in request.body]
            raise AssertionError("the upload never ended")

    client = Client(b"half", cut=True)
    client.leave()
    answered = await client.ask(_rig(Reader()).app, "POST", "/v1/files", [("content-length", "9")])
    assert answered.status == 0


async def test_client_that_is_gone_before_its_body_is_nobody() -> None:
    """A connection that ends behind the headers reaches no upstream."""
    transport = FakeTransport()
    client = Client(cut=True)
    client.leave()
    await client.receive()
    answered = await client.ask(_rig(transport).app, "POST", "/v1/x", [("content-length", "9")])
    assert (answered.status, transport.sent) == (0, [])


async def test_broken_download_is_not_completed() -> None:
    """A download that the upstream breaks off does not look complete."""

    async def body() -> AsyncIterator[bytes]:
        yield b"half"
        raise StreamTruncated("The upstream ended early.")

    headers = [(b"content-type", b"audio/mpeg"), (b"content-length", b"100")]
    rig = _rig(FakeTransport(Prepared(200, headers, body())))
    answered = await ask(rig.app, "GET", "/v1/files/1/content")
    assert answered.body == b"half"
    assert not answered.complete


async def test_event_stream_passes_event_by_event() -> None:
    """Each read of the upstream is one write to the client, unchanged."""
    pieces = [b"id: 1\n", b"data: a\r\n\r\n", b": note\n\n", b"data: b\n\n"]

    async def body() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    answered = await ask(
        _rig(FakeTransport(Prepared(200, SSE_TYPE, body()))).app, "POST", "/v1/responses", b"{}"
    )
    assert answered.chunks == pieces


async def test_client_that_leaves_disconnects_the_upstream() -> None:
    """A silent upstream loses its connection within a second of the client's leaving."""
    async with ScriptedUpstream([HANG]) as upstream:
        overrides = {"upstream": {"base_url": f"{upstream.url}/v1"}}
        transport = AiohttpTransport()
        rig = Rig(transport=transport, overrides=overrides)
        async with running(rig) as port:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
            request = await upstream.received()
            writer.close()
            async with asyncio.timeout(1):
                await request.gone.wait()
        await transport.aclose()


async def test_slow_client_slows_the_upstream() -> None:
    """What a client does not read stays upstream instead of in our memory."""
    made = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal made
        while True:
            made += 1
            yield bytes(65536)
            await asyncio.sleep(0)

    rig = _rig(FakeTransport(Prepared(200, [(b"content-type", b"audio/mpeg")], endless())))
    async with running(rig) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.write(b"GET /v1/files/1/content HTTP/1.1\r\nHost: x\r\n\r\n")
        before = -1
        while before < made < 400:
            before = made
            await asyncio.sleep(0.3)
        assert made == before
        writer.close()


async def test_slow_upstream_slows_the_client() -> None:
    """What the upstream does not take stays with the client instead of in our memory."""
    taken = 0

    class Stuck(FakeTransport):
        async def send(self, request: UpstreamRequest) -> Prepared:
            nonlocal taken
            assert isinstance(request.body, AsyncIterator)
            taken = len(await anext(request.body))
            await asyncio.sleep(30)
            raise AssertionError("never here")

    async with running(_rig(Stuck())) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /v1/files HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n")
        sent = 0
        with suppress(TimeoutError):
            while sent < 25_000_000:
                writer.write(bytes(262144))
                await asyncio.wait_for(writer.drain(), 0.3)
                sent += 262144
        assert taken < 1_000_000
        assert sent < 25_000_000
        writer.transport.abort()


async def test_everything_survives_the_wire() -> None:
    """Through a real server and transport: chunked upload, 204, ranges, cut downloads."""
    scripts = [
        json_reply(EMBEDDINGS),
        head(204),
        reply(206, b"0123", ("Content-Range", "bytes 0-3/9"), ("Content-Type", "audio/mpeg")),
        head(200, ("Content-Length", "9"), ("Content-Type", "audio/mpeg")) + b"half",
    ]
    async with ScriptedUpstream(
        [scripts[0]], [scripts[1]], [scripts[2]], [scripts[3], Wait(0.05), CUT]
    ) as upstream:
        transport = AiohttpTransport()
        rig = Rig(transport=transport, overrides={"upstream": {"base_url": f"{upstream.url}/v1"}})
        async with running(rig) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(
                b"POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                b"3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"
                b"DELETE /v1/files/1 HTTP/1.1\r\nHost: x\r\n\r\n"
                b"GET /v1/files/1/content HTTP/1.1\r\nHost: x\r\nRange: bytes=0-3\r\n\r\n"
                b"GET /v1/files/2/content HTTP/1.1\r\nHost: x\r\n\r\n"
            )
            answer = await reader.read()
            writer.close()
        await transport.aclose()
    assert upstream.requests[0].body == b"abcdefg"
    assert upstream.requests[2].header("range") == "bytes=0-3"
    assert EMBEDDINGS in answer
    assert b"HTTP/1.1 204 " in answer
    assert b"content-range: bytes 0-3/9" in answer
    assert answer.endswith(b"\r\n\r\nhalf")
    assert [row.prompt_tokens for row in rig.ledger.rows] == [5]
