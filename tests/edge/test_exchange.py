"""Exchanges: however the work for a request ends, the client gets a proper answer."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from proxy.errors import BadRequest, UpstreamTimeout
from proxy.plan.exchange import ChatRequest, Reply
from proxy.upstream.transport import Prepared, UpstreamRequest
from tests.edge.driver import (
    CHAT,
    JSON_TYPE,
    SSE_TYPE,
    Answered,
    Client,
    Rig,
    ask,
    exchange,
    running,
)
from tests.fakes.transport import FakeTransport
from tests.fakes.until import until

pytestmark = pytest.mark.anyio

TURN = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n"


async def _cancel_after(seconds: float, rig: Rig, client: Client) -> Answered:
    """What the server does with requests that outlive its patience."""
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(client.ask(rig.app, "POST", CHAT))
        await asyncio.sleep(seconds)
        serving.cancel()
    return client.answered


async def test_refusals_of_the_turn_reach_the_client() -> None:
    """What the turn raises becomes an error in OpenAI's shape, with the request's id."""

    async def chat(_: ChatRequest) -> Reply:
        raise BadRequest("No such thing.", param="tools")

    answered = await ask(Rig(chat).app, "POST", CHAT, b"{}", [("x-request-id", "mine")])
    assert answered.status == 400
    assert b'"param":"tools"' in answered.body
    assert answered.headers["x-request-id"] == "mine"


async def test_upstream_errors_are_counted() -> None:
    """An operator sees how often and how the upstream failed."""
    rig = Rig(transport=FakeTransport(UpstreamTimeout("The upstream went quiet.")))
    assert (await ask(rig.app, "GET", "/v1/models")).status == 504
    text = rig.metrics.render()[0].decode()
    assert 'usher_upstream_errors_total{kind="upstream_timeout"} 1.0' in text
    assert 'usher_requests_total{endpoint="passthrough",status="504"} 1.0' in text


async def test_errors_of_a_turn_are_not_counted_twice() -> None:
    """Its account has counted each call by then."""

    async def chat(_: ChatRequest) -> Reply:
        raise UpstreamTimeout("The upstream went quiet.")

    rig = Rig(chat)
    assert (await ask(rig.app, "POST", CHAT, b"{}")).status == 504
    text = rig.metrics.render()[0].decode()
    assert 'usher_upstream_errors_total{kind="upstream_timeout"} 0.0' in text
    assert 'usher_requests_total{endpoint="chat",status="504"} 1.0' in text


async def test_bug_is_a_clean_500() -> None:
    """A bug of ours tells the client nothing about itself, and the server's log everything."""

    async def chat(_: ChatRequest) -> Reply:
        raise KeyError("private words")

    client = Client(b"{}")
    with pytest.raises(KeyError):
        await client.ask(Rig(chat).app, "POST", CHAT)
    assert client.answered.status == 500
    assert b'"type":"server_error"' in client.answered.body
    assert b"private" not in client.answered.body


async def test_bug_inside_a_stream_ends_it_in_order() -> None:
    """A bug after the first byte is a last event, not a torn connection."""

    async def stream() -> AsyncIterator[bytes]:
        yield b"data: 1\n\n"
        raise KeyError("private words")

    async def chat(_: ChatRequest) -> Reply:
        return Reply(200, SSE_TYPE, stream())

    client = Client(b"{}")
    with pytest.raises(KeyError):
        await client.ask(Rig(chat).app, "POST", CHAT)
    assert client.answered.body.endswith(b"data: [DONE]\n\n")
    assert client.answered.complete


