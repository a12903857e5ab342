"""The server: it serves, drains when told to stop, and ends in order."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from proxy.edge.server import Server
from proxy.plan.exchange import ChatRequest, Reply
from tests.edge.driver import SSE_TYPE, Rig, exchange, read_response, running
from tests.fakes.until import until

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
PROBE = b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"
TURN = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"


class Streamer:
    """A turn that streams until it may finish."""

    def __init__(self) -> None:
        self.finish = asyncio.Event()

    async def chat(self, _: ChatRequest) -> Reply:
        return Reply(200, SSE_TYPE, self._stream())

    async def _stream(self) -> AsyncIterator[bytes]:
        yield b"data: 1\n\n"
        await self.finish.wait()
        yield b"data: [DONE]\n\n"


async def _open_stream(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(TURN)
    await reader.readuntil(b"data: 1\n\n")
    return reader, writer


async def test_draining_lets_streams_finish() -> None:
    """After SIGTERM probes and new requests get a 503, a running stream its regular end."""
    turn = Streamer()
    rig = Rig(turn.chat)
    async with running(rig) as port:
        reader, writer = await _open_stream(port)
        os.kill(os.getpid(), signal.SIGTERM)
        await until(lambda: rig.gate.draining)
        assert b" 503 " in await exchange(port, PROBE)
        refused = await exchange(port, TURN)
        assert b" 503 " in refused
        assert b"retry-after: 1" in refused
        turn.finish.set()
        rest = await reader.read()
        writer.close()
    assert b"data: [DONE]" in rest
    assert rest.endswith(b"0\r\n\r\n")


async def test_second_signal_ends_streams_at_once() -> None:
    """An impatient operator gets a stop within a second or two; clients get an error event."""
    rig = Rig(Streamer().chat, overrides={"server": {"drain_seconds": 60}})
    async with asyncio.timeout(5), running(rig) as port:
        reader, writer = await _open_stream(port)
        os.kill(os.getpid(), signal.SIGTERM)
        await until(lambda: rig.gate.draining)
        os.kill(os.getpid(), signal.SIGINT)
        rest = await reader.read()
        writer.close()
    assert b'"code":"unavailable"' in rest
    assert rest.endswith(b"0\r\n\r\n")


async def test_drain_deadline_ends_streams() -> None:
    """A stream that outlives `drain_seconds` ends with an error event."""
    rig = Rig(Streamer().chat, overrides={"server": {"drain_seconds": 0.1}})
    async with asyncio.timeout(5), running(rig) as port:
        reader, writer = await _open_stream(port)
        os.kill(os.getpid(), signal.SIGTERM)
        rest = await reader.read()
        writer.close()
    assert b'"code":"unavailable"' in rest


async def test_idle_server_stops_at_once() -> None:
    """With nothing running a signal ends the server without waiting for the deadline."""
    async with (
        asyncio.timeout(3),
        running(Rig(overrides={"server": {"drain_seconds": 60}})) as port,
    ):
        assert b" 200 OK" in await exchange(port, PROBE)
        os.kill(os.getpid(), signal.SIGTERM)


async def test_reply_says_nothing_about_the_server() -> None:
    """Responses carry a date and no advertisement of the software."""
    async with running(Rig()) as port:
        answer = await exchange(port, PROBE)
    assert b"\r\ndate: " in answer
    assert b"server:" not in answer


async def test_connection_is_kept_for_the_next_request() -> None:
    """Keep-alive works across answers of every kind."""
    async with running(Rig()) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for request in (PROBE, TURN, PROBE):
            writer.write(request)
            assert b" 200 OK" in await read_response(reader)
        writer.close()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


async def test_given_socket_is_used(listener: socket.socket) -> None:
    """A process that got its socket from its parent serves on that one."""
    told: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    rig = Rig()
    server = Server(rig.app, rig.settings.server, rig.gate, told.set_result)
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve([listener]))
        assert await told == listener.getsockname()[1]
        assert b" 200 OK" in await exchange(await told, PROBE)
        server.should_exit = True


def test_process_of_its_own_is_tuned(capfd: pytest.CaptureFixture[str]) -> None:
    """A server that owns its process stops collecting what will never be garbage."""
    program = (
        "import gc; from tests.edge.driver import Rig; rig = Rig();"
        "server = rig.server(lambda port: setattr(server, 'should_exit', True)); server.run();"
        "print(gc.get_freeze_count() > 1000, gc.get_threshold()[0])"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)
    assert capfd.readouterr().out == "True 50000\n"
