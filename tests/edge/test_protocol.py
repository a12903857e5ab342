"""Connections: limits of a request's head, and refusals in JSON."""

import asyncio
from collections.abc import AsyncIterator

import orjson
import pytest
import uvicorn
from uvicorn.server import ServerState

from proxy.edge import protocol
from proxy.edge.protocol import MAX_HEAD_BYTES, Protocol, ignore_offer
from proxy.plan.exchange import ChatRequest, Reply
from tests.edge.driver import SSE_TYPE, FakeTurn, Rig, exchange, read_response, running
from tests.edge.told import Told

pytestmark = pytest.mark.anyio

PROBE = b"GET /livez HTTP/1.1\r\nHost: x\r\n"
TURN = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"


async def test_head_that_never_ends_is_refused() -> None:
    """Headers that keep coming end at the limit, long before memory does."""
    async with running(Rig()) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(PROBE + b"X: ")
        for _ in range(MAX_HEAD_BYTES // 1024 + 1):
            writer.write(b"x" * 1024)
            await writer.drain()
        answer = await read_response(reader)
        writer.close()
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert orjson.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "headers_too_large"


async def test_generous_head_is_fine() -> None:
    """Headers of 32 KB, as single sign-on likes them, are no problem."""
    async with running(Rig()) as port:
        answer = await exchange(port, PROBE + b"X: " + b"x" * 32_768 + b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ")


async def test_large_bodies_do_not_count_as_heads() -> None:
    """The limit is for heads: bodies on the same connection are measured by their own cap."""
    turn = FakeTurn()
    body = b"x" * 300_000
    request = (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n" + body
    )
    async with running(Rig(turn.chat)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(3):
            writer.write(request)
            assert (await read_response(reader)).startswith(b"HTTP/1.1 200 ")
        writer.close()
    assert [asked.body for asked in turn.asked] == [body] * 3


async def test_huge_announcements_are_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No memory is taken for a body that may never come: it is collected as it arrives."""
    monkeypatch.setattr(protocol, "LARGEST_BYTES", 299_999)
    monkeypatch.setattr(protocol, "Fill", None)
    turn = FakeTurn()
    body = bytes(range(250)) * 1200
    async with running(Rig(turn.chat)) as port:
        answer = await exchange(port, TURN % len(body) + body)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert [asked.body for asked in turn.asked] == [body]


class Line(asyncio.Transport):
    """A connection that notes when it is not read any more."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses = 0

    def pause_reading(self) -> None:
        self.pauses += 1


@pytest.mark.parametrize("pieces", [(70_000,), (1_000, 70_000)])
async def test_body_that_nobody_reads_yet_is_held_back(pieces: tuple[int, ...]) -> None:
    """What waits for a request to be worked on is one read, not all that a client sends."""
    working = asyncio.Event()

    async def work(_scope: object, _receive: object, _send: object) -> None:
        await working.wait()

    config = uvicorn.Config(work, http=Protocol, ws="none", log_config=None)
    config.load()
    line = Line()
    connection = Protocol(config, ServerState(), {}, asyncio.get_running_loop())
    connection.connection_made(line)
    connection.data_received(TURN % 300_000)
    for size in pieces:
        assert line.pauses == 0
        connection.data_received(b"x" * size)
    assert line.pauses == 1
    connection.cycle.disconnected = True
    working.set()
    await asyncio.wait(connection.tasks)


async def test_garbage_behind_a_running_stream_does_not_get_into_it() -> None:
    """A refusal is never written into the answer to an earlier request."""
    ended = asyncio.Event()

    async def stream() -> AsyncIterator[bytes]:
        try:
            yield b"data: 1\n\n"
            await asyncio.sleep(30)
        finally:
            ended.set()

    async def chat(_: ChatRequest) -> Reply:
        return Reply(200, SSE_TYPE, stream())

    async with running(Rig(chat)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(TURN % 2 + b"{}")
        await reader.readuntil(b"data: 1\n\n")
        writer.write(b"\x00\x01garbage\r\n\r\n")
        rest = await reader.read()
        async with asyncio.timeout(1):
            await ended.wait()
        writer.close()
    assert b"HTTP/1.1" not in rest


def test_offer_is_hidden_from_the_parser() -> None:
    """An offer to change the protocol is renamed in the head only."""
    data = b"POST / HTTP/1.1\r\nUPGRADE: h2c\r\nA: b\r\n\r\nbody\r\nUpgrade: h2c\r\n"
    hidden = data.replace(b"UPGRADE:", b"trailer:", 1)
    assert ignore_offer(data) == hidden


def test_websocket_is_not_hidden() -> None:
    """A WebSocket cannot be ignored, so it is left to be refused."""
    data = b"GET / HTTP/1.1\r\nUpgrade:  WebSocket\r\n\r\n"
    assert ignore_offer(data) == data


async def test_websocket_is_refused_on_the_wire() -> None:
    """A WebSocket client gets a 501 that its error shows."""
    request = (
        b"GET /v1/realtime?model=m HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"
        b"Upgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    async with running(Rig()) as port:
        answer = await exchange(port, request)
    assert answer.startswith(b"HTTP/1.1 501 ")
    assert b"WebSocket connections are not forwarded" in answer


@pytest.mark.parametrize("path", [b"/livez", b"/metrics", b"/nothing"])
async def test_head_requests_are_answered_at_once(path: bytes) -> None:
    """Probes use HEAD: on a kept connection, there is no body to wait for."""
    async with running(Rig()) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(2):
            writer.write(b"HEAD " + path + b" HTTP/1.1\r\nHost: x\r\n\r\n")
            async with asyncio.timeout(5):
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 ")
        writer.close()


async def test_an_idle_connection_is_closed() -> None:
    """So long after its last answer; one timer serves all its requests."""
    told = Told()
    told.connection.timeout_keep_alive = 0.1  # type: ignore[assignment]  # uvicorn has whole seconds
    for _ in range(3):
        await told.read(TURN % 2 + b"{}")
        await asyncio.sleep(0.06)
    assert not told.wire.is_closing()
    await asyncio.sleep(0.15)
    assert told.wire.is_closing()
    assert len(told.asked) == 3


@pytest.mark.parametrize("begun", [b"POST /", TURN % 2, TURN % 2 + b"{}"])
async def test_a_connection_at_work_is_not_closed(begun: bytes) -> None:
    """Who is late with a request is told so elsewhere, and who waits for an answer gets it."""
    told = Told()
    told.connection.timeout_keep_alive = 0.05  # type: ignore[assignment]  # as above
    await told.read(TURN % 2 + b"{}")
    told.answering.clear()
    await told.read(begun)
    await asyncio.sleep(0.15)
    assert not told.wire.is_closing()
    told.answering.set()
    await told.read((TURN % 2 + b"{}")[len(begun) :])
    await asyncio.sleep(0.15)
    assert told.wire.is_closing()
    assert len(told.asked) == 2


async def test_who_watches_a_connection_is_told_of_its_end() -> None:
    """Once, at once when it has ended already, and not after it said so."""
    told, heard = Told(), []
    told.connection.watch(lambda: heard.append(1))
    told.connection.watch(None)
    told.connection.watch(lambda: heard.append(2))
    told.connection.connection_lost(None)
    told.connection.watch(lambda: heard.append(3))
    assert heard == [2, 3]