async def test_client_gone_before_the_first_byte_stops_the_work() -> None:
    """A turn that waits for its upstream is cancelled within a second, also without a stream."""
    stopped: list[float] = []

    async def chat(_: ChatRequest) -> Reply:
        try:
            await asyncio.sleep(30)
        finally:
            stopped.append(time.monotonic())
        raise AssertionError("never here")

    rig, client = Rig(chat), Client(b"{}")
    left = time.monotonic() + 0.05
    asyncio.get_running_loop().call_later(0.05, client.leave)
    await client.ask(rig.app, "POST", CHAT)
    assert stopped[0] - left < 1.0
    assert client.answered.status == 0
    assert rig.gate.inside == 0
    text = rig.metrics.render()[0].decode()
    assert 'usher_requests_total{endpoint="chat",status="499"} 1.0' in text


async def test_client_gone_inside_a_stream_closes_its_source() -> None:
    """A client that leaves in the middle of a stream ends the upstream's work, too."""
    closed = asyncio.Event()

    async def stream() -> AsyncIterator[bytes]:
        try:
            yield b"data: 1\n\n"
            await asyncio.sleep(30)
        finally:
            closed.set()

    async def chat(_: ChatRequest) -> Reply:
        return Reply(200, SSE_TYPE, stream())

    client = Client(b"{}")
    asyncio.get_running_loop().call_later(0.05, client.leave)
    async with asyncio.timeout(1):
        await client.ask(Rig(chat).app, "POST", CHAT)
    assert closed.is_set()
    assert client.answered.body == b"data: 1\n\n"


async def test_failure_behind_a_client_that_is_gone_is_no_answer() -> None:
    """What breaks because the client left is neither answered nor counted as the upstream's."""

    class Interrupted(FakeTransport):
        async def send(self, request: UpstreamRequest) -> Prepared:
            self.sent.append(request)
            try:
                await asyncio.sleep(30)
            finally:
                raise UpstreamTimeout("It was interrupted.")

    transport = Interrupted()
    rig, client = Rig(transport=transport), Client()
    client.leave()
    await client.ask(rig.app, "GET", "/v1/models")
    assert len(transport.sent) == 1
    assert client.answered.status == 0
    assert (
        'usher_upstream_errors_total{kind="upstream_timeout"} 0.0'
        in rig.metrics.render()[0].decode()
    )


async def test_client_that_half_closes_has_left() -> None:
    """Nothing is answered to one that ends its side after the request, and its turn is ended."""
    ended = asyncio.Event()

    async def chat(_: ChatRequest) -> Reply:
        try:
            await asyncio.sleep(30)
        finally:
            ended.set()
        raise AssertionError("it was not ended")

    rig = Rig(chat)
    async with running(rig) as port, asyncio.timeout(5):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(TURN + b"\r\n{}")
        await until(lambda: rig.gate.inside == 1)
        writer.write_eof()
        assert await reader.read() == b""
        await ended.wait()
        writer.close()
    labels = {"endpoint": "chat", "status": "499"}
    assert rig.metrics.registry.get_sample_value("usher_requests_total", labels) == 1


async def test_stopping_server_ends_waiting_requests_with_503() -> None:
    """A request that never got an answer is told to try again."""

    async def chat(_: ChatRequest) -> Reply:
        await asyncio.sleep(30)
        raise AssertionError("never here")

    answered = await _cancel_after(0.02, Rig(chat), Client(b"{}"))
    assert answered.status == 503
    assert b'"code":"unavailable"' in answered.body


async def test_stopping_server_ends_streams_with_an_error_event() -> None:
    """A running stream ends with an error that SDKs raise, never as if it were complete."""

    async def stream() -> AsyncIterator[bytes]:
        yield b"data: 1\n\n"
        await asyncio.sleep(30)

    async def chat(_: ChatRequest) -> Reply:
        return Reply(200, SSE_TYPE, stream())

    answered = await _cancel_after(0.02, Rig(chat), Client(b"{}"))
    assert b'"code":"unavailable"' in answered.body
    assert answered.complete


