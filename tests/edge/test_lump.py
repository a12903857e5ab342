"""Responses on the wire: how many writes they take, and that nothing is held back."""

import asyncio
import logging
from collections.abc import Iterable
from typing import cast

import pytest
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from proxy.edge.lump import LUMP, Lump, lump_of
from proxy.wire import Headers

JSON_TYPE = (b"content-type", b"application/json")


class Wire(asyncio.Transport):
    """A connection that remembers its writes."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(bytes(data))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.writes.append(b"".join(list_of_data))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


class Cycle:
    """What a lump sees of uvicorn's response."""

    def __init__(self) -> None:
        self.transport = Wire()
        self.response_started = False
        self.body = b"of the request"
        self.scope: dict[str, object] = {LUMP: None}
        self.on_response = self.note

    def note(self) -> None:
        self.response_started = False


@pytest.fixture
def cycle() -> Cycle:
    return Cycle()


def around(cycle: Cycle) -> Lump:
    return Lump(cast("RequestResponseCycle", cycle))


def test_head_goes_out_with_the_first_bytes_of_the_body(cycle: Cycle) -> None:
    """One system call for both; what follows goes out as it comes."""
    lump = around(cycle)
    cycle.response_started = True
    lump.write(b"HTTP/1.1 200 OK\r\n\r\n")
    assert cycle.transport.writes == []
    lump.write(b"first")
    lump.write(b"second")
    assert cycle.transport.writes == [b"HTTP/1.1 200 OK\r\n\r\nfirst", b"second"]


def test_ended_response_lets_go_of_everything(cycle: Cycle) -> None:
    """Neither the request's body nor the way to answer it waits for a garbage collection."""
    wire, lump = cycle.transport, around(cycle)
    cycle.response_started = True
    cycle.on_response()
    assert not cycle.response_started
    assert (cycle.transport, bytes(cycle.body), cycle.scope) == (wire, b"", {})
    assert not lump.is_closing()


def test_interim_answers_are_not_held(cycle: Cycle) -> None:
    """A client that waits for 100 Continue sends its body after it only."""
    lump = around(cycle)
    lump.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    assert cycle.transport.writes == [b"HTTP/1.1 100 Continue\r\n\r\n"]


def test_a_head_without_body_goes_out_before_the_end(cycle: Cycle) -> None:
    """A response that is given up after its head still shows its status."""
    lump = around(cycle)
    cycle.response_started = True
    lump.write(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
    assert not lump.is_closing()
    lump.close()
    assert cycle.transport.writes == [b"HTTP/1.1 502 Bad Gateway\r\n\r\n"]
    assert lump.is_closing()


class Told:
    """uvicorn's own response to one request, and who hears of its end."""

    def __init__(self, *, keep_alive: bool = True, method: str = "POST") -> None:
        self.wire = Wire()
        self.ends = 0
        self.cycle = RequestResponseCycle(
            scope={"type": "http", "method": method},  # type: ignore[typeddict-item]  # all it reads
            transport=self.wire,
            flow=FlowControl(self.wire),
            logger=logging.getLogger("test"),
            access_logger=logging.getLogger("test"),
            access_log=False,
            default_headers=[(b"date", b"Tue, 01 Dec 2026 12:00:00 GMT")],
            message_event=asyncio.Event(),
            expect_100_continue=True,
            keep_alive=keep_alive,
            on_response=self.end,
        )

    def end(self) -> None:
        self.ends += 1

    async def tell(self, status: int, headers: Headers, body: bytes) -> None:
        """The usual way."""
        start = {"type": "http.response.start", "status": status, "headers": headers}
        await self.cycle.send(start)  # type: ignore[arg-type]  # a plain dict is what ASGI sends
        await self.cycle.send({"type": "http.response.body", "body": body, "more_body": False})


@pytest.mark.anyio
@pytest.mark.parametrize("keep_alive", [True, False])
@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (200, [JSON_TYPE, (b"content-length", b"2")], b"{}"),
        (200, [JSON_TYPE, (b"content-length", b"2"), (b"connection", b"close")], b"{}"),
        (204, [(b"x-request-id", b"req_1")], b""),
        (429, [(b"retry-after", b"3"), (b"content-length", b"4")], b"busy"),
        (502, [(b"content-length", b"0"), (b"x-latin", b"caf\xe9\ttab")], b""),
    ],
)
async def test_short_way_sends_what_uvicorn_would(
    status: int, headers: Headers, body: bytes, *, keep_alive: bool
) -> None:
    """The same bytes, in one write, and the connection is in the same state after it."""
    usual, short = Told(keep_alive=keep_alive), Told(keep_alive=keep_alive)
    await usual.tell(status, headers, body)
    assert Lump(short.cycle).answer(status, headers, body)
    assert short.wire.writes == [b"".join(usual.wire.writes)]
    assert short.wire.closed == usual.wire.closed
    assert (short.ends, usual.ends) == (1, 1)
    assert short.cycle.response_complete
    assert await short.cycle.receive() == {"type": "http.disconnect"}


@pytest.mark.anyio
@pytest.mark.parametrize("value", [b"a\r\nset-cookie: b", b"a\nb", b"a\rb", b"a\0b", b"\x7f"])
async def test_values_that_break_out_of_a_line_are_left_to_uvicorn(value: bytes) -> None:
    """Nothing is sent on the short way, and uvicorn refuses."""
    told = Told()
    headers: Headers = [(b"x-odd", value), (b"content-length", b"2")]
    assert not Lump(told.cycle).answer(200, headers, b"{}")
    with pytest.raises(RuntimeError, match="header"):
        await told.tell(200, headers, b"{}")
    assert not told.wire.writes


@pytest.mark.anyio
async def test_short_way_is_closed_when_there_is_something_to_wait_for() -> None:
    """A response that has begun, a client that has gone or that is slow: all as uvicorn has it."""
    for prepare in ("response_started", "disconnected"):
        told = Told()
        setattr(told.cycle, prepare, True)
        assert not Lump(told.cycle).answer(200, [], b"")
        assert not told.wire.writes
    told = Told()
    told.cycle.flow.pause_writing()
    assert not Lump(told.cycle).answer(200, [], b"")


@pytest.mark.anyio
async def test_other_servers_have_no_short_way() -> None:
    """A scope of any ASGI server will do."""
    assert lump_of({}) is None
    lump = Lump(Told().cycle)
    assert lump_of({LUMP: lump}) is lump


def test_a_body_that_is_whole_is_taken_once() -> None:
    """Before it is, or once somebody received of it, it has to be received."""
    told = Told()
    lump = Lump(told.cycle)
    told.cycle.body = bytearray(b"ab")
    assert lump.take_body() is None
    told.cycle.more_body = False
    told.cycle.message_event.set()
    assert lump.take_body() == b"ab"
    assert not told.cycle.message_event.is_set()
    told.cycle.disconnected = True
    assert lump.take_body() is None
