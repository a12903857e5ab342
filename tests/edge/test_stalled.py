"""Clients that do not go on are told so, or hung up on; answers that run are left alone."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from proxy.plan.exchange import ChatRequest, Reply
from tests.edge.driver import SSE_TYPE, FakeTurn, Rig, running

pytestmark = pytest.mark.anyio

SECONDS = 0.2
TURN = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
PROBE = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"


def _impatient(turn: FakeTurn | None = None) -> Rig:
    settings = {"server": {"client_seconds": SECONDS}}
    return Rig((turn or FakeTurn()).chat, overrides=settings)


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (b"", b""),
        (PROBE[:20], b"HTTP/1.1 408 "),
        (TURN % 100, b"HTTP/1.1 408 "),
        (TURN % 100 + b"{" * 50, b"HTTP/1.1 408 "),
    ],
)
async def test_whoever_stops_half_way_is_hung_up_on(sent: bytes, answer: bytes) -> None:
    """Silent, half a head, no body, half a body: nothing stays open, nothing is asked upstream."""
    turn = FakeTurn()
    async with running(_impatient(turn)) as port, asyncio.timeout(5):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        got = await reader.read()
        writer.close()
    assert got.startswith(answer)
    assert (b'"code":"request_timeout"' in got) == bool(answer)
    assert turn.asked == []


async def test_a_dripping_head_has_one_deadline() -> None:
    """A byte now and then does not buy another one."""
    async with running(_impatient()) as port, asyncio.timeout(5):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(PROBE[:-2] + b"X: ")
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(reader.read())
            while not reading.done():
                writer.write(b"x")
                await asyncio.sleep(SECONDS / 8)
        writer.close()
    assert reading.result().startswith(b"HTTP/1.1 408 ")


async def test_a_slow_upload_may_take_long() -> None:
    """As long as something comes."""
    turn = FakeTurn()
    async with running(_impatient(turn)) as port, asyncio.timeout(5):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(TURN % 12)
        for _ in range(12):
            await asyncio.sleep(SECONDS / 4)
            writer.write(b"x")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
        writer.close()
    assert [asked.body for asked in turn.asked] == [b"x" * 12]


@pytest.mark.parametrize("more", [b"", PROBE[:20]])
async def test_a_running_answer_is_left_alone(more: bytes) -> None:
    """Its client has said all, or has begun to say more, which waits."""

    async def stream() -> AsyncIterator[bytes]:
        yield b"data: 1\n\n"
        await asyncio.sleep(SECONDS * 3)
        yield b"data: [DONE]\n\n"

    async def chat(_: ChatRequest) -> Reply:
        return Reply(200, SSE_TYPE, stream())

    rig = Rig(chat, overrides={"server": {"client_seconds": SECONDS}})
    async with running(rig) as port, asyncio.timeout(5):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(TURN % 2 + b"{}" + more)
        got = await reader.readuntil(b"0\r\n\r\n")
        writer.close()
    assert b"data: [DONE]" in got


async def test_a_kept_connection_has_its_own_clock() -> None:
    """Between two requests a connection may be idle for longer."""
    async with running(_impatient()) as port, asyncio.timeout(5):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(2):
            writer.write(PROBE)
            assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
            await reader.readuntil(b"}")
            await asyncio.sleep(SECONDS * 2)
        writer.close()