async def test_draining_gateway_refuses_new_turns() -> None:
    """While the gateway drains new requests are sent elsewhere and their connection ends."""
    rig = Rig()
    await rig.gate.drain(0)
    answered = await ask(rig.app, "POST", CHAT, b"{}")
    assert answered.status == 503
    assert answered.headers["retry-after"] == "1"
    assert answered.headers["connection"] == "close"


async def test_silent_stream_of_ours_gets_pings() -> None:
    """A stream that Usher writes itself is kept alive; the first ping brings the head."""

    async def stream() -> AsyncIterator[bytes]:
        await asyncio.sleep(0.05)
        yield b"data: 1\n\n"

    async def chat(_: ChatRequest) -> Reply:
        return Reply(200, SSE_TYPE, stream(), pings=True)

    answered = await ask(Rig(chat, overrides={"server": {"ping_seconds": 0.03}}).app, "POST", CHAT)
    *pings, last = answered.chunks
    assert set(pings) == {b": ping\n"}
    assert last == b"data: 1\n\n"


async def test_silent_stream_of_the_upstream_stays_untouched() -> None:
    """A stream that is only passed on gets no byte of ours."""

    async def stream() -> AsyncIterator[bytes]:
        await asyncio.sleep(0.05)
        yield b"data: 1\n\n"

    async def chat(_: ChatRequest) -> Reply:
        return Reply(200, SSE_TYPE, stream())

    answered = await ask(Rig(chat, overrides={"server": {"ping_seconds": 0.01}}).app, "POST", CHAT)
    assert answered.chunks == [b"data: 1\n\n"]


async def test_first_chunk_is_timed() -> None:
    """The time to the first byte of a chat answer is measured, once per request."""

    async def chat(_: ChatRequest) -> Reply:
        return Reply(200, JSON_TYPE, b"{}")

    rig = Rig(chat)
    await ask(rig.app, "POST", CHAT, b"{}")
    assert "usher_first_chunk_seconds_count 1.0" in rig.metrics.render()[0].decode()


class Bookkeeping:
    """A stream that goes on for a while and has something to do after its end."""

    def __init__(self) -> None:
        self._chunks = iter([b"data: 1\n\n", b"data: [DONE]\n\n"])
        self.done = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        await asyncio.sleep(0.2)
        for chunk in self._chunks:
            return chunk
        raise StopAsyncIteration

    async def aclose(self) -> None:
        await asyncio.sleep(0.05)
        self.done = True


async def test_work_after_the_last_byte_is_finished() -> None:
    """A client that leaves with its whole answer does not cut short what is still written down."""
    books = Bookkeeping()

    async def chat(_: ChatRequest) -> Reply:
        return Reply(200, SSE_TYPE, books)

    async with running(Rig(chat)) as port:
        answer = await exchange(port, TURN + b"Connection: close\r\n\r\n{}")
        assert answer.endswith(b"0\r\n\r\n")
        await until(lambda: books.done)


async def test_client_may_leave_with_the_last_event() -> None:
    """SDKs hang up at `[DONE]`; what the turn does behind it is not cut short."""
    books: list[str] = []

    async def stream() -> AsyncIterator[bytes]:
        await asyncio.sleep(0.3)
        yield b"data: 1\n\ndata: [DONE]\n\n"
        await asyncio.sleep(0.05)
        books.append("done")

    async def chat(_: ChatRequest) -> Reply:
        return Reply(200, SSE_TYPE, stream(), pings=True)

    async with running(Rig(chat)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(TURN + b"\r\n{}")
        await reader.readuntil(b"[DONE]")
        writer.close()
        await until(lambda: books == ["done"])


async def test_bug_is_counted() -> None:
    """A failed request is in the metrics, too."""

    async def chat(_: ChatRequest) -> Reply:
        raise KeyError

    rig = Rig(chat)
    with pytest.raises(KeyError):
        await ask(rig.app, "POST", CHAT, b"{}")
    text = rig.metrics.render()[0].decode()
    assert 'usher_requests_total{endpoint="chat",status="500"} 1.0' in text
