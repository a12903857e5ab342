"""A client that reads slowly holds its upstream back; memory does not grow, others do not wait."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from proxy.settings import Settings
from tests.fakes.gateway import serve_gateway

pytestmark = pytest.mark.anyio

HELD_BYTES = 64 * 1024 * 1024
"""Kernel buffers of two hops and our own, with room to spare; the stream is endless."""
SECONDS = 3.0
TOOL = {"type": "function", "function": {"name": "tool_%d", "description": "Does thing %d."}}


class Fountain:
    """An upstream whose streams never end; it counts what was taken from it."""

    def __init__(self) -> None:
        self.sent = 0
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        body = json.loads(await reader.readexactly(length))
        if not body.get("stream"):
            said = b'{"choices":[{"index":0,"message":{"role":"assistant","content":"Hi"}}]}'
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
                b"content-length: %d\r\nconnection: close\r\n\r\n" % len(said) + said
            )
            writer.close()
            return
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        words = "word " * 200
        choice = {"index": 0, "delta": {"content": words}, "finish_reason": None}
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        event = b"data: " + json.dumps(chunk | {"choices": [choice]}).encode() + b"\n\n"
        try:
            while True:
                writer.write(event * 16)
                await writer.drain()
                self.sent += len(event) * 16
        except OSError:
            writer.close()


@asynccontextmanager
async def fountain() -> AsyncIterator[Fountain]:
    one = Fountain()
    server = await asyncio.start_server(one.serve, "127.0.0.1", 0)
    one.port = server.sockets[0].getsockname()[1]
    try:
        yield one
    finally:
        server.close()


def request(*, stream: bool, tools: int) -> bytes:
    text = json.dumps(TOOL)
    body: dict[str, object] = {
        "model": "m",
        "stream": stream,
        "messages": [{"role": "user", "content": "Hello"}],
    }
    if tools:
        body["tools"] = [json.loads(text % (number, number)) for number in range(tools)]
    data = json.dumps(body).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    return head + b"content-length: %d\r\n\r\n" % len(data) + data


@pytest.mark.parametrize("transport", ["aiohttp", "httpx"])
@pytest.mark.parametrize("tools", [0, 60], ids=["passed on", "spliced"])
async def test_slow_client_holds_its_upstream_back(
    transport: str, tools: int, tmp_path: Path
) -> None:
    """What was taken from the upstream stands still, and another client is served at once."""
    async with fountain() as upstream:
        with serve_gateway(settings_for(upstream, transport), tmp_path) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
            writer.write(request(stream=True, tools=tools))
            assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200 ")
            taken = await _standstill(upstream)
            began = time.monotonic()
            other, writer2 = await asyncio.open_connection("127.0.0.1", port)
            writer2.write(request(stream=False, tools=tools))
            assert (await other.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200 ")
            assert time.monotonic() - began < SECONDS
            writer.transport.abort()
            writer2.transport.abort()
            await asyncio.sleep(0.2)
    assert 0 < taken < HELD_BYTES


async def test_gateway_stops_although_a_client_reads_nothing(tmp_path: Path) -> None:
    """It is hung up on after its last seconds; the process would never end otherwise."""
    async with fountain() as upstream:
        settings = settings_for(upstream, "aiohttp")
        with serve_gateway(settings, tmp_path) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
            writer.write(request(stream=True, tools=0))
            await reader.readuntil(b"\r\n")
            await _standstill(upstream)
            began = time.monotonic()
        assert time.monotonic() - began < 5 * SECONDS
        writer.transport.abort()


def settings_for(upstream: Fountain, transport: str) -> Settings:
    url = f"http://127.0.0.1:{upstream.port}/v1"
    return Settings.model_validate(
        {
            "upstream": {"base_url": url, "api_key": "k", "transport": transport},
            "prediction": {"ranker": "lexical"},
        }
    )


async def _standstill(upstream: Fountain) -> int:
    """What was taken when half a second brought nothing more."""
    until = time.monotonic() + 10 * SECONDS
    before = -1
    while before != upstream.sent:
        assert time.monotonic() < until, f"{upstream.sent} bytes, and still flowing"
        before = upstream.sent
        await asyncio.sleep(0.5)
    return upstream.sent
