"""Bad input: forwarded unchanged or refused clearly, never a 500 of ours, never a traceback."""

import asyncio
import logging

import orjson
import pytest

from proxy.plan.exchange import ChatRequest, Reply
from tests.edge.driver import CHAT, JSON_TYPE, Client, FakeTurn, Rig, ask, exchange, running

pytestmark = pytest.mark.anyio

MEGABYTE = 1024 * 1024


def _tools(*tools: object) -> bytes:
    return orjson.dumps({"model": "m", "messages": [], "tools": tools})


def _function(**fields: object) -> dict[str, object]:
    return {"type": "function", "function": {"name": "f", **fields}}


LOOP = {"$defs": {"n": {"properties": {"n": {"$ref": "#/$defs/n"}}}}, "$ref": "#/$defs/n"}
BODIES = {
    "broken JSON": b'{"messages": [',
    "no JSON": b"\xff\xfe\x00",
    "empty": b"",
    "no object": b"[1, 2]",
    "a number": b"7",
    "65-bit integer": b'{"seed": 36893488147419103232}',
    "duplicate keys": b'{"model": "a", "model": "b"}',
    "lone surrogate": b'{"messages":[{"role":"user","content":"\\ud800"}]}',
    "raw control character": b'{"model": "a\x00b"}',
    "invalid UTF-8 in a string": b'{"model": "\xff"}',
    "byte order mark": b'\xef\xbb\xbf{"model": "m"}',
    "tools: null": b'{"tools": null}',
    "tools that are no objects": _tools(1, "x", None, []),
    "duplicate names": _tools(_function(), _function()),
    "name of 65 characters": _tools(_function(name="x" * 65)),
    "recursive $ref": _tools(_function(parameters=LOOP)),
    "description of 1 MB": _tools(_function(description="x" * MEGABYTE)),
    "messages: []": b'{"messages": []}',
    "deep nesting": b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
async def test_odd_body_reaches_the_turn_unchanged(body: bytes) -> None:
    """The edge judges no JSON: the turn gets the client's bytes, and its answer comes back."""
    refusal = Reply(400, JSON_TYPE, b'{"error":{"message":"upstream says no"}}')
    turn = FakeTurn(refusal)
    answered = await ask(Rig(turn.chat).app, "POST", CHAT, body)
    assert (answered.status, answered.body) == (400, refusal.body)
    assert turn.asked[0].body == body


POST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
ODD_REQUESTS = {
    "two lengths": POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "length and chunks": POST
    + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "broken length": POST + b"Content-Length: -2\r\n\r\n",
    "broken chunk": POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
    "space before a colon": b"GET /livez HTTP/1.1\r\nHost : x\r\n\r\n",
    "folded header": b"GET /livez HTTP/1.1\r\nHost: x\r\n folded\r\nX: y\r\n\r\n",
    "control character in a header": b"GET /livez HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n",
    "raw UTF-8 in the path": b"GET /v1/\xc3\xbc HTTP/1.1\r\nHost: x\r\n\r\n",
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "CONNECT": b"CONNECT example.test:443 HTTP/1.1\r\nHost: example.test:443\r\n\r\n",
    "asterisk": b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
    "two Authorization headers": POST
    + b"Authorization: Bearer a\r\nAuthorization: Bearer b\r\nContent-Length: 2\r\n\r\n{}",
    "1 MB header": b"GET /livez HTTP/1.1\r\nHost: x\r\nX: " + b"x" * MEGABYTE + b"\r\n\r\n",
    "1 MB of headers": b"GET /livez HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 180_000 + b"\r\n",
    "1 MB URL": b"GET /v1/" + b"x" * MEGABYTE + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    "unknown coding": POST + b"Content-Encoding: rot13\r\nContent-Length: 2\r\n\r\n{}",
    "wrong coding": POST + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
    "dot segments": b"GET /v1/../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n",
}


@pytest.mark.parametrize("request_bytes", ODD_REQUESTS.values(), ids=ODD_REQUESTS.keys())
async def test_odd_request_is_refused_clearly(
    request_bytes: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever is no proper request gets a 4xx in OpenAI's shape and leaves no traceback."""
    async with running(Rig()) as port:
        answer = await exchange(port, request_bytes)
        assert b" 200 OK" in await exchange(port, b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.split(b" ")[1][:1] == b"4", head
    assert orjson.loads(body)["error"]["type"] == "invalid_request_error"
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_client_that_leaves_inside_its_upload_leaves_no_trace(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A cut upload never becomes a turn, an error or a leak."""
    turn = FakeTurn()
    rig = Rig(turn.chat)
    async with running(rig) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(POST + b"Content-Length: 99\r\n\r\n{")
        await writer.drain()
        await asyncio.sleep(0.05)
        assert rig.gate.inside == 1
        writer.close()
        await asyncio.sleep(0.05)
        assert rig.gate.inside == 0
    assert turn.asked == []
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_upgrade_offer_of_javas_client_is_ignored() -> None:
    """Java's HttpClient offers HTTP/2 on every first request; its body still arrives."""
    turn = FakeTurn()
    request = (
        POST + b"Connection: Upgrade, HTTP2-Settings\r\n"
        b"Upgrade: h2c\r\nHTTP2-Settings: AAEAAEAA\r\nContent-Length: 14\r\n\r\n"
    )
    async with running(Rig(turn.chat)) as port:
        assert b" 200 OK" in await exchange(port, request + b'{"model":"m1"}')
    assert turn.asked[0].body == b'{"model":"m1"}'


async def test_smuggled_request_is_no_request() -> None:
    """Bytes behind a body are the next request and get its answer, not the first one's."""
    asked: list[bytes] = []

    async def chat(request: ChatRequest) -> Reply:
        asked.append(request.body)
        return Reply(200, JSON_TYPE, b"{}")

    request = (
        POST + b"Content-Length: 2\r\n\r\n{}"
        b"GET /v1/../admin HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    )
    async with running(Rig(chat)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        answers = await reader.read()
        writer.close()
    assert asked == [b"{}"]
    assert answers.index(b" 200 OK") < answers.index(b" 400 Bad Request")


async def test_body_over_the_cap_over_the_wire() -> None:
    """A chunked body without a length is refused at the cap while it is still being sent."""
    rig = Rig(overrides={"server": {"max_body_bytes": 100_000}})
    async with running(rig) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(POST + b"Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(20):
            writer.write(b"2710\r\n" + bytes(10_000) + b"\r\n")
            await writer.drain()
        head = await reader.readuntil(b"\r\n\r\n")
        writer.close()
    assert b" 413 " in head


async def test_client_in_memory_leaves_like_one_on_the_wire() -> None:
    """A request that nobody waits for any more is not answered."""
    client = Client(b"{", cut=True)
    client.leave()
    assert (await client.ask(Rig().app, "POST", CHAT)).status == 0
